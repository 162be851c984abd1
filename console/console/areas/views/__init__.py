"""Saved views: saving, changing and removing them. Lists show them by `kit.viewing`."""
