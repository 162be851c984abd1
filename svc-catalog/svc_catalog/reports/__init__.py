"""Reports about inspections."""
