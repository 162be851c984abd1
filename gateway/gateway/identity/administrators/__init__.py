"""Administrators of a company, and their passwords."""
