"""The runner's settings from the environment; a bad one ends the start with one line."""

import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from chassis.runtime import settings as service_settings
from chassis.runtime.settings import is_loopback
from makeready_cli.streams import CONSOLE, SERVICES
from makeready_local.children import LocalError

PREFIX_LENGTH_MAX = 32  # the longest name, …occupancy_owner, stays below PostgreSQL's 63
_PREFIX = re.compile(rf"(?!pg_)[a-z][a-z0-9_]{{0,{PREFIX_LENGTH_MAX - 1}}}")


class SettingsError(LocalError):
    """A malformed setting: exit status 2."""


@dataclass(frozen=True)
class Settings:
    """The settings of `make run`; all other variables go to the services unchanged."""

    state_dir: Path
    api_host: str
    local_host: str
    api_port: int
    admin_port: int
    api_url: str
    local_api_url: str
    console_url: str
    local_console_url: str
    links_url: str
    database_url: str | None
    database_prefix: str
    role_connections: int
    nats_url: str | None
    nats_users: Mapping[str, str]
    nats_replicas: int | None
    nats_tls: ssl.SSLContext | None
    demo: bool


def read(environment: Mapping[str, str]) -> Settings:
    """Reads the settings. Raises SettingsError."""
    api_port = _port(environment, "MAKEREADY_API_PORT", 8080)
    admin_port = _port(environment, "MAKEREADY_ADMIN_PORT", 8081)
    if api_port == admin_port:
        raise SettingsError(f"MAKEREADY_API_PORT and MAKEREADY_ADMIN_PORT are both {api_port}: give two")
    host = environment.get("MAKEREADY_API_HOST") or "127.0.0.1"
    if not _is_own(host):
        raise SettingsError("MAKEREADY_API_HOST must be an address or a name of this machine")
    local_host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    host_in_urls = f"[{local_host}]" if ":" in local_host else local_host
    scheme = "https" if environment.get("MAKEREADY_TLS_CERT_FILE") else "http"
    # Passkeys need a name: browsers take none at an address.
    name = "localhost" if is_loopback(local_host) else host_in_urls
    console_url = _console_url(environment) or f"{scheme}://{name}:{admin_port}"
    local_api_url = f"{scheme}://{host_in_urls}:{api_port}/api/v1"
    demo = environment.get("MAKEREADY_DEMO") or "1"
    if demo not in ("0", "1"):
        raise SettingsError("MAKEREADY_DEMO must be 0 or 1")
    nats = _nats(environment)
    return Settings(
        state_dir=_folder(environment, "MAKEREADY_STATE_DIR", ".state"),
        api_host=host,
        local_host=local_host,
        api_port=api_port,
        admin_port=admin_port,
        api_url=_url(environment, "MAKEREADY_API_URL", "http", "https") or local_api_url,
        local_api_url=local_api_url,
        console_url=console_url,
        local_console_url=f"{scheme}://{host_in_urls}:{admin_port}",
        links_url=_url(environment, "MAKEREADY_LINKS_URL", "http", "https") or console_url,
        database_url=_url(environment, "MAKEREADY_DATABASE_URL", "postgresql", "postgres"),
        database_prefix=_prefix(environment, "MAKEREADY_DATABASE_PREFIX"),
        # As many processes of a service as anyone runs on one machine, and those that a restart replaces.
        role_connections=_connections(
            environment,
            "MAKEREADY_DATABASE_ROLE_CONNECTIONS",
            4 * _connections(environment, "MAKEREADY_DATABASE_CONNECTIONS", 10),
        ),
        nats_url=nats.url,
        nats_users=_nats_users(environment),
        nats_replicas=nats.replicas,
        nats_tls=nats.tls,
        demo=demo == "1",
    )


def _console_url(environment: Mapping[str, str]) -> str | None:
    """The origin of the console: cookies and passkeys are bound to one."""
    url = _url(environment, "MAKEREADY_CONSOLE_URL", "http", "https")
    if url and (urlsplit(url).path or "@" in url):
        raise SettingsError("MAKEREADY_CONSOLE_URL must be an origin: a scheme, a host and perhaps a port")
    return url


class _Nats(NamedTuple):
    """The settings of a given NATS, which the services have too."""

    url: str | None = None
    replicas: int | None = None
    tls: ssl.SSLContext | None = None


def _nats(environment: Mapping[str, str]) -> _Nats:
    if not environment.get("MAKEREADY_NATS_URL"):
        for name in ("REPLICAS", "CA_FILE", "CERT_FILE", "KEY_FILE"):
            if environment.get(f"MAKEREADY_NATS_{name}"):
                raise SettingsError(f"MAKEREADY_NATS_{name} is for the servers at MAKEREADY_NATS_URL, which is not set")
        return _Nats()
    service_environment = service_settings.Environment(environment)
    try:
        return _Nats(
            service_settings.nats_url(service_environment),
            service_settings.nats_replicas(service_environment),
            service_environment.nats_tls(),
        )
    except service_settings.SettingsError as error:
        raise SettingsError(str(error)) from None


def _nats_users(environment: Mapping[str, str]) -> dict[str, str]:
    """The passwords of the services' users on the server at MAKEREADY_NATS_URL, and of the console's, which may be
    missing; empty if the variable is not set."""
    text = environment.get("MAKEREADY_NATS_USERS")
    if not text:
        return {}
    passwords = dict(pair.strip().split(":", 1) for pair in text.split(",") if ":" in pair.strip())
    if (
        passwords.keys() - {CONSOLE} != set(SERVICES)
        or len(passwords) != text.count(",") + 1
        or not all(passwords.values())
    ):
        raise SettingsError(f"MAKEREADY_NATS_USERS must be {','.join(f'{name}:PASSWORD' for name in SERVICES)}")
    if not environment.get("MAKEREADY_NATS_URL"):
        raise SettingsError("MAKEREADY_NATS_USERS is for the server at MAKEREADY_NATS_URL, which is not set")
    return passwords


def _folder(environment: Mapping[str, str], name: str, default: str) -> Path:
    try:
        return Path(environment.get(name) or default).expanduser().absolute()
    except RuntimeError:
        raise SettingsError(f"{name} begins with the home of a user whom this machine does not know") from None


def _is_own(host: str) -> bool:
    """Whether a server on this machine could listen on the host."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        try:
            probe.bind((host, 0))
        except (OSError, UnicodeError):
            return False
    return True


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65536):
        raise SettingsError(f"{name} must be a port: a number from 1 to 65535")
    return int(text)


def _prefix(environment: Mapping[str, str], name: str) -> str:
    """The beginning of the names of databases and roles, in the form that SQL takes without quotes."""
    text = environment.get(name) or ""
    if text and not _PREFIX.fullmatch(text):
        raise SettingsError(
            f"{name} must be at most {PREFIX_LENGTH_MAX} of a to z, 0 to 9 and _, and begin with a letter, not with pg_"
        )
    return text


def _connections(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 2 <= int(text) <= 10_000):
        raise SettingsError(f"{name} must be a whole number from 2 to 10000")
    return int(text)


def _url(environment: Mapping[str, str], name: str, *schemes: str) -> str | None:
    text = environment.get(name)
    if not text:
        return None
    try:
        parts = urlsplit(text)
        good = parts.scheme in schemes and parts.hostname and parts.port != 0 and text.isprintable()
        if parts.scheme in ("http", "https"):  # a base URL, which paths are appended to
            good = good and " " not in text and not parts.query and not parts.fragment
    except ValueError:
        good = False
    if not good:
        raise SettingsError(f"{name} must be a URL that starts with {' or '.join(s + '://' for s in schemes)}")
    return text.rstrip("/")
