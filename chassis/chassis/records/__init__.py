"""JSON records and request bodies."""
