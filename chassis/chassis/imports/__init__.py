"""Imports rows of files into a context's tables."""
