"""A database and roles for each service, on a server of which the runner is administrator."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

from chassis.db import roles
from makeready_local.children import LocalError

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class ServiceDatabase:
    """A service's database by two URLs: of the service's role, and of the role that owns the tables and migrates."""

    url: str
    owner_url: str


def make_service_database(
    administrative_url: str, name: str, password: str, owner_password: str, connections: int, *, partitions: bool
) -> ServiceDatabase:
    """Makes database `name` and its roles (see `chassis.db.roles`) if they are missing, and closes it to other roles.

    A database of release 0.2.0, whose tables the service's role owns, is handed over to the owner. connections: the
    limit of the service's role. partitions: the service makes and drops partitions. Raises LocalError.
    """
    _check_name(name)
    _run(_make_service_database(administrative_url, name, password, owner_password, connections, partitions))
    owner_url = url_for(administrative_url, name, owner_password, role=name + roles.OWNER)
    return ServiceDatabase(url_for(administrative_url, name, password), owner_url)


def make_database(administrative_url: str, name: str, password: str) -> str:
    """Makes database and role `name` if they are missing; the role owns the database, which is closed to others.

    Returns the role's URL, with this password. `name` must be a plain identifier. Raises LocalError.
    """
    _check_name(name)
    _run(_make_database(administrative_url, name, password))
    return url_for(administrative_url, name, password)


def execute(url: str, *statements: str) -> None:
    """Runs the statements one after the other, each in a separate transaction. Raises LocalError."""
    _run(_execute(url, *statements))


def url_for(administrative_url: str, name: str, password: str, role: str = "") -> str:
    """The URL of database `name` on the same server, with the same parameters. role: by default `name`, too."""
    parts = urlsplit(administrative_url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role or name}:{quote(password, safe='')}@{place}", path=f"/{name}"))


def close_own_databases(administrative_url: str) -> None:
    """On the runner's own server, closes the databases that every server has to all but the administrator."""
    closing = "REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC"
    execute(administrative_url, closing)


def revision(url: str) -> str | None:
    """Alembic's revision of the database; None if it has none or the sign-in fails."""
    try:
        return _run(_revision(url))
    except LocalError:
        return None


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise ValueError(f"not a plain identifier: {name!r}")


async def _make_service_database(
    administrative_url: str, name: str, password: str, owner_password: str, connections: int, partitions: bool
) -> None:
    role_statements = roles.make_roles(name, password, owner_password, connections, partitions=partitions)
    connection = await _connect(administrative_url)
    try:
        await _statements(connection, administrative_url, role_statements)
        owner = await connection.fetchval(
            "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = $1::text", name
        )
        if owner is None:
            await connection.execute(roles.make_database(name))
        elif owner != name + roles.OWNER:
            inside = await _connect(_in_database(administrative_url, name))
            try:
                async with inside.transaction():  # also the database's owner changes here
                    await _statements(inside, administrative_url, roles.take_over(name))
            finally:
                await inside.close()
        await _statements(connection, administrative_url, roles.close_database(name))
    finally:
        await connection.close()


async def _statements(connection: "asyncpg.Connection[asyncpg.Record]", url: str, statements: Sequence[str]) -> None:
    try:
        for statement in statements:
            await connection.execute(statement)
    except asyncpg.PostgresError as error:
        raise LocalError(f"the roles of the databases cannot be made at {_place(url)}: {error}") from None


def _in_database(administrative_url: str, name: str) -> str:
    """The administrator's URL of another database."""
    return urlunsplit(urlsplit(administrative_url)._replace(path=f"/{name}"))


async def _make_database(administrative_url: str, name: str, password: str) -> None:
    connection = await _connect(administrative_url)
    try:
        # These statements take no parameters for names and passwords; format() quotes them.
        if not await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", name):
            await connection.execute(f'CREATE ROLE "{name}" LOGIN')
        form = "SELECT format('ALTER ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)"
        await connection.execute(await connection.fetchval(form, name, password))
        if not await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
            # Only a member of a role may make a database that the role owns.
            await connection.execute(f'GRANT "{name}" TO CURRENT_USER')
        if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name):
            await connection.execute(f'CREATE DATABASE "{name}" OWNER "{name}" TEMPLATE template0 ENCODING \'UTF8\'')
        await connection.execute(f'REVOKE CONNECT, TEMPORARY ON DATABASE "{name}" FROM PUBLIC')
    finally:
        await connection.close()


async def _revision(url: str) -> str | None:
    connection = await _connect(url)
    try:
        version: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
    except asyncpg.UndefinedTableError:
        return None
    finally:
        await connection.close()
    return version


async def _execute(url: str, *statements: str) -> None:
    connection = await _connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def _connect(url: str) -> "asyncpg.Connection[asyncpg.Record]":
    try:
        return await asyncpg.connect(url, timeout=20)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        reason = str(error) or type(error).__name__
        raise LocalError(f"the database server at {_place(url)} cannot be used: {reason}") from None


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or 5432}"


def _run(work: Coroutine[object, None, Answer]) -> Answer:
    """Runs it in a separate thread: the caller may be inside an event loop."""
    outcome: list[Answer] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
