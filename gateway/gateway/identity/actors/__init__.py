"""Tokens for the people on whose behalf an operator acts."""
