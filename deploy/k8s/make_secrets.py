"""Makes an installation's secrets as files that kustomize reads: keys, passwords, URLs, and the databases' SQL.

`python deploy/k8s/make_secrets.py FOLDER --database-host HOST[:PORT] --database-ca FILE`. What the folder already has
is left unchanged, so a second run needs no options and adds only what is missing: a file, or a ring of keys that a new
release asks for. `--nats-servers` alone changes what is there: the servers in the URLs of NATS. Each run rewrites
`databases.sql`, for psql and the administrator of the PostgreSQL server, and the ring of public keys from the other
files. The SQL may be run again at any time; it also hands the tables of release 0.2.0 over to their owner.
"""

import argparse
import base64
import os
import re
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from chassis.auth.identity import make_keys
from chassis.db import roles

SERVICES = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
CONSOLE = "console"
WITH_DATABASES = (*SERVICES, CONSOLE)
ISSUERS = (*SERVICES, CONSOLE, "operator")
CA_FILE = "/etc/makeready/database-ca/ca.crt"
KEY_BYTES = 32
# The rings of keys that a service needs.
RINGS = {"gateway": ("cursor-keys", "key-check-secrets", "totp-keys"), "svc-webhooks": ("vault-keys",)}
PARTITIONED = ("svc-webhooks",)  # makes and drops the partitions of its days itself
PREFIX = re.compile(r"((?!pg_)[a-z][a-z0-9_]{0,31})?")
# Of NATS, by the number of servers.
PLACES = {1: ["nats:4222"], 3: [f"nats-{number}.nats:4222" for number in range(3)]}
CONNECTIONS = 40  # by default, of each service's role: three pods and one that replaces another


def main() -> None:
    arguments = parsed()
    folder: Path = arguments.folder
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_keys(folder / "identity", list(ISSUERS))
        if not (folder / "ca.crt").exists():
            if arguments.database_ca is None:
                raise SystemExit("make_secrets: --database-ca is needed: no certificates are kept yet")
            keep(folder / "ca.crt", arguments.database_ca.read_text())
        for service in WITH_DATABASES:
            if not (folder / f"{service}.env").exists():
                if arguments.database_host is None:
                    raise SystemExit(f"make_secrets: --database-host is needed: {service} has no URL yet")
                url = database_url(service, arguments.database_host, arguments.database_prefix)
                keep(folder / f"{service}.env", lines({"database-url": url}))
            if arguments.database_direct_host is not None:
                add_direct_url(folder / f"{service}.env", arguments.database_direct_host)
            add_rings(folder / f"{service}.env", RINGS.get(service, ()))
            owner_url = owner_url_of(value_of(folder, service, "database-direct-url") or value_of(folder, service))
            keep(folder / f"{service}-owner.env", lines({"database-url": owner_url}))
        password = new_password()
        keep(folder / "valkey.env", lines({"password": password, "url": f"valkey://:{password}@valkey:6379"}))
        add_nats(folder, arguments.nats_servers)
        (folder / "databases.sql").unlink(missing_ok=True)
        keep(folder / "databases.sql", databases_sql(folder, arguments.role_connections))
    except OSError as error:
        raise SystemExit(f"make_secrets: {error.filename}: {error.strerror}") from None
    sys.stdout.write(f"The secrets are in {folder}; the databases' administrator runs {folder / 'databases.sql'}.\n")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Makes the missing secrets of an installation.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--database-host", metavar="HOST[:PORT]", help="of the PostgreSQL server, or of its pooler")
    parser.add_argument(
        "--database-direct-host", metavar="HOST[:PORT]", help="of the PostgreSQL server, if the other is a pooler's"
    )
    parser.add_argument("--database-ca", type=Path, metavar="FILE", help="certificates that vouch for it, in PEM")
    parser.add_argument(
        "--database-prefix",
        metavar="PREFIX",
        default="",
        help="of the names of databases and roles, so that installations can share a server",
    )
    parser.add_argument(
        "--role-connections",
        metavar="N",
        type=int,
        default=CONNECTIONS,
        help=f"the connection limit of each service's role (default {CONNECTIONS})",
    )
    parser.add_argument(
        "--nats-servers",
        metavar="N",
        type=int,
        choices=tuple(PLACES),
        help="1, or 3 with the component nats-ha; changes URLs that the folder has (default 1, or as they are)",
    )
    arguments = parser.parse_args()
    if not PREFIX.fullmatch(arguments.database_prefix):
        parser.error(
            "--database-prefix must be a to z, 0 to 9 and _, at most 32, and begin with a letter, not with pg_"
        )
    if not 2 <= arguments.role_connections <= 10_000:
        parser.error("--role-connections must be from 2 to 10000")
    return arguments


def new_password() -> str:
    """A password that needs no quoting in a URL, in SQL or in a shell, and that no parser takes for a number."""
    return "p" + secrets.token_hex(KEY_BYTES)


def add_rings(path: Path, names: Sequence[str]) -> None:
    """Adds the rings that a service's file lacks, each with one key."""
    text = path.read_text()
    present = {line.partition("=")[0] for line in text.splitlines()}
    if missing := [name for name in names if name not in present]:
        if text and not text.endswith("\n"):
            text += "\n"
        rings = {name: f"k1:{base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}" for name in missing}
        write(path, text + lines(rings))


def add_nats(folder: Path, servers: int | None) -> None:
    """Adds the users of NATS that are missing, each with a password and its URLs, and the password with which several
    servers connect to each other. servers: how many all URLs then name; None: as many as those that are kept."""
    operator, users = folder / "nats.env", folder / "nats-users.env"
    of_operator, of_users = (values_of(file) if file.exists() else {} for file in (operator, users))
    password = of_operator.setdefault("password", new_password())
    if servers or "url" not in of_operator:
        of_operator["url"] = nats_url("makeready", password, PLACES[servers or 1])
    places = [one.rpartition("@")[2] for one in of_operator["url"].split(",")]
    if len(places) > 1:
        of_operator.setdefault("routes-password", new_password())
    for name in (*SERVICES, CONSOLE):
        password = of_users.setdefault(f"{name}-password", new_password())
        if servers or f"{name}-url" not in of_users:
            of_users[f"{name}-url"] = nats_url(name, password, places)
    for file, values in ((operator, of_operator), (users, of_users)):
        if not file.exists() or values != values_of(file):
            write(file, lines(values))


def nats_url(user: str, password: str, places: Sequence[str]) -> str:
    """The user's URLs of all servers, as MAKEREADY_NATS_URL has them."""
    return ",".join(f"nats://{user}:{password}@{place}" for place in places)


def values_of(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)


def database_url(service: str, host: str, prefix: str) -> str:
    """The service's URL; role and database have the name of its context, after the prefix."""
    name = prefix + service.removeprefix("svc-")
    return f"postgresql://{name}:{new_password()}@{host}/{name}?sslmode=verify-full&sslrootcert={CA_FILE}"


def add_direct_url(path: Path, host: str) -> None:
    """Adds the URL of the server itself, if the service's file lacks it."""
    text = path.read_text()
    if "database-direct-url=" not in text:
        url = urlsplit(value_of(path.parent, path.stem))
        direct_url = url._replace(netloc=f"{url.username}:{url.password}@{host}").geturl()
        write(path, text.rstrip("\n") + "\n" + lines({"database-direct-url": direct_url}))


def owner_url_of(url: str) -> str:
    """The URL of the role that owns the tables and migrates, with a new password, from the service's URL."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{parts.username}{roles.OWNER}:{new_password()}@{place}").geturl()


def databases_sql(folder: Path, connections: int) -> str:
    """SQL for psql that makes, or takes over, the databases and roles of all services.

    Every database is closed to the roles of the others.
    """
    text = [
        "-- For psql, as the administrator of the server. It may be run again at any time.",
        "\\set ON_ERROR_STOP on",
    ]
    for service in WITH_DATABASES:
        url, owner_url = urlsplit(value_of(folder, service)), urlsplit(value_of(folder, f"{service}-owner"))
        name, password, owner_password = url.username or "", url.password or "", owner_url.password or ""
        is_partitioned = service in PARTITIONED
        made = roles.make_roles(name, password, owner_password, connections, partitions=is_partitioned)
        text += [f"{statement};" for statement in made]
        missing = f"NOT EXISTS (SELECT FROM pg_database WHERE datname = {roles.literal(name)})"
        text.append(f"SELECT {roles.literal(roles.make_database(name))} WHERE {missing} \\gexec")
    for service in WITH_DATABASES:
        name = urlsplit(value_of(folder, service)).username or ""
        text += [f"\\connect {name}", "BEGIN;", *(f"{statement};" for statement in roles.take_over(name)), "COMMIT;"]
        # After a change of the owner, which would take the old owner's right to connect with it.
        text += [f"{statement};" for statement in roles.close_database(name)]
    return "\n".join(text) + "\n"


def value_of(folder: Path, service: str, name: str = "database-url") -> str:
    """A URL in the service's file; "" if it has no other than the database's."""
    for line in (folder / f"{service}.env").read_text().splitlines():
        if line.startswith(f"{name}="):
            return line.removeprefix(f"{name}=")
    if name != "database-url":
        return ""
    raise SystemExit(f"make_secrets: {folder / service}.env names no database-url")


def lines(values: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())


def keep(path: Path, text: str) -> None:
    """Writes a file that only its owner can read; an existing file stays unchanged."""
    if not path.exists():
        write(path, text)


def write(path: Path, text: str) -> None:
    """Writes a file that only its owner can read, whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    part.rename(path)


if __name__ == "__main__":
    main()
