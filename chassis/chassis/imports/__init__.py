"""Rows of files on their way into a context's tables."""
