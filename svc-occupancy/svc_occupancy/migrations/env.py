"""Alembic's environment of svc-occupancy."""

from chassis.db.migrations import run_environment

run_environment()
