"""Alembic's environment of the gateway."""

from chassis.db.migrations import run_environment

run_environment()
