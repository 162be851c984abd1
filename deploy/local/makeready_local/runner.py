"""Runs all of Makeready: servers, databases, services, demo data; stops all on a signal, or when one ends."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from makeready_local import databases, demo_data, nats, services
from makeready_local.children import Child, LocalError, port_is_free
from makeready_local.config import Settings, SettingsError
from makeready_local.demo_data.receivers import Receivers
from makeready_local.forks import Forks
from makeready_local.make import Make
from makeready_local.postgres import Postgres
from makeready_local.signals import Interrupted, Signals
from makeready_local.state import State
from makeready_local.streams import kept_streams

WATCH_SECONDS = 0.5
PORTS_SECONDS, LOOK_SECONDS = 5.0, 0.05


@dataclass(frozen=True)
class Servers:
    """PostgreSQL and NATS, the runner's own or given ones."""

    database_url: str
    nats_url: str
    nats_users: Mapping[str, str]
    """The passwords of the services' users; empty if all use the URL's."""

    def nats_url_of(self, service: str) -> str:
        """The URL with the service's user."""
        return nats.url_of(self.nats_url, service, self.nats_users)


class Runner:
    """One installation, from its start to its end."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # The steps that undo the start, in the order of the start.
        self._undo: list[Callable[[], None]] = []
        self._children: list[Child] = []
        self._processes: dict[str, dict[str, object]] = {}
        """What `runtime.json` says of each process, by name."""

    def run(self, forks: Forks) -> int:
        """Starts everything, waits for a signal, stops everything. Returns the exit status."""
        self._undo.append(forks.stop)
        self._signals = Signals()
        status = 0
        make = Make()
        try:
            self._start(forks)
            while not make.has_ended():
                time.sleep(WATCH_SECONDS)
                self._watch()
            say("Stopping.")
        except Interrupted:
            say("Stopping.")
        except LocalError as error:
            complain(str(error))
            status = 2 if isinstance(error, SettingsError) else 1
        except OSError as error:
            complain(f"{error.strerror}: {error.filename}" if error.filename else str(error))
            status = 1
        finally:
            self._stop()
        return status

    def _start(self, forks: Forks) -> None:
        settings = self.settings
        started = time.monotonic()
        wait_for_ports(settings)
        state = State(settings.state_dir)
        forks.warm()
        self._undo.append(lambda: state.remove("runtime.json"))
        servers = self._start_servers(state)
        services.make_keys(state, forks)
        self._start_services(state, forks, servers)
        state.write(
            "runtime.json",
            {
                "base_url": settings.api_url,
                "admin_url": settings.console_url,
                "pid": os.getpid(),
                "state_dir": str(settings.state_dir),
                "database_url": servers.database_url,
                "nats_url": servers.nats_url,
                "operator_key_file": str(state.keys / "operator.jwk"),
                "identity_ring_file": str(state.keys / "ring.jwks"),
                "processes": self._processes,
            },
        )
        if settings.demo:
            demo_data.load(state, settings, say, self._watch)
        say(f"Makeready is ready after {time.monotonic() - started:.1f} s.\n")
        say(demo_data.greeting(state, settings))

    def _start_servers(self, state: State) -> Servers:
        """Starts the servers that the settings do not name, and keeps the streams from then on."""
        settings = self.settings
        database_url = settings.database_url or self._start_postgres(state)
        users = settings.nats_users
        if not settings.nats_url:
            names = (*services.NAMES, services.CONSOLE)
            users = {name: state.secret(f"nats_{name.removeprefix('svc-')}") for name in names}
        nats_url = settings.nats_url or self._start_nats(state, users)
        if settings.nats_url and not nats.is_there(nats_url):
            say("MAKEREADY_NATS_URL does not answer: no event is published and nothing is delivered until it does.")
        if not users:
            say("All services use the user of MAKEREADY_NATS_URL: MAKEREADY_NATS_USERS gives each one of its own.")
        keeping = ExitStack()
        keeping.enter_context(kept_streams(nats_url, settings.nats_replicas, settings.nats_tls))
        self._undo.append(keeping.close)
        return Servers(database_url, nats_url, users)

    def _start_postgres(self, state: State) -> str:
        if (state.folder / "postgres").exists() and "postgres" not in state.read("secrets.json"):
            raise LocalError(f"{state.folder} holds data, but secrets.json with their password is gone")
        say("Starting PostgreSQL and NATS ...")
        server = Postgres(state.folder / "postgres", state.secret("postgres"), log=state.log("postgres"))
        self._undo.append(server.stop)
        server.start()
        databases.close_own_databases(server.url)
        self._children.append(server.child)
        self._processes["postgres"] = {"pid": server.child.pid, "port": server.port}
        return server.url

    def _start_nats(self, state: State, users: Mapping[str, str]) -> str:
        server = nats.Nats(state.folder / "nats", state.secret("nats"), log=state.log("nats"), users=users)
        self._undo.append(server.stop)
        server.start()
        self._children.append(server.child)
        self._processes["nats"] = {"pid": server.child.pid, "port": server.port}
        return server.url

    def _start_services(self, state: State, forks: Forks, servers: Servers) -> None:
        """Migrates and starts the services and the console. Returns when all of them serve."""
        settings = self.settings
        *all_services, console = services.make_databases(state, servers.database_url, settings)
        environments = {
            service.name: services.environment_of(
                service, all_services, settings, servers.nats_url_of(service.name), state
            )
            for service in all_services
        }
        if settings.demo:
            receivers = Receivers(state)
            receivers.start()
            self._undo.append(receivers.stop)
            environments["svc-webhooks"] = receivers.added_to(environments["svc-webhooks"])
        say("Migrating and starting the services ...")
        environments[services.CONSOLE] = {**os.environ, "MAKEREADY_DATABASE_URL": console.database_url}
        services.migrate([*all_services, console], environments, state, forks)
        children = [services.start(service, environments[service.name], state, forks) for service in all_services]
        # Without a user of its own on a given server that has users, it does not listen: its pages ask every 30 s.
        listens = not servers.nats_users or services.CONSOLE in servers.nats_users
        hints_url = servers.nats_url_of(services.CONSOLE) if listens else None
        console_child = services.start_console(console, all_services, settings, hints_url, state, forks)
        # The console and the gateway first, so that no new requests arrive while the others finish.
        self._undo.append(lambda: services.stop(children[1:]))
        self._undo.append(lambda: services.stop([console_child, children[0]]))
        self._children += [*children, console_child]
        services.wait_until_serving(all_services, self._children)
        services.wait_until_ready(settings.local_console_url, self._children)
        for service, child in zip(all_services, children, strict=True):
            self._processes[service.name] = {"pid": child.pid, "grpc": service.grpc, "metrics": service.metrics}
        self._processes[services.CONSOLE] = {
            "pid": console_child.pid,
            "port": settings.admin_port,
            "metrics": console.metrics,
        }

    def _watch(self) -> None:
        """Raises LocalError if a child has ended; keeps their logs from filling the disk."""
        services.check(self._children)
        for child in self._children:
            child.bound_log()

    def _stop(self) -> None:
        """Undoes the start in reverse order."""
        self._signals.stopping = True
        while self._undo:
            self._undo.pop()()


def wait_for_ports(settings: Settings) -> None:
    """Raises LocalError if the console or the gateway can't listen. The gateway of a killed runner ends a moment after
    it, so a port that is taken is looked at again for PORTS_SECONDS."""
    deadline = time.monotonic() + PORTS_SECONDS
    for name, port in (("MAKEREADY_API_PORT", settings.api_port), ("MAKEREADY_ADMIN_PORT", settings.admin_port)):
        while not port_is_free(port, settings.api_host):
            if time.monotonic() > deadline:
                raise LocalError(
                    f"port {port} on {settings.api_host} cannot be used or is in use; {name} may name another"
                )
            time.sleep(LOOK_SECONDS)


def say(text: str) -> None:
    """Prints a line for the user; the terminal may be gone."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115


def complain(text: str) -> None:
    """Prints one line on standard error."""
    sys.stderr.write(f"makeready: {' '.join(text.split())}\n")
