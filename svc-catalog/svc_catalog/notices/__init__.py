"""Notices to the residents of a property."""
