"""Settings of svc-webhooks: the shared ones (see `chassis.runtime.settings`) and WEBHOOKS_*."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from chassis.runtime.settings import Environment, ServiceSettings, SettingsError, service_settings
from svc_webhooks.days import DAY, KEPT_DAYS
from svc_webhooks.rules.deliveries import LADDER_HOURS, Ladder
from svc_webhooks.rules.subscriptions import SUBSCRIPTIONS_MAX
from svc_webhooks.vault.keyring import Vault, vault_from

LONGEST = KEPT_DAYS * DAY
LOCAL_DESTINATIONS = "MAKEREADY_SANDBOX_LOCAL_DESTINATIONS"


@dataclass(frozen=True, slots=True)
class Config:
    service: ServiceSettings
    sweep_seconds: int
    ladder: Ladder
    egress_hosts: Mapping[str, tuple[str, int]]
    egress_ca_file: Path | None
    vault: Vault | None
    subscriptions_max: int
    local_destinations: bool
    """Whether sandboxes may have local receivers."""


def read(environment: Environment) -> Config:
    """Raises SettingsError."""
    return Config(
        service=service_settings(environment),
        sweep_seconds=environment.integer("WEBHOOKS_SWEEP_SECONDS", 3600, 1, 86400),
        ladder=_ladder(environment.text("WEBHOOKS_RETRY_LADDER_HOURS", "") or LADDER_HOURS),
        egress_hosts=_hosts(environment.text("WEBHOOKS_EGRESS_HOSTS", "")),
        egress_ca_file=_ca_file(environment),
        vault=vault_from(environment.text("WEBHOOKS_VAULT_KEYS", "")),
        subscriptions_max=environment.integer("WEBHOOKS_SUBSCRIPTIONS_MAX", SUBSCRIPTIONS_MAX, 1, 100_000),
        local_destinations=environment.integer(LOCAL_DESTINATIONS, 0, 0, 1) == 1,
    )


def _ca_file(environment: Environment) -> Path | None:
    if not environment.optional("WEBHOOKS_EGRESS_CA_FILE"):
        return None
    path = environment.file("WEBHOOKS_EGRESS_CA_FILE")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except (ssl.SSLError, OSError):
        raise SettingsError("WEBHOOKS_EGRESS_CA_FILE must hold certificates in PEM.") from None
    return path


def _ladder(setting: str) -> Ladder:
    """Parses `1,2,4,8,24`: hours after the first attempt's slot. Fractions are allowed; no rung outlasts a delivery."""
    try:
        ladder = tuple(datetime.timedelta(hours=float(hours)) for hours in setting.split(","))
    except (ValueError, OverflowError):
        ladder = ()
    if (
        not ladder
        or list(ladder) != sorted(set(ladder))
        or not datetime.timedelta() < ladder[0] <= ladder[-1] <= LONGEST
    ):
        raise SettingsError(
            f"WEBHOOKS_RETRY_LADDER_HOURS must be ascending hours within {KEPT_DAYS} days, as in 1,2,4,8,24."
        )
    return ladder


def _hosts(setting: str) -> dict[str, tuple[str, int]]:
    """Parses `receiver.test=127.0.0.1:9443,…`: the address to dial for a host, for development."""
    hosts = {}
    for entry in filter(None, map(str.strip, setting.split(","))):
        host, equals, target = entry.partition("=")
        address, _, port = target.rpartition(":")
        address = address.removeprefix("[").removesuffix("]")
        try:
            ip_address(address)
            is_valid = equals and host and port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536
        except ValueError:
            is_valid = False
        if not is_valid:
            raise SettingsError("WEBHOOKS_EGRESS_HOSTS must be HOST=ADDRESS:PORT, separated by commas.")
        hosts[host.lower()] = (address, int(port))
    return hosts
