"""Every migrated database equals its service's tables.py, and also serves the code of the last release."""

from __future__ import annotations

import ast
import asyncio
import importlib
import importlib.resources
import sys
from collections.abc import Callable

import pytest
from alembic import command
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, MetaData

from chassis.db import migrations
from chassis.db.revisions import OF_MIGRATIONS, head_of
from testkit.expansion import breakages
from testkit.plugin import PostgresServer
from testkit.revise import differences
from testkit.schemas import PROJECTS, declare, dump, folder, listed, load, package, read, schema, unexplained

Migrated = Callable[[str], str]


@pytest.fixture(scope="module")
def migrated(postgres_server: PostgresServer) -> Migrated:
    """The URL of a project's migrated database, which is made once."""
    urls: dict[str, str] = {}

    def url(project: str) -> str:
        if project not in urls:
            urls[project] = postgres_server.create_database(f"{package(project)}_migrated")
            migrations.migrate(urls[project], package(project), metadata_of(project))
        return urls[project]

    return url


@pytest.mark.parametrize("project", PROJECTS)
async def test_a_migrated_database_equals_the_tables_and_migrating_twice_changes_nothing(
    postgres_server: PostgresServer, migrated: Migrated, project: str
) -> None:
    name = package(project)
    metadata = metadata_of(project)
    url, declared = await asyncio.to_thread(migrated, project), postgres_server.create_database(f"{name}_declared")
    await declare(declared, metadata)
    assert await differences(url, metadata) == []
    columns = await schema(url)
    assert columns == await schema(declared)
    await asyncio.to_thread(migrations.migrate, url, name, metadata)
    assert await schema(url) == columns


# Tables, not partitions, that this transaction has locked against writers at least, with their modes.
_LOCKED = """
SELECT DISTINCT c.oid, c.relname, mode FROM pg_locks JOIN pg_class c ON c.oid = relation
WHERE pid = pg_backend_pid() AND relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""
_THERE = "SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname <> ALL ($1::text[])"
# The weakest first.
MODES = {
    "ShareLock": "SHARE",
    "ShareRowExclusiveLock": "SHARE ROW EXCLUSIVE",
    "ExclusiveLock": "EXCLUSIVE",
    "AccessExclusiveLock": "ACCESS EXCLUSIVE",
}


@pytest.mark.parametrize("project", PROJECTS)
def test_a_migration_of_several_tables_names_its_locks(postgres_server: PostgresServer, project: str) -> None:
    """Otherwise it may hold one while it waits for another, and a statement on both ends in a deadlock."""
    url = postgres_server.create_database(f"{package(project)}_locks")
    metadata = metadata_of(project)
    scripts = ScriptDirectory(str(importlib.resources.files(package(project)) / "migrations"))
    for script in reversed(list(scripts.walk_revisions())):

        def upgrade(connection: Connection, script: Script = script) -> dict[str, str]:
            """The strongest lock of each table that was there."""
            there = set(connection.exec_driver_sql(_THERE, (list(OF_MIGRATIONS),)).scalars())
            command.upgrade(migrations.alembic_config(package(project), connection, metadata), script.revision)
            locks = [(mode, name) for oid, name, mode in connection.exec_driver_sql(_LOCKED) if oid in there]
            return {name: word for mode, word in MODES.items() for lock_mode, name in locks if lock_mode == mode}

        locked = asyncio.run(migrations.with_connection(url, upgrade))
        named = getattr(script.module, "locks", {})
        assert named == (locked if named or len(locked) > 1 else {}), (script.revision, locked)


@pytest.mark.parametrize("project", PROJECTS)
def test_a_migration_has_all_that_it_runs_in_its_own_file(project: str) -> None:
    """What it imported could be changed later, and then databases would differ by the day of their migration."""
    for file in (importlib.resources.files(package(project)) / "migrations" / "versions").iterdir():
        if not file.name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
            foreign = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"alembic", "sqlalchemy"}
            assert not foreign, f"{file.name} imports {foreign}"


@pytest.mark.parametrize("project", PROJECTS)
def test_a_service_waits_for_the_newest_of_its_migrations(project: str) -> None:
    """It reads the names of the files, Alembic what is in them."""
    folder = importlib.resources.files(package(project)) / "migrations"
    assert head_of(package(project)) == ScriptDirectory(str(folder)).get_current_head()


@pytest.mark.parametrize("project", PROJECTS)
async def test_the_schema_that_is_kept_as_sql_is_what_migrations_make(migrated: Migrated, project: str) -> None:
    url = await asyncio.to_thread(migrated, project)
    assert dump(url) == (folder(project) / "current.sql").read_text(), "run `make schemas` and look at what changed"


@pytest.mark.parametrize("project", PROJECTS)
async def test_migrations_leave_the_code_of_the_last_release_what_it_uses(
    postgres_server: PostgresServer, migrated: Migrated, project: str
) -> None:
    """If it fails: add first and remove a release later, or explain in `allowed.toml` why nothing can break. What the
    next release drops is announced in `deprecated.toml`."""
    released, head = postgres_server.create_database("released"), await asyncio.to_thread(migrated, project)
    sql = (folder(project) / "released.sql").read_text()
    await load(released, sql)
    assert dump(released) == sql, "released.sql is not what `make release-contracts` wrote"
    sentences = breakages(await read(released), await read(head))
    assert unexplained(sentences, listed(project, "allowed"), listed(project, "released-deprecated")) == []


def metadata_of(project: str) -> MetaData:
    metadata: MetaData = importlib.import_module(f"{package(project)}.tables").metadata
    return metadata
