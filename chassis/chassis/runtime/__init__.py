"""A process: its settings, its log, its failpoints."""
