"""My work: what one person has to do, of all areas, by day."""
