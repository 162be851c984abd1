"""Signing secrets, encrypted at rest."""
