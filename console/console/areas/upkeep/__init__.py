"""Upkeep: preventive-maintenance tasks, their chains, and their parts of other pages."""
