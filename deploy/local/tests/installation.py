"""One STATE_DIR and the runners on it: started, stopped, interrupted, killed."""

import json
import os
import signal
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from testkit.clocks import quiet_period
from testkit.patience import PATIENCE_SECONDS
from testkit.processes import Process, free_port
from testkit.warm import SOCKET, warm_parent

READY_SECONDS = 120
RUNNER, WARM_RUNNER = "makeready_local", "testkit.warm_runner"


class System:
    """One STATE_DIR and the runners on it."""

    def __init__(self, folder: Path, *, runner: str = RUNNER, **settings: str) -> None:
        """runner: WARM_RUNNER for a test that is not about how the runner starts its services: each start saves 3 s of
        CPU."""
        self.folder = folder
        self._program = runner
        self.ports = free_port(), free_port()
        prefixes = ("MAKEREADY_", "WEBHOOKS_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
        self.environment |= {
            "MAKEREADY_STATE_DIR": str(folder),
            "MAKEREADY_API_PORT": str(self.ports[0]),
            "MAKEREADY_ADMIN_PORT": str(self.ports[1]),
            "WEBHOOKS_SWEEP_SECONDS": str(quiet_period()),
            **({SOCKET: warm_parent().address} if runner == WARM_RUNNER else {}),
            **settings,
        }
        self.runner: Process | None = None

    def start(self, **settings: str) -> Process:
        """Starts a runner. Its output goes to `terminal`, which is emptied first."""
        self.terminal.parent.mkdir(exist_ok=True)
        self.terminal.write_bytes(b"")
        command = [sys.executable, "-P", "-m", self._program]
        self.runner = Process(command, self.terminal, self.environment, own_session=True, warm=True)
        self.runner.launch(**settings)
        return self.runner

    @property
    def terminal(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.terminal")

    def started(self, **settings: str) -> "System":
        """Starts a runner and returns after its greeting."""
        runner = self.start(**settings)
        runner.wait_until(lambda: "Ctrl-C stops everything" in self.terminal.read_text(), READY_SECONDS)
        return self

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Signals the runner; returns its exit status."""
        assert self.runner is not None
        return self.runner.end(number, 60)

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def get(self, path: str, key: str) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports[0]}/api/v1{path}", headers={"Authorization": f"Bearer {key}"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
            return json.load(response)

    def tickets(self, key: str) -> list[Any]:
        """All tickets of the key's company."""
        rows: list[Any] = []
        cursor = ""
        while True:
            page = self.get(f"/tickets?limit=200{cursor}", key)
            rows += page["data"]
            if page["next_cursor"] is None:
                return rows
            cursor = f"&cursor={page['next_cursor']}"

    def makeready(self, *words: str) -> Any:
        """The answer of `makeready --json WORDS…`."""
        status, output = self.run("--json", *words)
        assert status == 0, output
        return json.loads(output[output.index("{") :])  # a hint on standard error may come first

    def run(self, *words: str) -> tuple[int, str]:
        """The exit status and the output of `makeready WORDS…`."""
        output = self.folder.with_name(f"{self.folder.name}.answer")
        output.unlink(missing_ok=True)
        command = [sys.executable, "-P", "-m", "makeready_cli", *words]
        process = Process(command, output, self.environment, warm=True)
        process.launch()
        return process.wait(60), output.read_text()

    def remains(self) -> list[str]:
        """The command lines of the processes that belong to this STATE_DIR: by their environment, command or log."""
        mark = os.fsencode(self.folder)
        command_lines = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                files = [(process / name).read_bytes() for name in ("environ", "cmdline")]
                outputs = [os.fsencode((process / "fd" / number).readlink()) for number in ("1", "2")]
                if any(mark in text for text in (*files, *outputs)):
                    command_lines.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return command_lines

    def one_line(self) -> str:
        """The runner's one error line; the output must have no stack trace."""
        text = self.terminal.read_text()
        assert "Traceback" not in text
        complaints = [line for line in text.splitlines() if line.startswith("makeready: ")]
        assert len(complaints) == 1, text
        return complaints[0]


def wait_for(condition: Any, seconds: float = READY_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)
