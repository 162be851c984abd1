"""A process: its settings, its log, the points where a test ends it."""
