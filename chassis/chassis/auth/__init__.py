"""Who calls: identity tokens, and calls to other services that carry them."""
