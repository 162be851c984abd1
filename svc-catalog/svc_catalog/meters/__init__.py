"""Utility meters and their readings."""
