"""Alembic's environment of svc-tickets."""

from chassis.db.migrations import run_environment

run_environment()
