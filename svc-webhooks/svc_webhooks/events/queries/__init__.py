"""The SQL of events and of the daily partitions that hold them."""
