"""The folder with an installation's secrets: which files it has, and which Secrets they are.

| file | holds |
|---|---|
| `identity/NAME.jwk` | an issuer's private key; beside it `NAME-next.jwk` and `NAME-old.jwk` during a rotation |
| `identity/ring.jwks` | the public keys of all |
| `NAME.env`, `NAME-owner.env` | a process's URLs and rings of keys; the URL of the role that owns its tables |
| `nats.env`, `nats-users.env`, `valkey.env` | passwords and URLs |
| `ca.crt` | the certificates that vouch for the database's server |
| `databases.sql` | made of the others, for the administrator of the databases |
| `retired.env` | keys that are in no ring any more, for backups that need them |
"""

from __future__ import annotations

import os
from pathlib import Path

from makeready_cli.errors import CommandError

SERVICES = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
CONSOLE = "console"
WITH_DATABASES = (*SERVICES, CONSOLE)
ISSUERS = (*SERVICES, CONSOLE, "operator")
# The rings of keys that a service needs.
RINGS = {"gateway": ("cursor-keys", "key-check-secrets", "totp-keys"), "svc-webhooks": ("vault-keys",)}
RING_CONFIGMAP = "identity-ring"
RING_FILE = "ring.jwks"


def secrets_of(folder: Path) -> dict[str, dict[str, str]]:
    """The keys and values of every Secret, by its name. Raises CommandError if a file is missing."""
    secrets = {name: values(folder, name) for name in WITH_DATABASES}
    secrets |= {f"{name}-owner": values(folder, f"{name}-owner") for name in WITH_DATABASES}
    secrets |= {name: values(folder, name) for name in ("nats", "nats-users", "valkey")}
    secrets["operator"] = {}
    for name in ISSUERS:
        secrets[name]["identity.jwk"] = text(folder / "identity" / f"{name}.jwk")
    secrets["database-ca"] = {"ca.crt": text(folder / "ca.crt")}
    return secrets


def values(folder: Path, name: str) -> dict[str, str]:
    """The values in the file NAME.env. Raises CommandError if it is missing."""
    return values_of(text(folder / f"{name}.env"))


def values_of(content: str) -> dict[str, str]:
    """The values of lines NAME=VALUE."""
    return dict(line.split("=", 1) for line in content.splitlines() if "=" in line)


def lines(pairs: dict[str, str]) -> str:
    """Lines NAME=VALUE."""
    return "".join(f"{name}={value}\n" for name, value in pairs.items())


def text(path: Path) -> str:
    """A file's text. Raises CommandError."""
    try:
        return path.read_text()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}. `makeready secrets init` makes what is missing.") from None


def keep(path: Path, content: str) -> None:
    """Writes a file that only its owner can read; an existing file stays unchanged."""
    if not path.exists():
        write(path, content)


def write(path: Path, content: str) -> None:
    """Writes a file that only its owner can read, whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
