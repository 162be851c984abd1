"""The clock of a sandbox."""
