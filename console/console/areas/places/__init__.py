"""Pages of properties, units and assets."""
