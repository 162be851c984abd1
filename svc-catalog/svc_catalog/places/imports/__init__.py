"""Imports of properties, units and assets."""
