"""Alembic's environment of the gateway."""

from chassis.migrations import run_environment

run_environment()
