"""Settings of connections through a pooler (PgBouncer), which refuses most of them at the start of a connection.

| pooler | a setting |
|---|---|
| `session` | is SET once on each connection: until its end it has a connection of the server to itself |
| `transaction` | is a default of the role in its database: a transaction may run on any connection of the server |
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping

import asyncpg
import structlog

from chassis.db.roles import identifier, literal
from chassis.runtime.settings import SettingsError

# PgBouncer accepts these at the start, and sets them wherever a client's transaction runs.
TRACKED = ("application_name", "timezone")
# How long connections of the server that are older than the defaults are waited for.
OLDER_SECONDS, POLL_SECONDS = 30, 0.05
LOCK = 0x64656661  # while the defaults are compared and changed

log = structlog.stdlib.get_logger(__name__)
_ME = "(SELECT oid FROM pg_roles WHERE rolname = current_user)"
_HERE = "(SELECT oid FROM pg_database WHERE datname = current_database())"
_DEFAULTS = f"SELECT unnest(setconfig) FROM pg_db_role_setting WHERE setrole = {_ME} AND setdatabase = {_HERE}"  # noqa: S608
_OLDER = (
    "SELECT count(*) FILTER (WHERE NOT CASE WHEN state = 'idle' THEN pg_terminate_backend(pid) ELSE false END)"
    " FROM pg_stat_activity WHERE usename = current_user AND datname = current_database() AND backend_start < $1"
    " AND pid <> pg_backend_pid()"
)
_OTHERS = (
    "SELECT name || ' = ' || current_setting(name) FROM unnest($1::text[], $2::text[]) AS wanted (name, value)"
    " WHERE current_setting(name) <> value"
)


def assignments(settings: Mapping[str, str]) -> str:
    """SQL that sets them for the session, in one round trip."""
    return "; ".join(f"SET {name} = {literal(value)}" for name, value in settings.items())


async def keep_as_defaults(connection: asyncpg.Connection, settings: Mapping[str, str]) -> None:
    """Makes the settings the defaults of the connection's role in its database, which every role may do for itself.

    The connection leads to the server itself. If a default changes, the role's older connections, which lack it, are
    ended as soon as they are idle.
    """
    defaults = {name: value for name, value in settings.items() if name not in TRACKED}
    async with connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        kept = dict(row[0].split("=", 1) for row in await connection.fetch(_DEFAULTS))
        changed = {name: value for name, value in defaults.items() if kept.get(name) != value}
        names = await connection.fetchrow("SELECT current_user::text, current_database()::text")
        assert names is not None
        role, database = names
        place = f"{identifier(role)} IN DATABASE {identifier(database)}"
        for name, value in changed.items():
            await connection.execute(f"ALTER ROLE {place} SET {name} TO {literal(value)}")
    if changed:
        await _end_older(connection)


async def _end_older(connection: asyncpg.Connection) -> None:
    changed_at = await connection.fetchval("SELECT clock_timestamp()")
    for _ in range(int(OLDER_SECONDS / POLL_SECONDS)):
        older_count = await connection.fetchval(_OLDER, changed_at)
        if not older_count:
            return
        await asyncio.sleep(POLL_SECONDS)
    log.warning("connections_without_defaults", count=older_count)


async def refuse_others(connection: asyncpg.Connection, settings: Mapping[str, str]) -> None:
    """Raises SettingsError if the connection, one of the pooler's, has other settings: it signs in as another role."""
    # On a Unix socket, as a pooler may use it, the server says 0 for those of TCP.
    expected = {name: value for name, value in settings.items() if not name.startswith("tcp_")}
    if different := await connection.fetch(_OTHERS, list(expected), list(expected.values())):
        raise SettingsError(
            f"the pooler at MAKEREADY_DATABASE_URL gives connections with {different[0][0]}: it must sign in at the "
            "server as the URL's role, whose defaults the service has set, and set nothing itself."
        )


async def keeps_statements(connection: asyncpg.Connection) -> bool:
    """Whether a named statement is found again on another connection of the server, as PgBouncer from 1.21 on does it:
    there the statement has a name of the pooler's. The connection has no cache of statements."""
    name = f"makeready_{uuid.uuid4().hex}"
    async with connection.transaction():
        prepared = await connection.prepare("SELECT 1", name=name)
        is_bare = await connection.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE name = $1", name)
        if is_bare:
            await connection.execute(f"DEALLOCATE {name}")
    del prepared
    return not is_bare
