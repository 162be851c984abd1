"""The report on turns."""
