"""Alembic's environment of svc-webhooks."""

from chassis.migrations import run_environment

run_environment()
