"""Keyset pages, and pages of records changed since an instant."""
