"""Imports of files: upload, match the columns, check, import."""
