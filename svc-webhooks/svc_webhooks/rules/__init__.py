"""Dispatches deliveries: finds due ones, claims, sends and records them."""
