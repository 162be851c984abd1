"""Alembic's environment of svc-catalog."""

from chassis.migrations import run_environment

run_environment()
