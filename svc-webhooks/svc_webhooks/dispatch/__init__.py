"""Deliveries on their way: what is due, claimed, sent and recorded."""
