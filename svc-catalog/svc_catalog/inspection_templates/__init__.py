"""Templates of inspections: the rows that inspections of one kind have."""
