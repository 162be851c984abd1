"""Replicas: rows of other contexts, stored so that reads need no other service."""
