"""Compares this process's clock with PostgreSQL's, so that no write stores an instant of a clock that jumped.

PostgreSQL is asked now and then, never by a write. Each answer relates its clock to this machine's uptime, which cannot
be set; a write compares its own clock with that relation, in memory. A jump between two comparisons is thus seen by the
next write.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

import structlog
from prometheus_client import Counter, Gauge

SKEW_SECONDS_MIN = 300
COMPARE_SECONDS = 10
RETRY_SECONDS = 1  # at least this long between two comparisons that writes ask for

log = structlog.stdlib.get_logger(__name__)
AHEAD = Gauge(
    "makeready_clock_ahead_seconds",
    "Seconds by which this process's clock is ahead of PostgreSQL's; negative if it is behind",
)
REFUSED = Counter("makeready_clock_refused_total", "Writes refused because the two clocks were too far apart")


def uptime() -> float:
    """Seconds on a clock that cannot be set, and that runs on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def real_clock() -> datetime.datetime:
    """As `schedule.instants.now`, which is above this package."""
    return datetime.datetime.now(datetime.UTC)


class ClockComparison:
    """What is known of the two clocks. It knows no connection: `Database` asks PostgreSQL."""

    def __init__(self, clock: Callable[[], datetime.datetime], up: Callable[[], float] = uptime) -> None:
        """For `up` see `uptime`."""
        self._clock, self.up = clock, up
        # PostgreSQL's clock minus the uptime, in seconds: it lies between these two.
        self._bounds: tuple[float, float] | None = None
        self._was_skewed = False
        self.asked_at = -RETRY_SECONDS - up()

    def learn(self, before: float, theirs: datetime.datetime, after: float) -> None:
        """Takes in `theirs`, PostgreSQL's clock at some moment between two uptimes. The longer the answer took, the
        less it says: a slow one never makes the clocks seem further apart than they are."""
        at = theirs.timestamp()
        self._bounds = at - after, at - before
        self.report()

    def report(self) -> None:
        """Sets the metric, and logs when the clocks come to be apart and when they agree again."""
        ahead = self.ahead
        AHEAD.set(ahead)
        if self.are_skewed != self._was_skewed:
            self._was_skewed = not self._was_skewed
            if self._was_skewed:
                log.error("clocks_apart", ahead_seconds=round(ahead, 3), writes="refused")
            else:
                log.info("clocks_agree", ahead_seconds=round(ahead, 3), writes="accepted")

    @property
    def ahead(self) -> float:
        """Seconds by which the process's clock is ahead, at least; negative if it is behind; 0 if it may be right."""
        if self._bounds is None:
            return 0.0
        offset = self._clock().timestamp() - self.up()
        least, most = self._bounds
        return offset - most if offset > most else min(offset - least, 0.0)

    @property
    def are_skewed(self) -> bool:
        return abs(self.ahead) >= SKEW_SECONDS_MIN
