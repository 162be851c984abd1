"""The SQL of what administrators change, and of lists of deliveries."""
