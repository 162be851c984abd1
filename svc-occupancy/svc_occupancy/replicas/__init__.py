"""Replicas of companies, properties, units, staff and vendors, so that turns need no request to other services."""
