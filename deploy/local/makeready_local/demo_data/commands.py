"""Runs the operator's command line while the demo is loaded, all commands in one process."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from makeready_local.children import PDEATHSIG, LocalError, last_line
from makeready_local.state import JsonObject, State

COMMAND_SECONDS = 120
CHECK_SECONDS = 0.2


class CommandError(LocalError):
    """A command failed; the services run on. reason: the line that it printed."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


class Commands:
    """`makeready --json WORDS…` against one installation. `check` raises if a service has ended."""

    def __init__(self, state: State, check: Callable[[], None]) -> None:
        self._check = check
        # The process dies with the runner, however that ends; a Ctrl-C at the terminal reaches only the runner.
        pdeathsig = [sys.executable, "-I", "-S", str(PDEATHSIG), str(os.getpid()), "9", "-1", "-1"]
        self._log = state.log("demo")
        with self._log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(  # noqa: S603
                [*pdeathsig, sys.executable, "-P", "-m", "makeready_local.demo_data.console"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "MAKEREADY_STATE_DIR": str(state.folder), "PYTHONUTF8": "1"},
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        # Killing it is safe: between commands nothing runs, and within one an import counts as interrupted.
        self._end()

    def run(self, *words: str, standard_input: str = "") -> JsonObject:
        """The command's answer. Raises CommandError if it failed, and LocalError if a service has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"words": words, "input": standard_input}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._ended(words) from None
        reply = json.loads(self._line(words))
        try:
            answer = json.loads(reply["out"])
        except ValueError:
            answer = None
        if reply["status"] not in (0, 3) or not isinstance(answer, dict):
            reason = _last(reply["err"] or reply["out"]) or f"exit status {reply['status']}"
            raise CommandError(str(_failed(words, reason)), reason.removeprefix("makeready: "))
        return answer

    def _line(self, words: Sequence[str]) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + COMMAND_SECONDS
        while not select.select([self._process.stdout], [], [], CHECK_SECONDS)[0]:
            self._check()
            if time.monotonic() > deadline:
                raise _failed(words, f"no answer within {COMMAND_SECONDS} s")
        line: bytes = self._process.stdout.readline()
        if not line:
            raise self._ended(words)
        return line

    def _ended(self, words: Sequence[str]) -> LocalError:
        self._end()
        return _failed(words, last_line(self._log, self._log_start) or "it ended")

    def _end(self) -> None:
        self._process.kill()
        with suppress(BrokenPipeError):
            self._process.communicate()


def _last(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _failed(words: Sequence[str], reason: str) -> LocalError:
    return LocalError(
        f"the demo company cannot be loaded: `makeready {' '.join(words[:2])}`: {reason}; "
        "MAKEREADY_DEMO=0 starts without it, the next start takes it up again"
    )
