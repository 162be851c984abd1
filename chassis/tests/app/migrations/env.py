"""Alembic's environment of svc-echo."""

from chassis.db.migrations import run_environment

run_environment()
