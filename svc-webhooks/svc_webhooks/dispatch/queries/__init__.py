"""The SQL of a sweep: what is due and claimed, and what is recorded of attempts."""
