"""Migrations: each in a transaction, once even if started concurrently, beside readers, never back by accident."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
import sqlalchemy as sa

from chassis.db import migrations
from chassis.db.database import DatabaseUnavailable
from chassis.db.migrations import LOCK, migrate
from chassis.db.revisions import head_of
from chassis.runtime.settings import SettingsError
from testkit.patience import PATIENCE_SECONDS, eventually
from testkit.plugin import PostgresServer
from testkit.processes import free_port

PACKAGE = "package_of_migration_tests"
ENVIRONMENT = "from chassis.db.migrations import run_environment\n\nrun_environment()\n"
REVISION = """
from alembic import op

revision, down_revision, locks = {revision!r}, {down!r}, {locks!r}


def upgrade():
    for statement in {sql!r}.split("; "):
        op.execute(statement)
"""


class Package:
    """A package with migrations that a test writes."""

    def __init__(self, folder: Path) -> None:
        self._versions = folder / PACKAGE / "migrations" / "versions"
        self._versions.mkdir(parents=True)
        (folder / PACKAGE / "__init__.py").touch()
        (folder / PACKAGE / "migrations" / "env.py").write_text(ENVIRONMENT)
        self._last: str | None = None

    def add(self, revision: str, sql: str, *locks: str) -> None:
        self.path(revision).write_text(
            REVISION.format(revision=revision, down=self._last, sql=sql, locks=dict.fromkeys(locks, "ACCESS EXCLUSIVE"))
        )
        self._last = revision

    def path(self, revision: str) -> Path:
        return self._versions / f"{revision}.py"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    monkeypatch.syspath_prepend(tmp_path)
    package = Package(tmp_path)
    package.add("0001_initial", "CREATE TABLE thing (id bigint PRIMARY KEY)")
    package.add("0002_things_have_names", "ALTER TABLE thing ADD name text")
    yield package
    sys.modules.pop(PACKAGE, None)


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.create_database("chassis_migrations")


def run(url: str) -> None:
    migrate(url, PACKAGE, sa.MetaData())


def value(url: str, sql: str) -> object:
    async def ask() -> object:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    return asyncio.run(ask())


_OF_THING = "WHERE attrelid = 'thing'::regclass AND attnum > 0"
COLUMNS = f"SELECT string_agg(attname, ' ' ORDER BY attname) FROM pg_attribute {_OF_THING}"
RECORDED = "SELECT string_agg(revision, ' ' ORDER BY revision) FROM schema_revision"
AT = "SELECT version_num FROM alembic_version"


def test_an_empty_database_is_brought_to_the_newest_revision(package: Package, url: str) -> None:
    run(url)
    assert (value(url, COLUMNS), value(url, AT)) == ("id name", "0002_things_have_names")
    run(url)
    assert value(url, AT) == "0002_things_have_names", "once more is nothing more"


def test_what_was_added_since_is_done_alone(package: Package, url: str) -> None:
    run(url)
    package.add("0003_things_have_weights", "ALTER TABLE thing ADD grams integer")
    run(url)
    assert (value(url, COLUMNS), value(url, AT)) == ("grams id name", "0003_things_have_weights")


def test_a_migration_that_fails_leaves_nothing_and_those_before_it_stay(package: Package, url: str) -> None:
    package.add("0003_bad", "ALTER TABLE thing ADD grams integer; ALTER TABLE nothing ADD grams integer")
    with pytest.raises(Exception, match="nothing"):
        run(url)
    assert (value(url, COLUMNS), value(url, AT)) == ("id name", "0002_things_have_names")
    assert value(url, RECORDED) == "0001_initial 0002_things_have_names"


PROGRAM = (
    f"import sys, sqlalchemy, chassis.db.migrations as m; m.migrate(sys.argv[1], {PACKAGE!r}, sqlalchemy.MetaData())"
)


async def test_one_that_is_killed_between_two_migrations_goes_on_at_the_next_start(
    package: Package, url: str, tmp_path: Path
) -> None:
    await asyncio.to_thread(run, url)
    package.add("0003_things_have_weights", "ALTER TABLE thing ADD grams integer")
    package.add(
        "0004_waits", "CREATE TABLE other (id bigint); SELECT pg_advisory_xact_lock(7); ALTER TABLE thing ADD x int"
    )
    holder = await asyncpg.connect(url)
    await holder.execute("SELECT pg_advisory_lock(7)")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    killed = await asyncio.create_subprocess_exec(sys.executable, "-P", "-c", PROGRAM, url, env=environment)

    async def is_at_the_third() -> bool:
        return bool(await holder.fetchval(AT) == "0003_things_have_weights")

    await eventually(is_at_the_third)
    killed.kill()
    await killed.wait()
    await holder.close()
    assert await asyncio.to_thread(value, url, COLUMNS) == "grams id name"
    await asyncio.to_thread(run, url)
    assert await asyncio.to_thread(value, url, COLUMNS) == "grams id name x"
    assert str(await asyncio.to_thread(value, url, RECORDED)).endswith("0003_things_have_weights 0004_waits")


@pytest.mark.parametrize("locks", [("a", "b"), ("b", "a")])
async def test_a_reader_of_two_tables_is_never_in_a_deadlock_with_a_migration_of_both(
    package: Package, url: str, locks: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The reader holds the first table, as a join does while it waits for the second one."""
    package.add("0003_two", "CREATE TABLE a (id bigint); CREATE TABLE b (id bigint)")
    await asyncio.to_thread(run, url)
    package.add("0004_changes_both", "ALTER TABLE b ADD x int; SELECT pg_sleep(1.5); ALTER TABLE a ADD x int", *locks)
    reader, watcher = await asyncpg.connect(url), await asyncpg.connect(url)
    reading = reader.transaction()
    await reading.start()
    await reader.execute("SELECT FROM a")
    migrating = asyncio.create_task(asyncio.to_thread(run, url))
    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND NOT granted"

    async def waits_or_has_given_way() -> bool:
        return bool(await watcher.fetchval(waits)) or "migration_gives_way" in capsys.readouterr().out

    await eventually(waits_or_has_given_way)
    await reader.execute("SELECT FROM b")  # raises DeadlockDetectedError if the migration held it and waited for a
    await reading.commit()
    await migrating
    both = "SELECT count(*) FROM pg_attribute WHERE attrelid IN ('a'::regclass, 'b'::regclass) AND attname = 'x'"
    assert await watcher.fetchval(both) == 2
    for connection in (reader, watcher):
        await connection.close()


async def test_a_migration_that_never_has_its_locks_lets_readers_through_and_says_so(
    package: Package, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "ATTEMPTS", 2)
    monkeypatch.setattr(migrations, "PAUSE_SECONDS", 0.1)
    await asyncio.to_thread(run, url)
    package.add("0003_things_have_weights", "ALTER TABLE thing ADD grams integer", "thing")
    dump, reader = await asyncpg.connect(url), await asyncpg.connect(url)
    async with dump.transaction():
        await dump.execute("SELECT FROM thing")
        migrating = asyncio.create_task(asyncio.to_thread(run, url))
        while not migrating.done():
            await reader.execute("SELECT FROM thing")
        with pytest.raises(DatabaseUnavailable, match=r"in 2 attempts \(LOCK TABLE thing"):
            await migrating
    await asyncio.to_thread(run, url)
    assert await asyncio.to_thread(value, url, COLUMNS) == "grams id name"
    for connection in (dump, reader):
        await connection.close()


async def test_one_that_starts_while_another_migrates_waits_for_it(package: Package, url: str) -> None:
    other = await asyncpg.connect(url)
    await other.execute(f"SELECT pg_advisory_lock({LOCK})")
    migrating = asyncio.create_task(asyncio.to_thread(run, url))
    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await other.fetchval(waits):
            assert not migrating.done(), "it did not wait"
            await asyncio.sleep(0.02)
    assert await other.fetchval("SELECT to_regclass('thing')") is None
    await other.close()
    await migrating
    assert await asyncio.to_thread(value, url, AT) == "0002_things_have_names"


def test_a_database_of_a_later_release_that_has_had_the_newest_revision_is_left_as_it_is(
    package: Package, url: str
) -> None:
    package.add("0003_of_a_later_release", "ALTER TABLE thing ADD grams integer")
    run(url)
    package.path("0003_of_a_later_release").unlink()
    run(url)
    assert (value(url, COLUMNS), value(url, AT)) == ("grams id name", "0003_of_a_later_release")


def test_a_database_that_has_not_had_the_newest_revision_and_has_an_unknown_one_is_refused(
    package: Package, url: str
) -> None:
    """Of another line of development."""
    run(url)
    value(url, "UPDATE alembic_version SET version_num = '0003_of_another_release'")
    package.add("0003_of_this_release", "ALTER TABLE thing ADD grams integer")
    with pytest.raises(DatabaseUnavailable, match="revision 0003_of_another_release of the database is unknown here"):
        run(url)
    assert (value(url, COLUMNS), value(url, AT)) == ("id name", "0003_of_another_release")


def test_all_revisions_that_a_database_has_had_are_recorded_once(package: Package, url: str) -> None:
    run(url)
    assert value(url, RECORDED) == "0001_initial 0002_things_have_names"
    first = value(url, "SELECT max(applied_at) FROM schema_revision")
    package.add("0003_things_have_weights", "ALTER TABLE thing ADD grams integer")
    run(url)
    assert value(url, RECORDED) == "0001_initial 0002_things_have_names 0003_things_have_weights"
    assert value(url, f"SELECT count(*) FROM schema_revision WHERE applied_at <= '{first}'") == 2


def test_the_revisions_of_a_database_that_was_migrated_without_recording_them_are_filled_in(
    package: Package, url: str
) -> None:
    run(url)
    value(url, "DROP TABLE schema_revision")
    run(url)
    assert value(url, RECORDED) == "0001_initial 0002_things_have_names"


def test_the_newest_revision_is_the_last_file(package: Package) -> None:
    package.path("notes").touch()
    package.path("0009_a_copy").with_suffix(".py~").touch()
    assert head_of(PACKAGE) == "0002_things_have_names"


def test_a_database_of_before_the_first_release_is_refused(package: Package, url: str) -> None:
    run(url)
    value(url, "UPDATE alembic_version SET version_num = '0007'")
    with pytest.raises(SettingsError, match=r"before 0\.2\.0"):
        run(url)


def test_a_server_that_is_not_there_is_unavailable(package: Package) -> None:
    with pytest.raises(DatabaseUnavailable):
        run(f"postgresql://nobody@127.0.0.1:{free_port()}/nothing")


def test_a_migration_may_last_longer_than_a_request_although_its_role_serves_too(url: str, package: Package) -> None:
    """Through a pooler the timeouts of requests are defaults of the role."""
    role = urlsplit(url).username
    value(url, f"ALTER ROLE {role} IN DATABASE chassis_migrations SET statement_timeout = '100ms'")
    package.add("0003_slow", "SELECT pg_sleep(0.5)")
    run(url)
    assert value(url, "SELECT version_num FROM alembic_version") == "0003_slow"
