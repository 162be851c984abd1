"""Reports about tickets and the vendors that work on them."""
