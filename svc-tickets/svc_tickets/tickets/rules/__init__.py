"""What a ticket may be and what becomes of it. Pure."""
