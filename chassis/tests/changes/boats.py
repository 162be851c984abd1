"""Boats, which show their harbour and their captain, and crates: tables of records that can be followed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from prometheus_client import REGISTRY

from chassis.changes.documents import Documents
from chassis.changes.feed import Changes
from chassis.changes.tables import Follow, add_change_tables, make_followable
from chassis.changes.tracking import ChangeTracking
from chassis.db.database import Database
from chassis.records.shapes import Link, Nested, Shape
from makeready.common.v1.documents_pb2 import Feed
from testkit.patience import PATIENCE_SECONDS

metadata = sa.MetaData()
add_change_tables(metadata)
harbour = sa.Table(
    "harbour",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("company_id", sa.BigInteger, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("depth", sa.Integer, server_default=sa.text("7")),
)
captain = sa.Table(
    "captain",
    metadata,
    sa.Column("company_id", sa.BigInteger, nullable=False),
    sa.Column("boat_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
)
boat = sa.Table(
    "boat",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False, server_default=sa.text("1")),
    sa.Column("harbour_id", sa.BigInteger, sa.ForeignKey("harbour.id"), nullable=False),
    sa.Column("is_public", sa.Boolean, nullable=False, server_default=sa.text("true")),
)
make_followable(
    boat,
    Follow("harbour_id", harbour, "name"),
    Follow("id", captain, "name", key="boat_id", comes_and_goes=True),
    served=boat.c.is_public,
)
crate = sa.Table(
    "crate",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("weight", sa.Double, nullable=False),
    sa.Column("harbour_id", sa.BigInteger, sa.ForeignKey("harbour.id")),
    sa.Column("counted", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("is_public", sa.Boolean, nullable=False),
)
make_followable(crate, Follow("harbour_id", harbour, "name"), beside=["counted"], served=crate.c.is_public)


class Named(msgspec.Struct):
    id: int
    name: str


class Boat(msgspec.Struct):
    schema_version: Literal[1]
    entity_type: Literal["boat"]
    entity_id: int
    name: str
    harbour: Named
    captain: str | None
    url: str


class Crate(msgspec.Struct):
    entity_id: int
    weight: float
    harbour: Named | None


BOAT = Shape(
    Boat,
    boat,
    harbour=Nested(Named, harbour),
    captain=captain.c.name,
    url=Link("/boats/{entity_id}"),
    version=boat.c.version,
)
BOATS = BOAT.select(
    boat.join(harbour, harbour.c.id == boat.c.harbour_id).outerjoin(
        captain, sa.and_(captain.c.boat_id == boat.c.id, captain.c.company_id == boat.c.company_id)
    )
)
DOCUMENTS = Documents(BOAT, BOATS, boat)
CHANGES = Changes("boat", DOCUMENTS)
RENDERER = BOAT.renderer("https://boats.example")
CRATE = Shape(Crate, crate, harbour=Nested(Named, harbour, optional=True), version=crate.c.id)
CRATES = CRATE.select(crate.outerjoin(harbour, harbour.c.id == crate.c.harbour_id))
FLEET, OTHERS = 11, 12


@dataclass
class Ask:
    position: bytes = b""
    limit: int = 50
    from_now: bool = False


async def run(database: Database, *statements: str) -> None:
    async with database.connection() as connection:
        for statement in statements:
            await connection.raw.execute(statement)


# The horizon is the whole server's: services of other tests and the autovacuum hold it back as well.
OTHERS_UNDER_WAY = """SELECT count(*) FROM pg_stat_activity
WHERE backend_xid::text::bigint < $1 AND (datname <> current_database() OR backend_type <> 'client backend')"""


async def others_ended(database: Database) -> None:
    """Waits until the transactions of others that are under way now have ended."""
    async with database.connection() as connection:
        now = await connection.raw.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        async with asyncio.timeout(60):
            while await connection.raw.fetchval(OTHERS_UNDER_WAY, now):  # noqa: ASYNC110 - nothing else says so
                await asyncio.sleep(0.01)


def sail(*ids: int, harbour_id: int = 1, company_id: int = FLEET) -> str:
    rows = ", ".join(f"({company_id}, {boat_id}, 'Boat {boat_id}', {harbour_id})" for boat_id in ids)
    return f"INSERT INTO boat (company_id, id, name, harbour_id) VALUES {rows}"


async def page(database: Database, position: bytes = b"", limit: int = 50) -> Feed:
    await others_ended(database)
    return await CHANGES.feed(database, FLEET, Ask(position, limit), RENDERER)


async def present(database: Database) -> Feed:
    """The present position."""
    await others_ended(database)
    return await CHANGES.feed(database, FLEET, Ask(from_now=True), RENDERER)


def ids(feed: Feed) -> list[int]:
    return [msgspec.json.decode(document)["entity_id"] for document in feed.documents]


def waiting() -> float | None:
    return REGISTRY.get_sample_value("makeready_changes_touching_rows")


def gone(feed: Feed) -> list[int]:
    return [entry["entity_id"] for entry in map(msgspec.json.decode, feed.documents) if entry["gone"]]


async def walk(database: Database, position: bytes = b"", limit: int = 2) -> list[Feed]:
    """All pages from a position."""
    pages = [await page(database, position, limit)]
    while pages[-1].more:
        pages.append(await page(database, pages[-1].position, limit))
    return pages


def records(feed: Feed) -> list[Any]:
    return [msgspec.json.decode(document)["record"] for document in feed.documents]


async def filled(database: Database) -> None:
    """Waits until every boat has its document, and no mark is left that could be dealt with."""
    worker = ChangeTracking(database, [CHANGES])
    while await worker.run_batch():
        pass


async def settled(database: Database) -> None:
    """Waits until no mark is left: the transactions that were under way at the changes have ended."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            await filled(database)
            async with database.connection() as connection:
                if not await connection.raw.fetchval("SELECT count(*) FROM changes_to_touch WHERE record = 'boat'"):
                    return
            await asyncio.sleep(0.01)
