"""Inspections of properties and units, and the rows of their checklists."""
