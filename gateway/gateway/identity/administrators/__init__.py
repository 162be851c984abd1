"""Administrators of a company."""
