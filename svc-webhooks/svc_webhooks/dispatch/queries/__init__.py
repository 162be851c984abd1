"""The SQL of a sweep: finds due deliveries, claims them and records attempts."""
