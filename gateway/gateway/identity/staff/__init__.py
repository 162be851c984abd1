"""Members of a company's staff, to whom tickets and inspections are assigned."""
