"""Preventive-maintenance tasks: planned, completed, imported, announced when overdue."""
