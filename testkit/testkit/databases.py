"""The two URLs of a test's database: of the owner's role, which may do anything, and of the service's role."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import asyncpg

from chassis.db.roles import OWNER, grant
from makeready_local.children import LocalError
from makeready_local.databases import execute

# The settings of a process that goes through a pooler, by the server's own URL; set where the tests run with one.
through: Callable[[str], dict[str, str]] | None = None


def service_url(owner_url: str) -> str:
    """The URL of the service's role, from the URL that `PostgresServer.create_database` returns."""
    parts = urlsplit(owner_url)
    user, colon, password_and_host = parts.netloc.partition(":")
    assert user.endswith(OWNER), "not the URL of an owner"
    return parts._replace(netloc=user.removesuffix(OWNER) + colon + password_and_host).geturl()


def environment(owner_url: str) -> dict[str, str]:
    """The settings with which a service migrates as the owner and serves with its own role."""
    url = service_url(owner_url)
    settings = {"MAKEREADY_DATABASE_URL": url} if through is None else through(url)
    return settings | {"MAKEREADY_DATABASE_OWNER_URL": owner_url}


async def grant_to_service(owner_url: str) -> None:
    """Gives the service's role its privileges, as a migration does, on tables that a test made itself."""
    connection = await asyncpg.connect(owner_url)
    try:
        await connection.execute(grant(urlsplit(service_url(owner_url)).username or ""))
    finally:
        await connection.close()


def drop_database(administrative_url: str, name: str) -> None:
    """Drops database `name` if it exists, even while clients are connected."""
    execute(administrative_url, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def server_answers(url: str) -> bool:
    """Whether a sign-in succeeds."""
    try:
        execute(url, "SELECT 1")
    except LocalError:
        return False
    return True
