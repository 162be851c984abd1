"""The SQL of administrators' changes and of lists of deliveries."""
