"""The only way out to receivers: checks addresses, enforces deadlines, measures times."""
