"""Pages of meters and their readings."""
