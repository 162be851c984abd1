"""Imports of files: makes records of their rows. It reports and stores each bad row and imports the good ones."""
