"""Which migrations a database has had, and which of them this code needs.

Alembic knows only the last one. So each migration is also a row of `schema_revision`, where code of an older release
finds its own after a newer one. This module does without Alembic, whose import would cost each serving process 15 MB.
"""

from __future__ import annotations

import asyncio
import importlib.resources
import re

import asyncpg
import structlog

from chassis.db.database import Database, DatabaseRefused, DatabaseUnavailable

OF_MIGRATIONS = ("alembic_version", "schema_revision")
"""The tables that migrations keep for themselves: they belong to no context."""
CREATE = (
    "CREATE TABLE IF NOT EXISTS schema_revision"
    " (revision text PRIMARY KEY, applied_at timestamptz DEFAULT now() NOT NULL)"
)
RECORD = "INSERT INTO schema_revision (revision) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING"
IS_RECORDED = "SELECT EXISTS (SELECT FROM schema_revision WHERE revision = $1)"
_THERE = (
    "SELECT to_regclass('alembic_version') IS NOT NULL AS at, to_regclass('schema_revision') IS NOT NULL AS recorded"
)
_AT = "SELECT version_num FROM alembic_version"
LOOK_SECONDS = 0.5
_FILE = re.compile(r"([0-9]{4}_\w+)\.py")

log = structlog.stdlib.get_logger(__name__)


def head_of(package: str) -> str:
    """The newest revision of a package's migrations: the last of their files, whose names are the revisions' ids."""
    versions = importlib.resources.files(package) / "migrations" / "versions"
    return max(match[1] for file in versions.iterdir() if (match := _FILE.fullmatch(file.name)))


async def open_migrated(database: Database, head: str) -> None:
    """Opens the database as soon as its server answers and it has had the migration `head`; logs what it waits for.

    A process without migrations has the head "". Raises DatabaseRefused and SettingsError, as `Database.open` does.
    """
    is_open = False
    waits_for: tuple[str, str] | None = None
    while True:
        try:
            if not is_open:
                await database.open(wait_seconds=0)
                is_open = True
            revision, has_head = await _look(database, head) if head else ("", True)
        except DatabaseRefused:
            raise
        except DatabaseUnavailable as error:
            if waits_for != ("database", ""):
                log.warning("waiting_for_database", reason=str(error))
            waits_for = "database", ""
        else:
            if has_head:
                break
            if waits_for != ("migrations", revision):
                log.warning("waiting_for_migrations", head=head, revision=revision)
            waits_for = "migrations", revision
        await asyncio.sleep(LOOK_SECONDS)
    if waits_for is not None:
        await database.renew()


async def is_newest(database: Database, head: str) -> bool:
    """Whether the migration `head` is the last that the database has had; True for a process without migrations."""
    if not head:
        return True
    async with database.connection() as connection:
        return bool(await connection.raw.fetchval(_AT) == head)


async def _look(database: Database, head: str) -> tuple[str, bool]:
    """The database's revision, "" before the first migration, and whether `head` is among those that it has had."""
    try:
        async with database.connection() as connection:
            there = await connection.raw.fetchrow(_THERE)
            assert there is not None
            revision: str | None = await connection.raw.fetchval(_AT) if there["at"] else None
            # A database that an older release migrated has recorded nothing.
            has_head = revision == head or (there["recorded"] and await connection.raw.fetchval(IS_RECORDED, head))
    except asyncpg.InsufficientPrivilegeError as error:
        raise DatabaseUnavailable(f"{error}; the migrations of this release give the right: run them") from None
    return revision or "", has_head
