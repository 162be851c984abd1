"""Every migrated database equals its service's tables.py, and also serves the code of the last release."""

from __future__ import annotations

import asyncio
import importlib

import pytest
from sqlalchemy import MetaData

from chassis.db import migrations
from testkit.expansion import taken
from testkit.plugin import PostgresServer
from testkit.revise import differences
from testkit.schemas import PROJECTS, allowed, declare, dump, folder, load, package, read, schema


@pytest.mark.parametrize("project", PROJECTS)
async def test_a_migrated_database_equals_the_tables_and_migrating_twice_changes_nothing(
    postgres_server: PostgresServer, project: str
) -> None:
    name = package(project)
    metadata = metadata_of(project)
    migrated, declared = (postgres_server.create_database(f"{name}_{one}") for one in ("migrated", "declared"))
    await asyncio.to_thread(migrations.migrate, migrated, name, metadata)
    await declare(declared, metadata)
    assert await differences(migrated, metadata) == []
    found = await schema(migrated)
    assert found == await schema(declared)
    await asyncio.to_thread(migrations.migrate, migrated, name, metadata)
    assert await schema(migrated) == found


@pytest.mark.parametrize("project", PROJECTS)
async def test_the_schema_that_is_kept_as_sql_is_what_migrations_make(
    postgres_server: PostgresServer, project: str
) -> None:
    url = postgres_server.create_database("current")
    await asyncio.to_thread(migrations.migrate, url, package(project), metadata_of(project))
    assert dump(url) == (folder(project) / "current.sql").read_text(), "run `make schemas` and look at what changed"


@pytest.mark.parametrize("project", PROJECTS)
async def test_migrations_leave_the_code_of_the_last_release_what_it_uses(
    postgres_server: PostgresServer, project: str
) -> None:
    """If it fails: add first and remove a release later, or explain in `allowed.toml` why nothing can break."""
    released, head = (postgres_server.create_database(name) for name in ("released", "head"))
    sql = (folder(project) / "released.sql").read_text()
    await load(released, sql)
    assert dump(released) == sql, "released.sql is not what `make release-contracts` wrote"
    await asyncio.to_thread(migrations.migrate, head, package(project), metadata_of(project))
    reasons = allowed(project)
    assert taken(await read(released), await read(head)) == sorted(reasons)
    assert all(reasons.values())


def metadata_of(project: str) -> MetaData:
    metadata: MetaData = importlib.import_module(f"{package(project)}.tables").metadata
    return metadata
