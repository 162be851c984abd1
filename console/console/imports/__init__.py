"""Imports of files by administrators: jobs, and the processes that do their work."""
