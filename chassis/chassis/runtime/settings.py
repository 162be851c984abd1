"""Settings from the environment, checked once at start; a bad one stops the start with one line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_ADDRESS = re.compile(r"MAKEREADY_(?P<context>[A-Z0-9_]+)_ADDRESS")


class SettingsError(Exception):
    """A setting that is missing or malformed. The text is one line for the operator."""


class Environment:
    """Typed reads of environment variables; each raises SettingsError with the variable's name."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str, default: str | None = None) -> str:
        value = self._values.get(name, default)
        if value is None:
            raise SettingsError(f"{name} is not set.")
        return value

    def optional(self, name: str) -> str | None:
        return self._values.get(name) or None

    def integer(self, name: str, default: int, minimum: int, maximum: int) -> int:
        value = self._values.get(name) or str(default)
        # int() refuses thousands of digits with a message of its own.
        if not (value.isascii() and value.isdigit() and len(value) < 20 and minimum <= int(value) <= maximum):
            raise SettingsError(f"{name} must be a whole number from {minimum} to {maximum}.")
        return int(value)

    def url(self, name: str, schemes: tuple[str, ...], default: str | None = None) -> str:
        value = self.text(name, default)
        with contextlib.suppress(ValueError):
            parts = urlsplit(value)
            if parts.scheme in schemes and parts.netloc and parts.port != 0:
                return value
        raise SettingsError(f"{name} must be a URL that starts with {' or '.join(s + '://' for s in schemes)}.")

    def listen(self, name: str, default: str) -> str:
        value = self.text(name, default)
        host, colon, port = value.rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536):
            raise SettingsError(f"{name} must be HOST:PORT.")
        return value

    def addresses(self) -> dict[str, str]:
        """The gRPC targets of services, by context: `MAKEREADY_ORDERS_ADDRESS` is that of "orders"."""
        named = ((name, _ADDRESS.fullmatch(name)) for name in self._values)
        return {match["context"].lower(): target for name, match in named if match and (target := self.optional(name))}

    def file(self, name: str) -> Path:
        path = Path(self.text(name))
        try:
            is_file = path.is_file()
        except OSError as error:  # in a folder that this process may not read
            raise SettingsError(f"{name} names a file that cannot be read: {error.strerror}.") from None
        if not is_file:
            raise SettingsError(f"{name} names a file that does not exist.")
        return path


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The settings of every service process."""

    database_url: str
    nats_url: str
    grpc_listen: str
    metrics_listen: str
    identity_key_file: Path
    identity_ring_file: Path
    links_url: str
    log_level: str
    drain_seconds: int
    database_connections: int
    relay_lease_seconds: int
    replica_check_seconds: int
    addresses: Mapping[str, str]
    """The gRPC targets of services, by context; those that are not set are absent."""

    def address(self, service: str) -> str:
        """The gRPC target of a service: that of `svc-orders` is MAKEREADY_ORDERS_ADDRESS. Raises SettingsError."""
        context = service.removeprefix("svc-").replace("-", "_")
        if context not in self.addresses:
            raise SettingsError(f"MAKEREADY_{context.upper()}_ADDRESS is not set.")
        return self.addresses[context]


def service_settings(environment: Environment) -> ServiceSettings:
    """Reads the settings that all services share. Raises SettingsError."""
    log_level = environment.text("MAKEREADY_LOG_LEVEL", "info").lower()
    if log_level not in ("debug", "info", "warning", "error"):
        raise SettingsError("MAKEREADY_LOG_LEVEL must be debug, info, warning or error.")
    return ServiceSettings(
        database_url=environment.url("MAKEREADY_DATABASE_URL", ("postgresql", "postgres")),
        nats_url=environment.url("MAKEREADY_NATS_URL", ("nats", "tls")),
        grpc_listen=environment.listen("MAKEREADY_GRPC_LISTEN", "127.0.0.1:9090"),
        metrics_listen=environment.listen("MAKEREADY_METRICS_LISTEN", "127.0.0.1:9091"),
        identity_key_file=environment.file("MAKEREADY_IDENTITY_KEY_FILE"),
        identity_ring_file=environment.file("MAKEREADY_IDENTITY_RING_FILE"),
        links_url=environment.url("MAKEREADY_LINKS_URL", ("http", "https"), "http://127.0.0.1:8081").rstrip("/"),
        log_level=log_level,
        drain_seconds=environment.integer("MAKEREADY_DRAIN_SECONDS", 0, 0, 60),
        database_connections=environment.integer("MAKEREADY_DATABASE_CONNECTIONS", 10, 2, 200),
        relay_lease_seconds=environment.integer("MAKEREADY_RELAY_LEASE_SECONDS", 15, 1, 300),
        replica_check_seconds=environment.integer("MAKEREADY_REPLICA_CHECK_SECONDS", 3600, 1, 86400),
        addresses=environment.addresses(),
    )
