"""Every migrated database is what its service's tables.py says."""

from __future__ import annotations

import asyncio
import importlib

import pytest

from chassis.db import migrations
from testkit.plugin import PostgresServer
from testkit.revise import differences
from testkit.schemas import declare, schema

PACKAGES = ("gateway", "svc_catalog", "svc_tickets", "svc_occupancy", "svc_webhooks")


@pytest.mark.parametrize("package", PACKAGES)
async def test_a_migrated_database_equals_the_tables_and_migrating_twice_changes_nothing(
    postgres_server: PostgresServer, package: str
) -> None:
    metadata = importlib.import_module(f"{package}.tables").metadata
    migrated, declared = (postgres_server.create_database(f"{package}_{one}") for one in ("migrated", "declared"))
    await asyncio.to_thread(migrations.migrate, migrated, package, metadata)
    await declare(declared, metadata)
    assert await differences(migrated, metadata) == []
    found = await schema(migrated)
    assert found == await schema(declared)
    await asyncio.to_thread(migrations.migrate, migrated, package, metadata)
    assert await schema(migrated) == found
