"""Being told to stop, at the terminal, by make, or by whoever started us."""

import signal
import time
from types import FrameType

IMPATIENT_SECONDS = 2


class Interrupted(BaseException):
    """We are told to stop."""


class Signals:
    """From its making on, the first signal raises Interrupted in the main thread, unless `stopping` is set."""

    def __init__(self) -> None:
        self.stopping = False
        self._told_at: float | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # nohup has asked to ignore it; a shell that starts us in the background ignores SIGINT by habit.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """The first one stops us. make passes on what the whole group got already, so we are told twice at once:
        only a later one ends us without waiting, and pdeathsig.py ends the children."""
        now = time.monotonic()
        if self._told_at is None:
            self._told_at = now
            if not self.stopping:
                raise Interrupted
        elif now - self._told_at > IMPATIENT_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
