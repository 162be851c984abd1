"""Settings of the gateway, in addition to those that all services share (see `chassis.runtime.settings`)."""

from __future__ import annotations

import base64
import binascii
import ssl
from dataclasses import dataclass
from typing import Literal, get_args

from chassis.http.connection_limits import CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX
from chassis.runtime.settings import (
    Environment,
    Network,
    ServiceSettings,
    SettingsError,
    api_url,
    console_url,
    listening,
    service_settings,
    trusted_proxies,
)

RING_KEY_BYTES_MIN = 16
# An API key bears the id of its ring.
KEY_CHECK_ID_CHARACTERS_MAX = 8
RequestLog = Literal["all", "writes", "refused", "off"]
REQUEST_LOGS: tuple[RequestLog, ...] = get_args(RequestLog)
CONTEXTS = ("svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")


@dataclass(frozen=True, slots=True)
class Config:
    service: ServiceSettings
    api_host: str
    api_port: int
    api_url: str
    cursor_keys: dict[str, bytes]
    """By key id; the first one signs."""
    key_checks: dict[str, bytes]
    """Secrets of the checks in API keys, by ring id; new keys are of the first one."""
    totp_keys: dict[str, bytes]
    """Keys that seal the secrets of authenticator apps, by key id; the first one seals."""
    console_url: str
    """The origin of the console: passkeys are bound to it, and the links that set passwords lead there."""
    rate_limit_url: str
    tls: ssl.SSLContext | None
    connections_max: int
    connections_per_address_max: int
    trusted_proxies: tuple[Network, ...]
    request_log: RequestLog
    """Which requests of keys are logged."""
    wait_seconds: int
    """How long the gateway stays unready for services that do not serve yet. Its port is open meanwhile."""


def read(environment: Environment) -> Config:
    """Raises SettingsError."""
    service = service_settings(environment)
    for context in CONTEXTS:
        service.address(context)  # raises where it is not set
    place = listening(environment, "keys")
    port = environment.integer("MAKEREADY_API_PORT", 8080, 1, 65535)
    return Config(
        service=service,
        api_host=place.host,
        api_port=port,
        api_url=api_url(environment, place, port),
        cursor_keys=_ring(environment, "MAKEREADY_CURSOR_KEYS"),
        key_checks=_ring(environment, "MAKEREADY_KEY_CHECK_SECRETS", KEY_CHECK_ID_CHARACTERS_MAX),
        totp_keys=_ring(environment, "MAKEREADY_TOTP_KEYS"),
        console_url=console_url(environment),
        rate_limit_url=_rate_limit_url(environment),
        tls=place.tls,
        connections_max=environment.integer("MAKEREADY_CONNECTIONS_MAX", CONNECTIONS_MAX, 1, 1_000_000),
        connections_per_address_max=environment.integer(
            "MAKEREADY_CONNECTIONS_PER_ADDRESS_MAX", CONNECTIONS_PER_ADDRESS_MAX, 1, 1_000_000
        ),
        trusted_proxies=trusted_proxies(environment),
        request_log=_request_log(environment),
        wait_seconds=environment.integer("MAKEREADY_WAIT_FOR_SERVICES_SECONDS", 3600, 0, 86400),
    )


def _ring(environment: Environment, name: str, id_characters_max: int = 64) -> dict[str, bytes]:
    keys: dict[str, bytes] = {}
    for pair in environment.text(name).split(","):
        key_id, colon, encoded = pair.strip().partition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            key = b""
        is_id = colon and key_id.isascii() and key_id.isalnum() and len(key_id) <= id_characters_max
        if not is_id or len(key) < RING_KEY_BYTES_MIN or key_id in keys:
            raise SettingsError(
                f"{name} must be id:base64 pairs set apart by commas: ids of 1 to {id_characters_max} letters and "
                f"digits, each once, keys of at least {RING_KEY_BYTES_MIN} bytes."
            )
        keys[key_id] = key
    return keys


def _request_log(environment: Environment) -> RequestLog:
    text = environment.text("MAKEREADY_REQUEST_LOG", "all")
    for kept in REQUEST_LOGS:
        if text == kept:
            return kept
    raise SettingsError("MAKEREADY_REQUEST_LOG must be all, writes, refused or off.")


def _rate_limit_url(environment: Environment) -> str:
    url = environment.text("MAKEREADY_RATE_LIMIT_URL", "memory://")
    processes = environment.integer("MAKEREADY_GATEWAY_PROCESSES", 1, 1, 1000)
    scheme, mark, _ = url.partition("://")
    if not mark or scheme not in ("memory", "valkey", "valkeys", "redis", "rediss"):
        raise SettingsError("MAKEREADY_RATE_LIMIT_URL must be memory:// or the URL of a Valkey or Redis server.")
    if scheme == "memory" and processes > 1:
        raise SettingsError(
            "MAKEREADY_RATE_LIMIT_URL=memory:// counts in one process alone, but MAKEREADY_GATEWAY_PROCESSES says "
            "more: name a Valkey server that all of them share."
        )
    return url
