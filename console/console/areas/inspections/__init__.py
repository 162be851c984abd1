"""The pages of inspections."""
