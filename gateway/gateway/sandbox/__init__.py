"""What only sandboxes have: triggers of events."""
