"""Rows of other contexts, kept so that reads need nobody else."""
