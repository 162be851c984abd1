"""Identity tokens of callers, and calls to other services with them."""
