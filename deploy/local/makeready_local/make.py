"""Watches the `make` that may have started the runner: when make ends, so does the runner.

A signal for make alone does not reach its children. An interrupted make waits for them for ever, and a killed one
leaves them behind.
"""

import os
import signal
from pathlib import Path

FATAL = sum(1 << (number - 1) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM))


class Make:
    """Watches the parent process, if that is make."""

    def __init__(self) -> None:
        self._pid = os.getppid()
        try:
            self._is_make = Path(f"/proc/{self._pid}/comm").read_text().strip() in ("make", "gmake")
        except OSError:
            self._is_make = False
        self._caught = self._catches() if self._is_make else 0

    def has_ended(self) -> bool:
        """Whether make was killed, or has received a signal to stop and waits for its children."""
        if not self._is_make:
            return False
        return os.getppid() != self._pid or self._catches() != self._caught

    def _catches(self) -> int:
        """The fatal signals that make handles, as a mask; make drops the handler when the signal arrives."""
        try:
            status = Path(f"/proc/{self._pid}/status").read_text()
        except OSError:
            return 0
        caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "0")
        return int(caught, 16) & FATAL
