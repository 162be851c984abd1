"""A database of boats."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from chassis.db.database import Database
from testkit.plugin import PostgresServer

from ..databases import database_with
from .boats import FLEET, metadata, run


@pytest.fixture(scope="module")
async def shared(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_changes", metadata) as database:
        yield database


@pytest.fixture
async def database(shared: Database) -> Database:
    await run(
        shared,
        "TRUNCATE boat, captain, crate, harbour, changes_to_touch",
        f"INSERT INTO harbour (id, company_id, name) VALUES (1, {FLEET}, 'Hull'), (2, {FLEET}, 'Leith')",
    )
    return shared
