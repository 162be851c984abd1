"""Turns: one row for each residency of a unit."""
