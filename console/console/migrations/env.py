"""Alembic's environment of the console."""

from chassis.db.migrations import run_environment

run_environment()
