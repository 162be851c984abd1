"""Settings of the gateway, in addition to those that all services share (see `chassis.runtime.settings`)."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import ssl
from dataclasses import dataclass

from chassis.runtime.settings import Environment, ServiceSettings, SettingsError, service_settings

RING_KEY_BYTES_MIN = 16
# An API key bears the id of its ring.
KEY_CHECK_ID_CHARACTERS_MAX = 8
CONTEXTS = ("svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")


@dataclass(frozen=True, slots=True)
class Config:
    service: ServiceSettings
    api_host: str
    api_port: int
    admin_port: int
    api_url: str
    cursor_keys: dict[str, bytes]
    """By key id; the first one signs."""
    key_checks: dict[str, bytes]
    """Secrets of the checks in API keys, by ring id; new keys are of the first one."""
    rate_limit_url: str
    tls: ssl.SSLContext | None
    wait_seconds: int
    """How long the ports stay closed for services that do not serve yet."""


def read(environment: Environment) -> Config:
    """Raises SettingsError."""
    service = service_settings(environment)
    for context in CONTEXTS:
        service.address(context)  # raises where it is not set
    host = environment.text("MAKEREADY_API_HOST", "127.0.0.1")
    port = environment.integer("MAKEREADY_API_PORT", 8080, 1, 65535)
    tls = _tls(environment)
    ends_at_ingress = environment.integer("MAKEREADY_TLS_ENDS_AT_INGRESS", 0, 0, 1)
    if tls is None and not ends_at_ingress and not _is_loopback(host):
        raise SettingsError(
            "MAKEREADY_API_HOST is reachable from elsewhere, so keys would travel in the clear: give "
            "MAKEREADY_TLS_CERT_FILE and MAKEREADY_TLS_KEY_FILE, or set MAKEREADY_TLS_ENDS_AT_INGRESS=1."
        )
    scheme = "https" if tls or ends_at_ingress else "http"
    return Config(
        service=service,
        api_host=host,
        api_port=port,
        admin_port=environment.integer("MAKEREADY_ADMIN_PORT", 8081, 1, 65535),
        api_url=environment.url("MAKEREADY_API_URL", ("http", "https"), f"{scheme}://{_shown(host)}:{port}/api/v1"),
        cursor_keys=_ring(environment, "MAKEREADY_CURSOR_KEYS"),
        key_checks=_ring(environment, "MAKEREADY_KEY_CHECK_SECRETS", KEY_CHECK_ID_CHARACTERS_MAX),
        rate_limit_url=_rate_limit_url(environment),
        tls=tls,
        wait_seconds=environment.integer("MAKEREADY_WAIT_FOR_SERVICES_SECONDS", 3600, 0, 86400),
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _ring(environment: Environment, name: str, id_characters_max: int = 64) -> dict[str, bytes]:
    keys: dict[str, bytes] = {}
    for one in environment.text(name).split(","):
        key_id, colon, encoded = one.strip().partition(":")
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


def _tls(environment: Environment) -> ssl.SSLContext | None:
    given = [environment.optional(f"MAKEREADY_TLS_{part}_FILE") for part in ("CERT", "KEY")]
    if given == [None, None]:
        return None
    if None in given:
        raise SettingsError("MAKEREADY_TLS_CERT_FILE and MAKEREADY_TLS_KEY_FILE belong together: set both or neither.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        certificate, key = (environment.file(f"MAKEREADY_TLS_{part}_FILE") for part in ("CERT", "KEY"))
        context.load_cert_chain(certificate, key, password=lambda: "")  # a locked key must not ask the terminal
    except (OSError, ssl.SSLError):
        raise SettingsError(
            "MAKEREADY_TLS_CERT_FILE and MAKEREADY_TLS_KEY_FILE must hold a certificate and its private key in PEM."
        ) from None
    return context
