"""Alembic's environment of svc-catalog."""

from chassis.db.migrations import run_environment

run_environment()
