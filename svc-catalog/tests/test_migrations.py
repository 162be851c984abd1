"""A migrated database is what tables.py says."""

from __future__ import annotations

import asyncio

from chassis import migrations
from makeready_local.revise import differences
from makeready_local.schemas import declare, schema
from makeready_local.testing import PostgresServer
from svc_catalog import tables


async def test_a_migrated_database_equals_the_tables(postgres_server: PostgresServer) -> None:
    migrated, declared = (postgres_server.create_database(f"catalog_{one}") for one in ("migrated", "declared"))
    await asyncio.to_thread(migrations.migrate, migrated, "svc_catalog", tables.metadata)
    await declare(declared, tables.metadata)
    assert await differences(migrated, tables.metadata) == []
    assert await schema(migrated) == await schema(declared)


async def test_migrating_twice_changes_nothing(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("catalog_twice")
    await asyncio.to_thread(migrations.migrate, url, "svc_catalog", tables.metadata)
    before = await schema(url)
    await asyncio.to_thread(migrations.migrate, url, "svc_catalog", tables.metadata)
    assert await schema(url) == before
