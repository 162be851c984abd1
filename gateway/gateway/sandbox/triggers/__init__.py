"""Triggers: each makes one event happen in a sandbox, by its real cause."""
