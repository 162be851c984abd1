"""Alembic's environment of svc-tickets."""

from chassis.migrations import run_environment

run_environment()
