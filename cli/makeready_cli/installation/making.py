"""Makes the secrets that an installation lacks, and the SQL that makes its databases."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from chassis.auth.identity import make_keys
from chassis.db import roles
from makeready_cli.errors import CommandError
from makeready_cli.installation.folder import (
    CONSOLE,
    ISSUERS,
    RINGS,
    SERVICES,
    WITH_DATABASES,
    keep,
    lines,
    text,
    values,
    values_of,
    write,
)

CA_FILE = "/etc/makeready/database-ca/ca.crt"
KEY_BYTES = 32
PARTITIONED = ("gateway", "svc-webhooks")  # make and drop the partitions of their days themselves
# Of NATS, by the number of servers.
PLACES = {1: ["nats:4222"], 3: [f"nats-{number}.nats:4222" for number in range(3)]}
CONNECTIONS = 40  # by default, of each service's role: three pods and one that replaces another


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the folder cannot know. None: as it has it, or a CommandError if it has nothing."""

    database_host: str | None = None
    """HOST[:PORT] of the PostgreSQL server, or of its pooler."""
    database_direct_host: str | None = None
    """Of the server, if the other is a pooler's."""
    database_ca: Path | None = None
    """The file of certificates, in PEM."""
    database_prefix: str | None = None
    """None or as it is; another one is refused, for the databases have their names."""
    role_connections: int = CONNECTIONS
    nats_servers: int | None = None


def make_missing(folder: Path, settings: Wanted) -> None:
    """Makes what the folder lacks, and writes `databases.sql` and the ring of public keys anew from the other files.

    The servers and the certificates that `settings` names replace those of the folder; passwords and keys stay. Raises
    CommandError and OSError.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for service in WITH_DATABASES:
        _check_prefix(folder, service, settings.database_prefix)
    make_keys(folder / "identity", list(ISSUERS))
    if settings.database_ca is not None:
        write(folder / "ca.crt", settings.database_ca.read_text())
    elif not (folder / "ca.crt").exists():
        raise CommandError("--database-ca is needed: no certificates are kept yet.")
    for service in WITH_DATABASES:
        _write_database_urls(folder, service, settings)
        _add_rings(folder / f"{service}.env", RINGS.get(service, ()))
    password = new_password()
    keep(folder / "valkey.env", lines({"password": password, "url": f"valkey://:{password}@valkey:6379"}))
    _add_nats(folder, settings.nats_servers)
    write_databases_sql(folder, settings.role_connections)


def new_password() -> str:
    """A password that needs no quoting in a URL, in SQL or in a shell, and that no parser takes for a number."""
    return "p" + secrets.token_hex(KEY_BYTES)


def new_key() -> str:
    """256 random bits in base64, as a ring has them."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def _add_rings(path: Path, names: Sequence[str]) -> None:
    """Adds the rings that a service's file lacks, each with one key."""
    content = path.read_text()
    if missing := [name for name in names if name not in values_of(content)]:
        if content and not content.endswith("\n"):
            content += "\n"
        write(path, content + lines({name: f"k1:{new_key()}" for name in missing}))


def _add_nats(folder: Path, servers: int | None) -> None:
    """Adds the users of NATS that are missing, each with a password and its URLs, and the password with which several
    servers connect to each other. servers: how many all URLs then name; None: as many as those that are kept."""
    operator, users = folder / "nats.env", folder / "nats-users.env"
    of_operator, of_users = (values_of(file.read_text()) if file.exists() else {} for file in (operator, users))
    password = of_operator.setdefault("password", new_password())
    if servers or "url" not in of_operator:
        of_operator["url"] = _nats_url("makeready", password, PLACES[servers or 1])
    places = [place.rpartition("@")[2] for place in of_operator["url"].split(",")]
    if len(places) > 1:
        of_operator.setdefault("routes-password", new_password())
    for name in (*SERVICES, CONSOLE):
        password = of_users.setdefault(f"{name}-password", new_password())
        if servers or f"{name}-url" not in of_users:
            of_users[f"{name}-url"] = _nats_url(name, password, places)
    for file, urls in ((operator, of_operator), (users, of_users)):
        if not file.exists() or urls != values_of(file.read_text()):
            write(file, lines(urls))


def _nats_url(user: str, password: str, places: Sequence[str]) -> str:
    """The user's URLs of all servers, as MAKEREADY_NATS_URL has them."""
    return ",".join(f"nats://{user}:{password}@{place}" for place in places)


def _check_prefix(folder: Path, service: str, prefix: str | None) -> None:
    """Raises CommandError if the service's database has another prefix."""
    if prefix is None or not (folder / f"{service}.env").exists():
        return
    name, new_name = urlsplit(_url_of(folder, service)).username, _database_name(service, prefix)
    if name != new_name:
        raise CommandError(f"--database-prefix cannot change: the database is {name}, and would be {new_name}.")


def _database_name(service: str, prefix: str) -> str:
    """The name of the service's database and of its role: that of its context, after the prefix."""
    return prefix + service.removeprefix("svc-")


def _write_database_urls(folder: Path, service: str, settings: Wanted) -> None:
    """Writes the URLs of the service and of the role that owns the tables and migrates. A URL that is there keeps its
    password, and has another server only if `settings` names one."""
    path, owner_path = folder / f"{service}.env", folder / f"{service}-owner.env"
    of_service = values_of(path.read_text()) if path.exists() else {}
    if "database-url" not in of_service:
        if settings.database_host is None:
            raise CommandError(f"--database-host is needed: {service} has no URL yet.")
        name = _database_name(service, settings.database_prefix or "")
        of_service["database-url"] = (
            f"postgresql://{name}:{new_password()}@{settings.database_host}/{name}"
            f"?sslmode=verify-full&sslrootcert={CA_FILE}"
        )
    elif settings.database_host is not None:
        of_service["database-url"] = _at(of_service["database-url"], settings.database_host)
    if settings.database_direct_host is not None:
        of_service["database-direct-url"] = _at(of_service["database-url"], settings.database_direct_host)
    of_server = urlsplit(of_service.get("database-direct-url", of_service["database-url"]))
    place = of_server.netloc.rpartition("@")[2]
    if not owner_path.exists():
        netloc = f"{of_server.username}{roles.OWNER}:{new_password()}@{place}"
        owner_url = of_server._replace(netloc=netloc).geturl()
    elif settings.database_host is None and settings.database_direct_host is None:
        owner_url = _url_of(folder, f"{service}-owner")
    else:
        owner_url = _at(_url_of(folder, f"{service}-owner"), place)
    for file, urls in ((path, of_service), (owner_path, {"database-url": owner_url})):
        if not file.exists() or urls != values_of(file.read_text()):
            write(file, lines(urls))


def _at(url: str, place: str) -> str:
    """The URL with another server, HOST[:PORT]; its role, password and database stay."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@{place}").geturl()


def _url_of(folder: Path, name: str) -> str:
    """The database's URL in NAME.env. Raises CommandError if there is none."""
    if (url := values(folder, name).get("database-url")) is None:
        raise CommandError(f"{folder / name}.env names no database-url.")
    return url


def write_databases_sql(folder: Path, connections: int) -> None:
    """Writes the SQL for psql that makes, or takes over, the databases and roles of all services.

    Every database is closed to the roles of the others. connections: the limit of each service's role.
    """
    statements = [
        "-- For psql, as the administrator of the server. It may be run again at any time.",
        "\\set ON_ERROR_STOP on",
    ]
    for service in WITH_DATABASES:
        url, owner_url = urlsplit(_url_of(folder, service)), urlsplit(_url_of(folder, f"{service}-owner"))
        name, password, owner_password = url.username or "", url.password or "", owner_url.password or ""
        is_partitioned = service in PARTITIONED
        of_roles = roles.make_roles(name, password, owner_password, connections, partitions=is_partitioned)
        statements += [f"{statement};" for statement in of_roles]
        missing = f"NOT EXISTS (SELECT FROM pg_database WHERE datname = {roles.literal(name)})"
        statements.append(f"SELECT {roles.literal(roles.make_database(name))} WHERE {missing} \\gexec")
    for service in WITH_DATABASES:
        name = urlsplit(_url_of(folder, service)).username or ""
        statements += [
            f"\\connect {name}",
            "BEGIN;",
            *(f"{statement};" for statement in roles.take_over(name)),
            "COMMIT;",
            # After a change of the owner, which would take the old owner's right to connect with it.
            *(f"{statement};" for statement in roles.close_database(name)),
        ]
    write(folder / "databases.sql", "\n".join(statements) + "\n")


def connections_of(folder: Path) -> int:
    """The connection limit that `databases.sql` has; the default where there is none yet."""
    path = folder / "databases.sql"
    if not path.exists():
        return CONNECTIONS
    _, limit, after_limit = text(path).partition("NOINHERIT CONNECTION LIMIT ")
    return int(after_limit.split()[0]) if limit else CONNECTIONS
