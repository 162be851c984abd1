"""PostgreSQL and NATS in Docker containers, for tests. Their host ports are fixed, so a restart keeps the URL."""

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from makeready_local.children import LOOPBACK, LocalError, free_port
from makeready_local.nats import answers
from testkit.databases import server_answers
from testkit.requirements import lacks

POSTGRES_IMAGE = "postgres:18"
NATS_IMAGE = "nats:2"
START_SECONDS = 60


class ContainerServer:
    """A server in a container."""

    def __init__(self, url: str, ready: Callable[[], bool], image: str, port: tuple[int, int]) -> None:
        """`port` is (inside, on the host)."""
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415

        self.url = url
        self._ready = ready
        self.container = DockerContainer(image).with_bind_ports(port[0], port[1])

    def start(self) -> None:
        """Starts it if it does not run; returns when it answers."""
        if self.container.get_wrapped_container() is None:
            self.container.start()
        else:
            self.container.get_wrapped_container().start()
        deadline = time.monotonic() + START_SECONDS
        while not self._ready():
            if time.monotonic() > deadline:
                raise LocalError(f"the container at {self.url} was not ready within {START_SECONDS} s")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stops it cleanly; its data stay."""
        self.container.get_wrapped_container().stop()

    def kill(self) -> None:
        """Kills it, like a crash."""
        self.container.get_wrapped_container().kill()


@contextmanager
def postgres() -> Iterator[ContainerServer]:
    """PostgreSQL in a container."""
    need_engine()
    port = free_port()
    url = f"postgresql://postgres:test@{LOOPBACK}:{port}/postgres"
    server = ContainerServer(url, lambda: server_answers(url), POSTGRES_IMAGE, (5432, port))
    server.container.with_env("POSTGRES_PASSWORD", "test")
    yield from running(server)


@contextmanager
def nats() -> Iterator[ContainerServer]:
    """NATS with JetStream in a container."""
    need_engine()
    port = free_port()
    server = ContainerServer(f"nats://{LOOPBACK}:{port}", lambda: answers(port), NATS_IMAGE, (4222, port))
    server.container.with_command("-js")
    yield from running(server)


def running(server: ContainerServer) -> Iterator[ContainerServer]:
    """Starts the server, yields it, and removes it."""
    try:
        server.start()
        yield server
    finally:
        server.container.stop()


def need_engine() -> None:
    """Skips the test if no Docker engine answers."""
    docker: Any = importlib.import_module("docker")

    try:
        docker.from_env(timeout=5).ping()
    except docker.errors.DockerException:
        lacks("docker", "no Docker engine answers: the same tests run on the embedded servers")
