"""Replicas of companies, properties and units, so that turns need no request to other services."""
