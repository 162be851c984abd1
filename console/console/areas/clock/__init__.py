"""The requests of API keys."""
