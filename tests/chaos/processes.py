"""The processes of a separate Makeready: each can be started, killed or held at a failpoint, and restarted."""

import asyncio
import base64
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from makeready_local.databases import close_own_databases
from makeready_local.nats import Nats
from makeready_local.postgres import Postgres
from makeready_local.streams import kept_streams
from testkit.api_contract import Contract
from testkit.clocks import quiet_period
from testkit.plugin import PostgresServer
from testkit.prepared import prepare_cluster
from testkit.processes import free_port
from testkit.services import Keys, RunningService

from ..e2e.system import System

SERVICES = ("svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks", "gateway")
# Longer than anything takes: a test that hangs fails then. No result depends on the value.
PATIENCE_SECONDS = 120
RING = "1:" + base64.b64encode(b"ring" * 8).decode()


class Listener(Protocol):
    """A server on loopback that answers as https://receiver.test."""

    port: int
    authority_file: Path


class Processes:
    """PostgreSQL, NATS and the services; the gateway in front."""

    def __init__(
        self,
        folder: Path,
        receiver: Listener,
        *,
        dispatchers: int = 1,
        fsync: bool = False,
        webhooks: Mapping[str, str] | None = None,
    ) -> None:
        """dispatchers: the number of svc-webhooks processes; after the first they are called `svc-webhooks 2` and so
        on. webhooks: their settings."""
        self.folder = folder
        self.receiver = receiver
        self.names = (*SERVICES, *(f"svc-webhooks {number}" for number in range(2, dispatchers + 1)))
        if fsync:
            self.postgres = Postgres(folder / "postgres", "chaos", log=folder / "postgres.log")
        else:
            self.postgres = prepare_cluster(folder)
        self.nats = Nats(folder / "nats", "chaos", log=folder / "nats.log")
        self.services: dict[str, RunningService] = {}
        self.system = System(folder / "state")
        self.system.ports = {f"MAKEREADY_{name}_PORT": str(free_port()) for name in ("API", "ADMIN")}
        self._more: dict[str, dict[str, str]] = {}
        self._webhooks = {
            "WEBHOOKS_VAULT_KEYS": RING,
            "WEBHOOKS_EGRESS_HOSTS": f"receiver.test=127.0.0.1:{receiver.port}",
            "WEBHOOKS_EGRESS_CA_FILE": str(receiver.authority_file),
            "WEBHOOKS_SWEEP_SECONDS": str(quiet_period()),
            **(webhooks or {}),
        }

    # Set up

    def start_all(self, undo: ExitStack) -> None:
        """Starts everything; registers the stops in `undo`."""
        for server in (self.postgres, self.nats):
            server.start()
            undo.callback(server.stop)
        undo.enter_context(kept_streams(self.nats.url))
        close_own_databases(self.postgres.url)
        keys = Keys(self.folder / "keys")
        databases = PostgresServer(self.postgres)
        targets = {name: f"127.0.0.1:{free_port()}" for name in SERVICES}
        for name in self.names:
            service, _, number = name.partition(" ")
            first = self.services.get(service)
            url = first.database_url if first else databases.create_database(name.removeprefix("svc-"))
            target = f"127.0.0.1:{free_port()}" if number else targets[name]
            log = self.folder / f"{name}.log"
            self.services[name] = RunningService(service, keys, url, self.nats.url, log, target, targets)
            self._more[name] = {
                "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
                "MAKEREADY_STRIKE_FILE": str(self._failpoint_file(name)),
            }
            if service == "svc-webhooks":
                self._more[name] |= self._webhooks
        self._more["gateway"] |= self.system.ports | {
            "MAKEREADY_CURSOR_KEYS": RING,
            "MAKEREADY_KEY_CHECK_SECRETS": RING,
            "MAKEREADY_TOTP_KEYS": RING,
        }
        with ThreadPoolExecutor(2) as side_by_side:
            list(side_by_side.map(lambda name: self.services[name].migrate(), SERVICES))
            for name in self.names:
                undo.callback(self._stop, name)
            list(side_by_side.map(self._start, self.names))
        self._wait_open()
        self._write_runtime(keys)
        self.system.contract = Contract(self.system.get("/openapi.json").json)

    def _stop(self, name: str) -> None:
        if self.services[name].is_running:
            self.services[name].send(signal.SIGCONT)
            self.services[name].stop()

    def _write_runtime(self, keys: Keys) -> None:
        """Writes runtime.json, where the command line finds the processes."""
        self.system.state.mkdir(exist_ok=True)
        runtime = {
            "base_url": self.system.base_url,
            "admin_url": "http://127.0.0.1/",
            "pid": os.getpid(),
            "state_dir": str(self.system.state),
            "operator_key_file": str(keys.folder / "operator.jwk"),
            "identity_ring_file": str(keys.folder / "ring.jwks"),
            "processes": {name: {"pid": 0, "grpc": service.target} for name, service in self.services.items()},
        }
        (self.system.state / "runtime.json").write_text(json.dumps(runtime))

    def settings_of(self, name: str) -> dict[str, str]:
        """What a service is started with besides the settings of every service."""
        return dict(self._more[name])

    # Kill, hold, resume

    def _failpoint_file(self, name: str) -> Path:
        return self.folder / f"{name}.failpoint"

    def arm(self, name: str, point: str, how: str = "kill") -> None:
        """Arms the failpoint. how: `kill` or `hold` of the service's next process that reaches it."""
        new_file = self._failpoint_file(name).with_suffix(".new")
        new_file.write_text(f"{point} {how}")
        new_file.rename(self._failpoint_file(name))

    def disarm(self, name: str) -> None:
        self._failpoint_file(name).unlink(missing_ok=True)

    async def killed_at_point(self, name: str) -> None:
        """Waits until the service was killed at its point."""
        service = self.services[name]
        await until(lambda: not service.is_running, f"{name} did not come to its point")
        assert service.exit_status == -signal.SIGKILL, service.log_tail()

    async def held(self, name: str) -> None:
        """Waits until the service is stopped at its point."""
        await until(lambda: not self._failpoint_file(name).exists() and self.is_stopped(name), f"{name} was not held")

    def is_stopped(self, name: str) -> bool:
        return Path(f"/proc/{self.pid(name)}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def freeze(self, name: str) -> None:
        os.kill(self.pid(name), signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        os.kill(self.pid(name), signal.SIGCONT)

    def pid(self, name: str) -> int:
        return self.services[name].pid

    async def kill(self, name: str) -> None:
        await asyncio.to_thread(self.services[name].kill)

    async def stop(self, name: str) -> None:
        """Stops it as an operator would; fails the test if it does not exit cleanly."""
        await asyncio.to_thread(self.services[name].stop)

    async def start(self, name: str) -> None:
        """Returns when the service serves; for the gateway, when its public port answers."""
        await asyncio.to_thread(self._start, name)
        if name == "gateway":
            await asyncio.to_thread(self._wait_open)

    def _start(self, name: str) -> None:
        self.restart(name)

    def restart(self, name: str, **more: str) -> None:
        """Starts a stopped service with its settings, and `more`."""
        self.services[name].start(**self._more[name] | more)

    def _wait_open(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                assert self.system.call("GET", "/whoami").status == 401
            except OSError:
                assert time.monotonic() < deadline, self.services["gateway"].log_tail()
                time.sleep(0.02)
            else:
                return

    async def mend(self, *names: str) -> None:
        """Repairs after any failure: these services (default: all) run again, and none of their failpoints is armed."""
        for server in (self.postgres, self.nats):
            server.start()
        for name in names or self.names:
            service = self.services[name]
            self.disarm(name)
            if not service.is_running:
                await self.start(name)
            elif self.is_stopped(name):
                self.go_on(name)

    def restart_postgres(self) -> None:
        """Kill -9, then its recovery. Call it in the main thread: the server dies with the thread that started it."""
        self.postgres.kill()
        self.postgres.start()


async def until(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, complaint
        await asyncio.sleep(0.01)
