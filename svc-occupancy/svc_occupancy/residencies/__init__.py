"""Notices and move-ins that feeds send, with leases and parties."""
