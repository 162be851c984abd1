"""Events and their deliveries."""
