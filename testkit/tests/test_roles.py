"""The roles of every context's database: who may change tables, and who the audit log."""

from __future__ import annotations

import asyncio
import datetime
import importlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from chassis.db import migrations
from chassis.db.database import Database
from chassis.db.revisions import OF_MIGRATIONS
from chassis.db.roles import OWNER_CONNECTIONS, PARTITIONS
from chassis.runtime.settings import SettingsError
from makeready_local.databases import make_database, make_service_database
from svc_webhooks.events.partitions import Partitions
from testkit.databases import drop_database, service_url
from testkit.plugin import PostgresServer
from testkit.schemas import PROJECTS, folder, load, package

NOW = datetime.datetime(2026, 11, 22, 10, tzinfo=datetime.UTC)
TABLES = (
    "SELECT c.oid::regclass::text AS name, n.nspname AS schema FROM pg_class c JOIN pg_namespace n"
    " ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND n.nspname IN ('public', 'partitions') ORDER BY 1"
)
OWNED = (
    "SELECT count(*) FROM pg_class WHERE pg_get_userbyid(relowner) = current_user"
    " OR EXISTS (SELECT FROM pg_namespace WHERE pg_get_userbyid(nspowner) = current_user)"
    " OR EXISTS (SELECT FROM pg_database WHERE pg_get_userbyid(datdba) = current_user)"
)
# Of the console's database there is no audit log, and no released version.
AUDITED = tuple(project for project in PROJECTS if project != "console")
ENTRY = (
    "INSERT INTO audit (company_id, actor, action, subject, subject_id, before, after, request_id)"
    " VALUES (1, 'staff:1', 'unit.renamed', 'unit', 2, '{}', '{\"name\": \"Ada\"}', 'r')"
)


@dataclass(frozen=True)
class Context:
    project: str
    owner: asyncpg.Connection[Any]
    service: asyncpg.Connection[Any]
    service_url: str


@pytest.fixture(params=PROJECTS)
async def context(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> AsyncIterator[Context]:
    """A migrated context, and a connection of each role."""
    project: str = request.param
    name = f"roles_{package(project)}"
    owner_url = postgres_server.create_database(name)
    metadata = importlib.import_module(f"{package(project)}.tables").metadata
    await asyncio.to_thread(migrations.migrate, owner_url, package(project), metadata, name)
    url = service_url(owner_url)
    if project == "svc-webhooks":
        await Days(url).ahead()
    owner, service = await asyncpg.connect(owner_url), await asyncpg.connect(url)
    yield Context(project, owner, service, url)
    await owner.close()
    await service.close()


class Days:
    """svc-webhooks' days of events, made and dropped by the service's role."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def ahead(self) -> None:
        await self._with("ahead")

    async def drop(self, now: datetime.datetime) -> Any:
        return await self._with("drop_as_asked", now)

    async def _with(self, name: str, *arguments: Any) -> Any:
        database = Database(self._url, application="tests")
        await database.open()
        try:
            return await getattr(Partitions(database, lambda: NOW), name)(*arguments)
        finally:
            await database.close()


async def is_permitted(connection: asyncpg.Connection[Any], statement: str) -> bool:
    """Whether the role has the rights for the statement, whose effect is undone."""
    undo = connection.transaction()
    await undo.start()
    try:
        await connection.execute(statement)
    except asyncpg.InsufficientPrivilegeError:
        return False
    finally:
        await undo.rollback()
    return True


async def test_the_services_role_reads_and_writes_rows_appends_to_the_audit_log_and_changes_no_table(
    context: Context,
) -> None:
    service = context.service
    assert await service.fetchval(OWNED) == 0
    tables = [row["name"] for row in await context.owner.fetch(TABLES)]
    is_audited = context.project in AUDITED
    assert ("audit" in tables) == is_audited and {*OF_MIGRATIONS} <= {*tables}
    for table in tables:
        column = await context.owner.fetchval(
            "SELECT quote_ident(attname) FROM pg_attribute"
            " WHERE attrelid = $1::text::regclass AND attnum > 0 AND attgenerated = '' AND attidentity = '' LIMIT 1",
            table,
        )
        statements = {
            "SELECT": f"SELECT count(*) FROM {table}",
            "UPDATE": f"UPDATE {table} SET {column} = {column} WHERE false",
            "DELETE": f"DELETE FROM {table} WHERE false",
            "TRUNCATE": f"TRUNCATE {table}",
            "ALTER": f"ALTER TABLE {table} ADD more text",
            "TRIGGERS": f"ALTER TABLE {table} DISABLE TRIGGER ALL",
            "OWN": f"ALTER TABLE {table} OWNER TO CURRENT_USER",
            "RULE": f"CREATE RULE none AS ON DELETE TO {table} DO INSTEAD NOTHING",
            "DROP": f"DROP TABLE {table}",
        }
        permitted = {word for word, statement in statements.items() if await is_permitted(service, statement)}
        if table in ("audit", *OF_MIGRATIONS):
            assert permitted == {"SELECT"}, table
        elif table.startswith("partitions."):
            assert permitted == set(), table  # only through the table whose partition it is
        else:
            assert permitted == {"SELECT", "UPDATE", "DELETE"}, table
            # Imports analyze the tables that they fill.
            assert await service.fetchval("SELECT has_table_privilege($1, 'MAINTAIN')", table), table
    assert not is_audited or await is_permitted(service, ENTRY)
    for statement in (
        "CREATE TABLE more (id bigint)",
        "CREATE TEMPORARY TABLE more (id bigint)",
        "CREATE SCHEMA more",
        "CREATE FUNCTION more() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE ROLE more",
        "DROP SCHEMA public CASCADE",
        f"SET ROLE {await context.owner.fetchval('SELECT quote_ident(current_user)')}",
    ):
        assert not await is_permitted(service, statement), statement


@pytest.mark.parametrize("context", AUDITED, indirect=True)
async def test_an_entry_of_the_audit_log_stays_as_it_is_until_the_owner_forgets_a_person(context: Context) -> None:
    await context.service.execute(ENTRY)
    for statement in (
        "UPDATE audit SET actor = 'staff:2'",
        "DELETE FROM audit",
        "TRUNCATE audit",
        "SELECT FROM audit FOR UPDATE",
        "INSERT INTO audit OVERRIDING SYSTEM VALUE SELECT * FROM audit ON CONFLICT (id) DO UPDATE SET actor = 's'",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await context.service.execute(statement)
    assert await context.service.fetchval("SELECT actor FROM audit") == "staff:1"
    await context.owner.execute("UPDATE audit SET after = after - 'name'")
    assert await context.service.fetchval("SELECT after::text FROM audit") == "{}"


@pytest.mark.parametrize("context", AUDITED, indirect=True)
async def test_a_service_deletes_the_entries_of_ended_sandboxes_alone(context: Context) -> None:
    await context.service.execute(ENTRY)
    delete = "SELECT delete_audit_of_ended_company(1, 1000)"
    is_gateway = context.project == "gateway"
    columns, values = ("active, ended_at", "false, now()") if is_gateway else ("ended", "true")
    insert = f"INSERT INTO company (id, name, timezone, is_sandbox, {columns}) OVERRIDING SYSTEM VALUE VALUES"
    assert await context.service.fetchval(delete) == 0
    await context.service.execute(f"{insert} (2, 'other', 'UTC', true, {values})")
    assert await context.service.fetchval(delete) == 0
    await context.service.execute(f"{insert} (1, 'ended', 'UTC', true, {values})")
    assert await context.service.fetchval(delete) == 1
    assert await context.service.fetchval("SELECT count(*) FROM audit") == 0


async def test_the_role_of_partitions_reaches_the_partitioned_tables_alone(context: Context) -> None:
    service = context.service
    members = f"{await service.fetchval('SELECT current_user')}{PARTITIONS}"
    await service.execute(f'SET ROLE "{members}"')
    for row in await context.owner.fetch(TABLES):
        is_own = row["schema"] == "partitions" or row["name"] in ("event", "delivery", "attempt", "request")
        for statement in (f"DELETE FROM {row['name']} WHERE false", f"ALTER TABLE {row['name']} ADD more text"):
            if is_own and (row["schema"] == "public" or statement.startswith("DELETE")):
                assert await is_permitted(service, statement), statement
            elif not is_own:
                assert not await is_permitted(service, statement), statement
    if context.project in AUDITED:
        assert not await is_permitted(service, ENTRY)
        assert not await is_permitted(service, "SELECT FROM audit")
    assert not await is_permitted(service, "CREATE TABLE more (id bigint)")


@pytest.mark.parametrize("context", ["svc-webhooks"], indirect=True)
async def test_the_service_makes_and_drops_days_of_events(context: Context) -> None:
    count = "SELECT count(*) FROM pg_class WHERE relnamespace = 'partitions'::regnamespace AND relkind = 'r'"
    assert await context.owner.fetchval(count) == 3 * 4  # today and three days ahead
    assert await Days(context.service_url).drop(NOW + datetime.timedelta(days=32)) == 2
    assert await context.owner.fetchval(count) == 3 * 2


@pytest.mark.parametrize("project", AUDITED)
async def test_a_database_of_release_0_2_0_is_handed_over_with_its_rows(
    postgres_server: PostgresServer, project: str
) -> None:
    """One role owned everything: the same call that makes a new database takes it over."""
    name = f"handed_{package(project)}"
    drop_database(postgres_server.url, name)
    url = make_database(postgres_server.url, name, "old")
    await load(url, (folder(project) / "released.sql").read_text())
    connection = await asyncpg.connect(url)
    await connection.execute(
        "CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY);"
        "INSERT INTO alembic_version VALUES ('0001_initial')"
    )
    await connection.execute(ENTRY)
    await connection.close()
    metadata = importlib.import_module(f"{package(project)}.tables").metadata
    if project == "svc-webhooks":
        await Days(url).ahead()

    service_url = make_service_database(
        postgres_server.url, name, "new", "owner", 20, partitions=project in ("gateway", "svc-webhooks")
    )
    # A process of the last release that still runs keeps its access to rows.
    connection = await asyncpg.connect(service_url.url)
    assert await connection.fetchval(OWNED) == 0
    assert await is_permitted(connection, ENTRY)
    assert not await is_permitted(connection, "DELETE FROM audit")
    await connection.close()

    await asyncio.to_thread(migrations.migrate, service_url.owner_url, package(project), metadata, name)
    connection = await asyncpg.connect(service_url.url)
    assert await connection.fetchval("SELECT actor FROM audit") == "staff:1"
    assert not await is_permitted(connection, "UPDATE audit SET actor = ''")
    await connection.close()
    if project == "svc-webhooks":
        assert await Days(service_url.url).drop(NOW + datetime.timedelta(days=40)) == 4
    again = make_service_database(
        postgres_server.url, name, "new", "owner", 20, partitions=project in ("gateway", "svc-webhooks")
    )
    assert again == service_url


async def test_a_migration_of_tables_that_were_not_handed_over_says_so(postgres_server: PostgresServer) -> None:
    owner_url = postgres_server.create_database("not_handed_over")
    administrator = await asyncpg.connect(urlsplit(postgres_server.url)._replace(path="/not_handed_over").geturl())
    await administrator.execute("CREATE TABLE alembic_version (version_num text)")
    await administrator.close()
    metadata = importlib.import_module("svc_tickets.tables").metadata
    with pytest.raises(SettingsError, match=r"belong to the role \w+, not to not_handed_over_owner"):
        await asyncio.to_thread(migrations.migrate, owner_url, "svc_tickets", metadata, "not_handed_over")


async def test_roles_have_connection_limits(postgres_server: PostgresServer) -> None:
    drop_database(postgres_server.url, "limited")
    url = make_service_database(postgres_server.url, "limited", "a", "b", 2, partitions=False)
    held = [await asyncpg.connect(url.url) for _ in range(2)]
    with pytest.raises(asyncpg.TooManyConnectionsError):
        await asyncpg.connect(url.url)
    owner = await asyncpg.connect(url.owner_url)
    limits = await owner.fetch("SELECT rolname, rolconnlimit FROM pg_roles WHERE rolname LIKE 'limited%' ORDER BY 1")
    assert [tuple(row) for row in limits] == [("limited", 2), ("limited_owner", OWNER_CONNECTIONS)]
    for connection in (*held, owner):
        await connection.close()


async def test_two_prefixes_share_a_server_and_neither_enters_the_others_databases(
    postgres_server: PostgresServer,
) -> None:
    urls = []
    for prefix in ("north_", "south_"):
        drop_database(postgres_server.url, f"{prefix}tickets")
        name = f"{prefix}tickets"
        urls.append(make_service_database(postgres_server.url, name, prefix, f"{prefix}o", 5, partitions=False))
        metadata = importlib.import_module("svc_tickets.tables").metadata
        await asyncio.to_thread(migrations.migrate, urls[-1].owner_url, "svc_tickets", metadata, name)
    north, south = urls
    for url in (north.url, north.owner_url):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await asyncpg.connect(urlsplit(url)._replace(path=urlsplit(south.url).path).geturl())
    connection = await asyncpg.connect(north.url)
    await connection.execute(ENTRY)
    await connection.close()
    connection = await asyncpg.connect(south.url)
    assert await connection.fetchval("SELECT count(*) FROM audit") == 0
    await connection.close()
