"""Signing in and out, and the sessions of those who have signed in."""
