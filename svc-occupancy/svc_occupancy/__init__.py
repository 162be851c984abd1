"""Residencies: transitions, leases, make-ready tasks and unit status."""
