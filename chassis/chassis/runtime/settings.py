"""Settings from the environment, checked once at start; a bad one stops the start with one line."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from chassis.runtime import database_urls

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
SESSION, TRANSACTION = "session", "transaction"
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

    def database_url(self, name: str) -> str:
        """A URL of PostgreSQL, perhaps of several servers."""
        value = self.text(name)
        try:
            database_urls.servers(value)
        except ValueError as error:
            raise SettingsError(f"{name} {error}.") from None
        return value

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

    def tls(self) -> ssl.SSLContext | None:
        """The context of a public port from MAKEREADY_TLS_CERT_FILE and MAKEREADY_TLS_KEY_FILE; None without them."""
        if not self._has_certificate("MAKEREADY_TLS"):
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        self._load_certificate(context, "MAKEREADY_TLS")
        return context

    def nats_tls(self) -> ssl.SSLContext | None:
        """The context for NATS, or None, if none of its settings is given. Raises SettingsError.

        MAKEREADY_NATS_CA_FILE holds the certificates that vouch for the servers; by default they are those that this
        machine trusts. MAKEREADY_NATS_CERT_FILE and MAKEREADY_NATS_KEY_FILE are for servers that ask for a client's
        certificate.
        """
        has_certificate = self._has_certificate("MAKEREADY_NATS")
        ca_file = self.file("MAKEREADY_NATS_CA_FILE") if self.optional("MAKEREADY_NATS_CA_FILE") else None
        if not has_certificate and ca_file is None:
            return None
        try:
            context = ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError):
            raise SettingsError("MAKEREADY_NATS_CA_FILE must hold certificates in PEM.") from None
        if has_certificate:
            self._load_certificate(context, "MAKEREADY_NATS")
        return context

    def _has_certificate(self, prefix: str) -> bool:
        """Whether a certificate is given, with its key. Raises SettingsError for one without the other."""
        names = f"{prefix}_CERT_FILE", f"{prefix}_KEY_FILE"
        is_set = [self.optional(name) is not None for name in names]
        if any(is_set) and not all(is_set):
            raise SettingsError(f"{' and '.join(names)} belong together: set both or neither.")
        return all(is_set)

    def _load_certificate(self, context: ssl.SSLContext, prefix: str) -> None:
        names = f"{prefix}_CERT_FILE", f"{prefix}_KEY_FILE"
        try:
            certificate, key = map(self.file, names)
            context.load_cert_chain(certificate, key, password=lambda: "")  # a locked key must not ask the terminal
        except (OSError, ssl.SSLError):
            raise SettingsError(f"{' and '.join(names)} must hold a certificate and its private key in PEM.") from None


class NatsServers(NamedTuple):
    """The servers of one NATS, and the user on each of them."""

    urls: list[str]
    """Without the user."""
    is_encrypted: bool
    user: str
    """Empty if the servers ask for none."""
    password: str | None
    """None if `user` is a token."""


def nats_servers(text: str) -> NatsServers:
    """The servers of MAKEREADY_NATS_URL: URLs set apart by commas, with the user in each or in some of them.

    Raises ValueError; its text is the rest of a sentence about the setting, without the URL, which holds a password.
    """
    urls, schemes, users = [], set(), set()
    for number, server in enumerate(text.split(","), start=1):
        parts = _nats_parts(server.strip())
        if parts is None:
            which = f": the {number}. is none" if "," in text else ""
            raise ValueError(
                f"must be a URL that starts with nats:// or tls://, or several, set apart by commas{which}."
            )
        user, _, place = parts.netloc.rpartition("@")
        urls.append(f"{parts.scheme}://{place}")
        schemes.add(parts.scheme)
        users |= {user} - {""}
    if len(schemes) > 1:
        raise ValueError("must start with nats:// for all servers, or with tls:// for all.")
    if len(users) > 1:
        raise ValueError("must have the same user and password for all servers.")
    user, colon, password = "".join(users).partition(":")
    return NatsServers(urls, schemes == {"tls"}, unquote(user), unquote(password) if colon else None)


def _nats_parts(url: str) -> SplitResult | None:
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        is_server = parts.scheme in ("nats", "tls") and parts.hostname and parts.port != 0
        if (
            is_server
            and parts.path in ("", "/")
            and not parts.query + parts.fragment
            and url.isprintable()
            and " " not in url
        ):
            return parts
    return None


def nats_url(environment: Environment) -> str:
    """MAKEREADY_NATS_URL, one URL or several: see `nats_servers`. Raises SettingsError."""
    text = environment.text("MAKEREADY_NATS_URL")
    try:
        nats_servers(text)
    except ValueError as error:
        raise SettingsError(f"MAKEREADY_NATS_URL {error}") from None
    return text


def nats_replicas(environment: Environment) -> int | None:
    """MAKEREADY_NATS_REPLICAS, of the stream of events and its consumers. None if it is not set: one for a new stream,
    and as many as it has for one that exists. Raises SettingsError."""
    text = environment.optional("MAKEREADY_NATS_REPLICAS")
    if text not in (None, "1", "3", "5"):
        raise SettingsError("MAKEREADY_NATS_REPLICAS must be 1, 3 or 5.")
    return int(text) if text else None


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a public port listens."""

    host: str
    tls: ssl.SSLContext | None
    scheme: str
    """The scheme of its addresses outside: https also where the ingress ends TLS."""


def listening(environment: Environment, secrets: str) -> Listening:
    """Reads MAKEREADY_API_HOST, the TLS files and MAKEREADY_TLS_ENDS_AT_INGRESS. Raises SettingsError where
    `secrets` could travel in the clear."""
    host, tls = environment.text("MAKEREADY_API_HOST", "127.0.0.1"), environment.tls()
    ends_at_ingress = environment.integer("MAKEREADY_TLS_ENDS_AT_INGRESS", 0, 0, 1)
    if tls is None and not ends_at_ingress and not is_loopback(host):
        raise SettingsError(
            f"MAKEREADY_API_HOST is reachable from elsewhere, so {secrets} would travel in the clear: give "
            "MAKEREADY_TLS_CERT_FILE and MAKEREADY_TLS_KEY_FILE, or set MAKEREADY_TLS_ENDS_AT_INGRESS=1."
        )
    return Listening(host, tls, "https" if tls or ends_at_ingress else "http")


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def networks(text: str) -> tuple[Network, ...]:
    """The networks of a setting: CIDRs set apart by commas. Raises ValueError."""
    return tuple(ipaddress.ip_network(network.strip()) for network in text.split(",") if network.strip())


def trusted_proxies(environment: Environment) -> tuple[Network, ...]:
    """MAKEREADY_TRUSTED_PROXIES: the networks of proxies whose X-Forwarded-For counts. Raises SettingsError."""
    try:
        return networks(environment.text("MAKEREADY_TRUSTED_PROXIES", ""))
    except ValueError:
        raise SettingsError(
            "MAKEREADY_TRUSTED_PROXIES must be networks set apart by commas, as 10.42.0.0/16, with no bits set beyond "
            "the prefix."
        ) from None


def in_url(host: str) -> str:
    """The host as a URL spells it."""
    return f"[{host}]" if ":" in host else host


def api_url(environment: Environment, place: Listening, port: int) -> str:
    """MAKEREADY_API_URL, the base of the API; by default where the gateway listens. Raises SettingsError."""
    default = f"{place.scheme}://{in_url(place.host)}:{port}/api/v1"
    return environment.url("MAKEREADY_API_URL", ("http", "https"), default)


def console_url(environment: Environment, default: str = "http://localhost:8081") -> str:
    """MAKEREADY_CONSOLE_URL, the origin of the console. Raises SettingsError."""
    url = environment.url("MAKEREADY_CONSOLE_URL", ("http", "https"), default)
    parts = urlsplit(url)
    if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise SettingsError("MAKEREADY_CONSOLE_URL must be an origin: a scheme, a host and perhaps a port.")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def log_level(environment: Environment) -> str:
    """MAKEREADY_LOG_LEVEL. Raises SettingsError."""
    level = environment.text("MAKEREADY_LOG_LEVEL", "info").lower()
    if level not in ("debug", "info", "warning", "error"):
        raise SettingsError("MAKEREADY_LOG_LEVEL must be debug, info, warning or error.")
    return level


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """How a process reaches its database."""

    url: str
    direct_url: str
    """The server's own URL, for what needs a session; the same as `url` where no other one is given."""
    pooler: str
    """What `url` leads to: SESSION or TRANSACTION, a pooler by its mode, or "", the server itself."""
    connections: int
    """At most, of the process's pool."""


def database_settings(environment: Environment, connections: int = 10) -> DatabaseSettings:
    """Has so many connections by default. Raises SettingsError."""
    url = environment.database_url("MAKEREADY_DATABASE_URL")
    pooler = environment.text("MAKEREADY_DATABASE_POOLER", "")
    if pooler not in ("", SESSION, TRANSACTION):
        raise SettingsError(
            f"MAKEREADY_DATABASE_POOLER must be {SESSION} or {TRANSACTION}, the mode of the pooler at "
            "MAKEREADY_DATABASE_URL, or not be set if there is none."
        )
    direct_url = url
    if environment.optional("MAKEREADY_DATABASE_DIRECT_URL") is not None:
        direct_url = environment.database_url("MAKEREADY_DATABASE_DIRECT_URL")
        pooled, direct = urlsplit(url), urlsplit(direct_url)
        if (pooled.username, pooled.path) != (direct.username, direct.path):
            raise SettingsError(
                "MAKEREADY_DATABASE_DIRECT_URL and MAKEREADY_DATABASE_URL must name the same role and database."
            )
    elif pooler == TRANSACTION:
        raise SettingsError(
            f"MAKEREADY_DATABASE_POOLER={TRANSACTION} needs MAKEREADY_DATABASE_DIRECT_URL, the server's own URL: "
            "notifications, locks of a session and defaults of the role do not go through such a pooler."
        )
    return DatabaseSettings(
        url, direct_url, pooler, environment.integer("MAKEREADY_DATABASE_CONNECTIONS", connections, 2, 200)
    )


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The settings of every service process."""

    database: DatabaseSettings
    nats_url: str
    """One URL or several: see `nats_servers`."""
    nats_tls: ssl.SSLContext | None
    grpc_listen: str
    metrics_listen: str
    identity_key_file: Path
    identity_ring_file: Path
    links_url: str
    log_level: str
    drain_seconds: int
    connection_age_seconds: int
    """Then a client's connection ends, so that the client finds new pods."""
    relay_lease_seconds: int
    replica_check_seconds: int
    addresses: Mapping[str, str]
    """The gRPC targets of services, by context; those that are not set are absent."""

    def address(self, service: str) -> str:
        """The gRPC target of a service: that of `svc-orders` is MAKEREADY_ORDERS_ADDRESS. Raises SettingsError."""
        return address_of(service, self.addresses)


def address_of(service: str, addresses: Mapping[str, str]) -> str:
    """The gRPC target of a service, of those that `Environment.addresses` has found. Raises SettingsError."""
    context = service.removeprefix("svc-").replace("-", "_")
    if context not in addresses:
        raise SettingsError(f"MAKEREADY_{context.upper()}_ADDRESS is not set.")
    return addresses[context]


def service_settings(environment: Environment) -> ServiceSettings:
    """Reads the settings that all services share. Raises SettingsError."""
    level = log_level(environment)
    return ServiceSettings(
        database=database_settings(environment),
        nats_url=nats_url(environment),
        nats_tls=environment.nats_tls(),
        grpc_listen=environment.listen("MAKEREADY_GRPC_LISTEN", "127.0.0.1:9090"),
        metrics_listen=environment.listen("MAKEREADY_METRICS_LISTEN", "127.0.0.1:9091"),
        identity_key_file=environment.file("MAKEREADY_IDENTITY_KEY_FILE"),
        identity_ring_file=environment.file("MAKEREADY_IDENTITY_RING_FILE"),
        links_url=environment.url("MAKEREADY_LINKS_URL", ("http", "https"), console_url(environment)).rstrip("/"),
        log_level=level,
        drain_seconds=environment.integer("MAKEREADY_DRAIN_SECONDS", 0, 0, 60),
        connection_age_seconds=environment.integer("MAKEREADY_CONNECTION_AGE_SECONDS", 30, 1, 86400),
        relay_lease_seconds=environment.integer("MAKEREADY_RELAY_LEASE_SECONDS", 15, 1, 300),
        replica_check_seconds=environment.integer("MAKEREADY_REPLICA_CHECK_SECONDS", 3600, 1, 86400),
        addresses=environment.addresses(),
    )
