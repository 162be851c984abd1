"""The demo's own Makeready: in a temporary folder and on free ports, so that it disturbs no other."""

import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from makeready_local.children import Child, LocalError, free_port
from makeready_local.state import JsonObject

PREFIX = "makeready-demo-"
START_SECONDS = 180
STOP_SECONDS = 60


class Installation:
    """One `make run` with the demo company, its API and its command line."""

    def __init__(self) -> None:
        for old in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            _remove_left(old)
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.folder.chmod(0o711)  # PostgreSQL's own user must pass through if the demo runs as root
        self.state = self.folder / "state"
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("MAKEREADY_", "WEBHOOKS_"))
        }
        ports = {f"MAKEREADY_{name}_PORT": str(free_port()) for name in ("API", "ADMIN")}
        self._environment = inherited | ports | {"MAKEREADY_STATE_DIR": str(self.state)}
        self._child: Child | None = None
        self.demo: JsonObject = {}
        """The content of `demo.json`: addresses and keys."""

    def start(self, settings: Mapping[str, str], progress: Callable[[str], None]) -> None:
        """Returns once the demo company is loaded. progress: called with each progress line. Raises LocalError."""
        program = [sys.executable, "-P", "-m", "makeready_local"]
        log = self.folder / "output"
        environment = {**self._environment, **settings}
        self._child = Child(
            "Makeready", program, log=log, orphan_signal=signal.SIGTERM, environment=environment, folder=Path.cwd()
        )
        deadline = time.monotonic() + START_SECONDS
        printed = 0
        while not (self.state / "demo.json").exists():
            self.check()
            if time.monotonic() > deadline:
                raise LocalError(f"Makeready was not ready within {START_SECONDS} s: {self._child.last_words()}")
            lines = log.read_text(errors="replace").splitlines()
            for line in lines[printed:]:
                if line.endswith("..."):
                    progress(line)
            printed = len(lines)
            time.sleep(0.05)
        self.demo = json.loads((self.state / "demo.json").read_text())

    def check(self) -> None:
        """Raises LocalError if it has ended."""
        if self._child is not None and not self._child.alive:
            raise LocalError(self._child.last_words().removeprefix("makeready: "))

    def call(self, method: str, path: str, scope: str, body: Mapping[str, object] | None = None) -> tuple[int, Any]:
        """The response's status and JSON. path: below the base URL. Raises LocalError if there is no answer."""
        request = urllib.request.Request(  # noqa: S310 - our own loopback address
            self.demo["base_url"] + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.demo['keys'][scope]}", "Idempotency-Key": secrets.token_hex(16)},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                return response.status, json.load(response)
        except urllib.error.HTTPError as refused:
            raise LocalError(f"{method} {path} answered {refused.code}: {refused.read().decode()[:300]}") from None
        except (OSError, ValueError) as error:
            raise LocalError(f"{method} {path} was not answered: {error}") from None

    def makeready(self, *words: str) -> str:
        """The output of `makeready WORDS…`. Raises LocalError if it fails."""
        program = [sys.executable, "-P", "-m", "makeready_cli", *words]
        done = subprocess.run(  # noqa: S603
            program, env=self._environment, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode != 0:
            raise LocalError(f"makeready {' '.join(words)} failed: {done.stderr.strip()}")
        return done.stdout

    def stop(self, *, remove: bool = True) -> None:
        """Stops it and removes all its files; the next demo removes any that remain."""
        if self._child is not None:
            self._child.stop(signal.SIGTERM, STOP_SECONDS)
        if remove:
            _remove(self.folder)


def _remove_left(folder: Path) -> None:
    """Removes the folder of a demo that was killed, whose lock is free."""
    with suppress(OSError), (folder / "state" / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)


def _remove(folder: Path) -> None:
    # If PostgreSQL's user could not reach the folder, its data are elsewhere.
    data = folder / "state" / "postgres"
    if data.is_symlink():
        shutil.rmtree(data.resolve(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
