"""Alembic's environment of svc-occupancy."""

from chassis.migrations import run_environment

run_environment()
