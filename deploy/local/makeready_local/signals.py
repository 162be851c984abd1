"""Signals that stop the runner: from the terminal, from make, or from another parent process."""

import signal
import time
from types import FrameType

IMPATIENT_SECONDS = 2


class Interrupted(BaseException):
    """A signal stops the runner."""


class Signals:
    """Once created, the first signal raises Interrupted in the main thread, unless `stopping` is set."""

    def __init__(self) -> None:
        self.stopping = False
        self._told_at: float | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # nohup ignores SIGHUP on purpose; a shell that starts a background job ignores SIGINT by default.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """The first signal stops the runner. make forwards a signal that the whole group has received already, so two
        arrive at once: only a later one ends the runner without waiting, and pdeathsig.py ends the children."""
        now = time.monotonic()
        if self._told_at is None:
            self._told_at = now
            if not self.stopping:
                raise Interrupted
        elif now - self._told_at > IMPATIENT_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
