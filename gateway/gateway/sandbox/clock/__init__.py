"""The clocks of sandboxes, and their advances."""
