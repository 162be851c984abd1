"""Finds the running system: the addresses of its processes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from makeready_cli.errors import CommandError
from makeready_cli.output import Record

SERVERS = ("postgres", "nats", "console")  # processes that speak no gRPC


@dataclass(frozen=True, slots=True)
class Runtime:
    """The runner's record of the system that runs on a STATE_DIR."""

    state_dir: Path
    pid: int
    base_url: str
    admin_url: str
    operator_key_file: Path
    processes: Mapping[str, Record]

    @property
    def services(self) -> dict[str, str]:
        """The gRPC address of every service."""
        return {name: process["grpc"] for name, process in self.processes.items() if name not in SERVERS}


def runtime(environment: Mapping[str, str]) -> Runtime:
    """Finds the system of MAKEREADY_STATE_DIR. Raises CommandError if none runs there."""
    try:
        folder = Path(environment.get("MAKEREADY_STATE_DIR") or ".state").expanduser().absolute()
    except RuntimeError:
        raise CommandError(
            "MAKEREADY_STATE_DIR begins with the home of a user whom this machine does not know."
        ) from None
    path = folder / "runtime.json"
    try:
        state = json.loads(path.read_text())
        return Runtime(
            state_dir=folder,
            pid=int(state["pid"]),
            base_url=str(state["base_url"]),
            admin_url=str(state["admin_url"]),
            operator_key_file=Path(state["operator_key_file"]),
            processes=dict(state["processes"]),
        )
    except FileNotFoundError:
        raise CommandError(
            f"Makeready is not running: there is no {path}. Start it with `make run`, or set MAKEREADY_STATE_DIR."
        ) from None
    except OSError as error:
        raise CommandError(f"{path} can't be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise CommandError(f"{path} is damaged; start Makeready anew.") from None


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # A process that has ended but was not reaped is not alive. Its state follows its name, which may have any form.
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in ("Z", "X")
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it belongs to another user
    return True
