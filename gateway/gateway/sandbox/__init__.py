"""What only sandboxes have."""
