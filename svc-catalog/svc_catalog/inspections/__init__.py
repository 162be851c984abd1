"""Inspections of properties and units, and the rows that they look at."""
