"""The services of one installation: their databases, their environment, their processes."""

import hashlib
import importlib.util
import os
import signal
import socket
import ssl
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis.db import roles
from makeready_local.children import LOOPBACK, Child, LocalError, free_port
from makeready_local.config import Settings, SettingsError
from makeready_local.databases import make_service_database, revision
from makeready_local.forks import Forks
from makeready_local.state import State

NAMES = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
CONSOLE = "console"  # not a service: it has a database and serves no gRPC
ISSUERS = (*NAMES, CONSOLE, "operator")
START_SECONDS = 60
STOP_SECONDS = 40
# Variables for the runner itself, or that each service receives with its own value below.
NOT_PASSED_ON = (
    "MAKEREADY_DATABASE_URL",
    "MAKEREADY_DATABASE_OWNER_URL",
    "MAKEREADY_DATABASE_PREFIX",
    "MAKEREADY_DATABASE_ROLE_CONNECTIONS",
    "MAKEREADY_NATS_URL",
    "MAKEREADY_NATS_USERS",
    "MAKEREADY_STATE_DIR",
    "MAKEREADY_DEMO",
)
PARTITIONED = ("gateway", "svc-webhooks")  # make and drop the partitions of their days themselves


@dataclass(frozen=True)
class Service:
    """One service. Its folder has its name; so does its package, with `_` for `-`."""

    name: str
    database_url: str
    owner_url: str = field(repr=False)
    grpc: str = field(default_factory=lambda: f"{LOOPBACK}:{free_port()}")
    metrics: str = field(default_factory=lambda: f"{LOOPBACK}:{free_port()}")

    @property
    def package(self) -> str:
        """The name of the Python package."""
        return self.name.replace("-", "_")

    @property
    def context(self) -> str:
        """Its name in environment variables; with the prefix also that of its database and role."""
        return self.name.removeprefix("svc-")


def make_keys(state: State, forks: Forks) -> None:
    """Makes the identity keys that are missing."""
    if all((state.keys / f"{name}.jwk").exists() for name in ISSUERS) and (state.keys / "ring.jwks").exists():
        return
    log = state.log("identity")
    program = ["chassis.auth.identity", str(state.keys), *ISSUERS]
    child = Child("identity", program, log=log, forks=forks)
    if not child.wait(START_SECONDS) or child.exit_code != 0:
        raise LocalError(f"the identity keys cannot be made: {child.last_words()}")


def make_databases(state: State, administrative_url: str, settings: Settings) -> list[Service]:
    """Makes a database and roles for each service, and for the console, which is the last."""
    services = []
    for name in (*NAMES, CONSOLE):
        context = name.removeprefix("svc-")
        database = make_service_database(
            administrative_url,
            settings.database_prefix + context,
            state.secret(f"database_{context}"),
            state.secret(f"database_{context}_owner"),
            settings.role_connections,
            partitions=name in PARTITIONED,
        )
        services.append(Service(name, database.url, database.owner_url))
    return services


def environment_of(
    service: Service, services: Sequence[Service], settings: Settings, nats_url: str, state: State
) -> dict[str, str]:
    """The environment of the service's process: the runner's settings for it, and the runner's other variables."""
    environment = _shared(services, settings) | {
        "MAKEREADY_DATABASE_URL": service.database_url,
        "MAKEREADY_NATS_URL": nats_url,
        "MAKEREADY_GRPC_LISTEN": service.grpc,
        "MAKEREADY_METRICS_LISTEN": service.metrics,
        "MAKEREADY_IDENTITY_KEY_FILE": str(state.keys / f"{service.name}.jwk"),
        "MAKEREADY_IDENTITY_RING_FILE": str(state.keys / "ring.jwks"),
    }
    if service.name == "gateway":
        environment |= {
            "MAKEREADY_API_HOST": settings.api_host,
            "MAKEREADY_API_PORT": str(settings.api_port),
            "MAKEREADY_API_URL": settings.api_url,
        }
        environment.setdefault("MAKEREADY_CURSOR_KEYS", state.secret("cursor_keys", as_ring=True))
        environment.setdefault("MAKEREADY_KEY_CHECK_SECRETS", state.secret("key_check_secrets", as_ring=True))
        environment.setdefault("MAKEREADY_TOTP_KEYS", state.secret("totp_keys", as_ring=True))
        environment.setdefault("MAKEREADY_RATE_LIMIT_URL", "memory://")
    if service.name == "svc-webhooks":
        # A variable that is set but empty stays empty: no vault.
        environment.setdefault("WEBHOOKS_VAULT_KEYS", state.secret("vault_keys", as_ring=True))
        environment.setdefault("MAKEREADY_SANDBOX_LOCAL_DESTINATIONS", "1")
    else:
        environment.pop("WEBHOOKS_VAULT_KEYS", None)
    return environment


def _shared(services: Sequence[Service], settings: Settings) -> dict[str, str]:
    """The variables that every process receives."""
    environment = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
    return environment | {
        "MAKEREADY_LINKS_URL": settings.links_url,
        "MAKEREADY_CONSOLE_URL": settings.console_url,
        **{f"MAKEREADY_{service.context.upper()}_ADDRESS": service.grpc for service in services},
    }


def start_console(
    console: Service, services: Sequence[Service], settings: Settings, nats_url: str | None, state: State, forks: Forks
) -> Child:
    """Starts the console's process. nats_url: where it listens to hints."""
    environment = (
        _shared(services, settings)
        | ({"MAKEREADY_NATS_URL": nats_url} if nats_url else {})
        | {
            "MAKEREADY_API_HOST": settings.api_host,
            "MAKEREADY_API_PORT": str(settings.api_port),
            "MAKEREADY_API_URL": settings.api_url,
            "MAKEREADY_ADMIN_PORT": str(settings.admin_port),
            "MAKEREADY_METRICS_LISTEN": console.metrics,
            "MAKEREADY_DATABASE_URL": console.database_url,
            "MAKEREADY_IDENTITY_KEY_FILE": str(state.keys / f"{CONSOLE}.jwk"),
        }
    )
    environment.setdefault("MAKEREADY_FILES_URL", (settings.state_dir / "files").as_uri())
    for name in ("WEBHOOKS_VAULT_KEYS", "MAKEREADY_CURSOR_KEYS", "MAKEREADY_KEY_CHECK_SECRETS", "MAKEREADY_TOTP_KEYS"):
        environment.pop(name, None)
    return Child(CONSOLE, [CONSOLE], log=state.log(CONSOLE), environment=environment, folder=Path.cwd(), forks=forks)


def migrate(
    services: Sequence[Service], environments: Mapping[str, dict[str, str]], state: State, forks: Forks
) -> None:
    """Migrates every database to its newest revision, all at once; skips those that have it already."""
    done = state.read("migrated.json")
    digests = {service.name: migrations_digest(service) for service in services}
    children = {}
    for service in services:
        last = done.get(service.name) or {}
        if last.get("digest") == digests[service.name] and last.get("revision") == revision(service.database_url):
            continue
        program = [service.package, "migrate"]
        log = state.log(f"{service.name}-migrate")
        environment = environments[service.name] | {"MAKEREADY_DATABASE_OWNER_URL": service.owner_url}
        children[service] = Child(service.name, program, log=log, environment=environment, forks=forks)
    try:
        for service, child in children.items():
            if not child.wait(START_SECONDS) or child.exit_code != 0:
                if child.exit_code == 2:  # its one line says what is wrong and what to do
                    raise SettingsError(child.last_words())
                raise LocalError(
                    f"the database of {service.name} cannot be migrated: {child.last_words()}; see {child.log}"
                )
            done[service.name] = {"digest": digests[service.name], "revision": revision(service.database_url)}
    finally:
        for child in children.values():
            child.kill()  # each revision is a transaction, so none is half done
    if children:
        state.write("migrated.json", done)


def migrations_digest(service: Service) -> str:
    """A digest that changes with the service's migrations, and with its role's privileges."""
    spec = importlib.util.find_spec(service.package)
    if spec is None or not spec.submodule_search_locations:
        raise LocalError(f"the package {service.package} is not installed: run `make install`")
    digest = hashlib.sha256(roles.grant(urlsplit(service.database_url).username or "").encode())
    for file in sorted(Path(spec.submodule_search_locations[0], "migrations").rglob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def start(service: Service, environment: Mapping[str, str], state: State, forks: Forks) -> Child:
    """Starts the service's process."""
    log = state.log(service.name)
    return Child(service.name, [service.package], log=log, environment=environment, folder=Path.cwd(), forks=forks)


def wait_until_serving(services: Sequence[Service], children: Sequence[Child]) -> None:
    """Returns when every service reports SERVING. Raises LocalError if one ends or takes too long."""
    waiting = list(services)
    by_name = {child.name: child for child in children}
    deadline = time.monotonic() + START_SECONDS
    while waiting:
        check(children, starting=True)
        waiting = [service for service in waiting if not is_serving(service.grpc)]
        if waiting and time.monotonic() > deadline:
            names = " and ".join(service.name for service in waiting)
            raise LocalError(
                f"{names} did not report SERVING within {START_SECONDS} s: {by_name[waiting[0].name].last_words()}"
            )
        time.sleep(0.05)


def wait_until_ready(url: str, children: Sequence[Child]) -> None:
    """Returns when the console at this address, which is one of the children, is ready. Raises LocalError."""
    # For a child on this machine, to which nothing secret is sent. It loads no authorities, which would take 25 ms.
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    directly = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unverified)
    )
    deadline = time.monotonic() + START_SECONDS
    while True:
        check(children, starting=True)
        with suppress(OSError), directly.open(f"{url}/readyz", timeout=1):
            return
        if time.monotonic() > deadline:
            raise LocalError(f"the console was not ready within {START_SECONDS} s")
        time.sleep(0.02)


def accepts(host: str, port: int) -> bool:
    """Whether a server listens on the port."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def is_serving(address: str) -> bool:
    """Whether the service at this address reports SERVING."""
    host, _, port = address.rpartition(":")
    if not accepts(host, int(port)):  # a channel to it would cost much more
        return False
    with grpc.insecure_channel(address) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=1)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def check(children: Sequence[Child], *, starting: bool = False) -> None:
    """Raises LocalError if one of them has ended; a service ends with 2 for a bad setting."""
    for child in children:
        if not child.alive:
            if starting and child.exit_code == 2:
                raise SettingsError(child.last_words())
            if child.missed_disk_space:
                raise LocalError(
                    f"{child.name} stopped: no space is left on the disk of its data; make room, then start again; "
                    f"see {child.log}"
                )
            # The last line of a killed process does not explain its end.
            words = "" if (child.exit_code or 0) < 0 else f": {child.last_words()}"
            raise LocalError(f"{child.name} stopped ({child.ending()}){words}; see {child.log}")


def stop(children: Sequence[Child]) -> None:
    """Signals all of them to end, waits, and kills those that do not."""
    for child in children:
        child.send(signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    for child in children:
        if not child.wait(max(0.0, deadline - time.monotonic())):
            child.kill()
