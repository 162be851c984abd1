"""One database and one role for each service, on a server of which the runner is administrator."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

from makeready_local.children import LocalError

Answer = TypeVar("Answer")


def make_database(administrative_url: str, name: str, password: str) -> str:
    """Makes database and role `name` if they are missing, and closes the database to other roles.

    Returns the role's URL, with this password. `name` must be a plain identifier. Raises LocalError.
    """
    if not name.isidentifier():
        raise ValueError(f"not a plain identifier: {name!r}")
    _run(_make_database(administrative_url, name, password))
    return url_for(administrative_url, name, password)


def url_for(administrative_url: str, name: str, password: str) -> str:
    """The URL of role and database `name` on the same server, with the same parameters."""
    parts = urlsplit(administrative_url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{name}:{quote(password, safe='')}@{place}", path=f"/{name}"))


def close_own_databases(administrative_url: str) -> None:
    """On the runner's own server, closes the databases that every server has to all but the administrator."""
    closing = "REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC"
    _run(_execute(administrative_url, closing))


def drop_database(administrative_url: str, name: str) -> None:
    """Drops database `name` if it exists, even while clients are connected."""
    _run(_execute(administrative_url, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))


def revision(url: str) -> str | None:
    """Alembic's revision of the database; None if it has none or the sign-in fails."""
    try:
        return _run(_revision(url))
    except LocalError:
        return None


def server_answers(url: str) -> bool:
    """Whether a sign-in succeeds."""
    try:
        _run(_execute(url, "SELECT 1"))
    except LocalError:
        return False
    return True


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
        found: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
    except asyncpg.UndefinedTableError:
        return None
    finally:
        await connection.close()
    return found


async def _execute(url: str, *statements: str) -> None:
    connection = await _connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def _connect(url: str) -> "asyncpg.Connection[Any]":
    try:
        return await asyncpg.connect(url, timeout=20)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        parts = urlsplit(url)
        place = f"{parts.hostname}:{parts.port or 5432}"
        reason = str(error) or type(error).__name__
        raise LocalError(f"the database server at {place} cannot be used: {reason}") from None


def _run(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Runs it in a thread of its own: the caller may be inside an event loop."""
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
