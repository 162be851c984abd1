"""Settings of the console, from the environment."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chassis.runtime import settings
from chassis.runtime.settings import Environment, Network

GATEWAY, WEBHOOKS, TICKETS = "gateway", "svc-webhooks", "svc-tickets"
# A browser has up to six connections and a live stream for each open page; an office's browsers share an address.
CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX = 6_000, 600
SERVICES = (GATEWAY, WEBHOOKS, "svc-catalog", TICKETS, "svc-occupancy")


@dataclass(frozen=True, slots=True)
class Config:
    host: str
    port: int
    tls: ssl.SSLContext | None
    connections_max: int
    connections_per_address_max: int
    trusted_proxies: tuple[Network, ...]
    """The networks of proxies whose X-Forwarded-For says who the browser is."""
    url: str
    """The console's origin, without a slash at its end."""
    api_url: str
    metrics_listen: str
    log_level: str
    drain_seconds: int
    identity_key_file: Path
    nats_url: str | None
    """Where the services send hints. None: open pages ask for what is new every 30 s."""
    nats_tls: ssl.SSLContext | None
    files_url: str
    """The store of photos and imported files."""
    database: settings.DatabaseSettings
    """The console's own database: jobs of imports."""
    import_tasks: int
    """Tasks of imports that this process works on at once; 0: other processes of the console do them."""
    addresses: Mapping[str, str]
    """The gRPC targets of SERVICES."""


def read(environment: Environment) -> Config:
    """Raises SettingsError."""
    place = settings.listening(environment, "passwords")
    port = environment.integer("MAKEREADY_ADMIN_PORT", 8081, 1, 65535)
    addresses = environment.addresses()
    return Config(
        host=place.host,
        port=port,
        tls=place.tls,
        connections_max=environment.integer("MAKEREADY_CONNECTIONS_MAX", CONNECTIONS_MAX, 1, 1_000_000),
        connections_per_address_max=environment.integer(
            "MAKEREADY_CONNECTIONS_PER_ADDRESS_MAX", CONNECTIONS_PER_ADDRESS_MAX, 1, 1_000_000
        ),
        trusted_proxies=settings.trusted_proxies(environment),
        url=settings.console_url(environment, f"{place.scheme}://localhost:{port}"),
        api_url=settings.api_url(environment, place, environment.integer("MAKEREADY_API_PORT", 8080, 1, 65535)),
        metrics_listen=environment.listen("MAKEREADY_METRICS_LISTEN", "127.0.0.1:9091"),
        log_level=settings.log_level(environment),
        drain_seconds=environment.integer("MAKEREADY_DRAIN_SECONDS", 0, 0, 60),
        nats_url=settings.nats_url(environment) if environment.optional("MAKEREADY_NATS_URL") else None,
        nats_tls=environment.nats_tls(),
        files_url=environment.text("MAKEREADY_FILES_URL"),
        database=settings.database_settings(environment, connections=4),
        import_tasks=environment.integer("MAKEREADY_IMPORT_TASKS", 2, 0, 16),
        identity_key_file=environment.file("MAKEREADY_IDENTITY_KEY_FILE"),
        addresses={name: settings.address_of(name, addresses) for name in SERVICES},
    )
