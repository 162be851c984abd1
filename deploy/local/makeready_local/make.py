"""The `make` that we may be the child of: what happens to it happens to us.

A signal for make alone does not reach its children: make waits for them for ever where it was interrupted, and
leaves them behind where it was killed.
"""

import os
import signal
from pathlib import Path

FATAL = sum(1 << (number - 1) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM))


class Make:
    """Watches the parent, where that is make."""

    def __init__(self) -> None:
        self._pid = os.getppid()
        try:
            self._is_make = Path(f"/proc/{self._pid}/comm").read_text().strip() in ("make", "gmake")
        except OSError:
            self._is_make = False
        self._caught = self._catches() if self._is_make else 0

    def has_ended(self) -> bool:
        """Whether it was killed, or has been told to stop and waits for us."""
        if not self._is_make:
            return False
        return os.getppid() != self._pid or self._catches() != self._caught

    def _catches(self) -> int:
        """The signals that would end it and that it handles, as a mask; it drops each as soon as it has come."""
        try:
            status = Path(f"/proc/{self._pid}/status").read_text()
        except OSError:
            return 0
        caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "0")
        return int(caught, 16) & FATAL
