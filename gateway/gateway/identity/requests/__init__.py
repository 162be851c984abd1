"""The log of requests: each answered request of an API key, for 30 days."""
