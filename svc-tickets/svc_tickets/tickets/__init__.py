"""Tickets with their comments, history and numbers: opened, changed, listed, imported, announced when stale."""
