"""What a test may meet by the time of day at which it runs: a slot of a sweep, the end of a day."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from zoneinfo import ZoneInfo

DAY_SECONDS = 86400  # WEBHOOKS_SWEEP_SECONDS allows no more
AWAY_SECONDS = 3 * 3600
LEFT_SECONDS = 60.0  # longer than a test takes that asks for the date
ONE_DAY = datetime.timedelta(days=1)


def quiet_period(now: float | None = None) -> int:
    """Seconds between slots of which none is within three hours of `now`, an epoch time; by default the real time.

    For tests that request each sweep themselves. A period of a whole day would not do: its slot is midnight, UTC.
    """
    at = int(time.time() if now is None else now)
    return next(
        period
        for period in range(DAY_SECONDS, DAY_SECONDS // 2, -1)
        if AWAY_SECONDS <= at % period <= period - AWAY_SECONDS
    )


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def today(
    timezone: str = "UTC",
    clock: Callable[[], datetime.datetime] = _now,
    sleep: Callable[[float], None] = time.sleep,
) -> datetime.date:
    """The date in a timezone, an IANA name. If less than a minute is left of it, waits for the next one.

    To be called in a test: a date that a module keeps may be yesterday's when its tests run.
    """
    zone = ZoneInfo(timezone)
    while True:
        now = clock()
        date = now.astimezone(zone).date()
        midnight = datetime.datetime.combine(date + ONE_DAY, datetime.time(), zone).astimezone(datetime.UTC)
        seconds_left = (midnight - now).total_seconds()
        if seconds_left >= LEFT_SECONDS:
            return date
        sleep(seconds_left)
