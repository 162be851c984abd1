"""Areas: the pages of one context each."""
