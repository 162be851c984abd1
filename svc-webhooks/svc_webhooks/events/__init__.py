"""Stores public events: their envelopes, and the daily partitions that hold them."""
