"""Alembic's environment of svc-webhooks."""

from chassis.db.migrations import run_environment

run_environment()
