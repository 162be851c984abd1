"""Replicas of other contexts' companies, places, staff and vendors."""
