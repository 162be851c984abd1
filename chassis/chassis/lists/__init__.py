"""Keyset pages, and pages of what changed since an instant."""
