"""Makes an installation's secrets as files that kustomize reads: keys, passwords, URLs, and the databases' SQL.

`python deploy/k8s/make_secrets.py FOLDER --database-host HOST[:PORT] --database-ca FILE`. What the folder already has
is left unchanged, so a second run needs no options and adds only what is missing: a file, or a ring of keys that a new
release asks for. Each run rewrites `databases.sql`, for the administrator of the PostgreSQL server, and the ring of
public keys from the other files.
"""

import argparse
import base64
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from chassis.auth.identity import make_keys

SERVICES = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
ISSUERS = (*SERVICES, "operator")
CA_FILE = "/etc/makeready/database-ca/ca.crt"
KEY_BYTES = 32
# The rings of keys that a service needs.
RINGS = {"gateway": ("cursor-keys", "key-check-secrets"), "svc-webhooks": ("vault-keys",)}


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
        for service in SERVICES:
            if not (folder / f"{service}.env").exists():
                if arguments.database_host is None:
                    raise SystemExit(f"make_secrets: --database-host is needed: {service} has no URL yet")
                url = database_url(service, arguments.database_host)
                keep(folder / f"{service}.env", lines({"database-url": url}))
            add_rings(folder / f"{service}.env", RINGS.get(service, ()))
        for server, url in (("nats", "nats://makeready:{}@nats:4222"), ("valkey", "valkey://:{}@valkey:6379")):
            password = new_password()
            keep(folder / f"{server}.env", lines({"password": password, "url": url.format(password)}))
        (folder / "databases.sql").unlink(missing_ok=True)
        keep(folder / "databases.sql", "".join(database_sql(value_of(folder, service)) for service in SERVICES))
    except OSError as error:
        raise SystemExit(f"make_secrets: {error.filename}: {error.strerror}") from None
    sys.stdout.write(f"The secrets are in {folder}; the databases' administrator runs {folder / 'databases.sql'}.\n")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Makes the missing secrets of an installation.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--database-host", metavar="HOST[:PORT]", help="of the PostgreSQL server")
    parser.add_argument("--database-ca", type=Path, metavar="FILE", help="certificates that vouch for it, in PEM")
    return parser.parse_args()


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


def database_url(service: str, host: str) -> str:
    """The service's URL; role and database have the name of its context."""
    context = service.removeprefix("svc-")
    return f"postgresql://{context}:{new_password()}@{host}/{context}?sslmode=verify-full&sslrootcert={CA_FILE}"


def database_sql(url: str) -> str:
    """SQL that makes one service's role and database, and closes the database to all other roles."""
    parts = urlsplit(url)
    name = parts.username
    return (
        f"CREATE ROLE {name} LOGIN PASSWORD '{parts.password}';\n"
        f"GRANT {name} TO CURRENT_USER;\n"
        f"CREATE DATABASE {name} OWNER {name} TEMPLATE template0 ENCODING 'UTF8';\n"
        f"REVOKE CONNECT, TEMPORARY ON DATABASE {name} FROM PUBLIC;\n"
    )


def value_of(folder: Path, service: str) -> str:
    """The database URL in the service's file."""
    for line in (folder / f"{service}.env").read_text().splitlines():
        if line.startswith("database-url="):
            return line.removeprefix("database-url=")
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
