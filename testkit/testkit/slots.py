"""Periods of sweeps for tests that request each sweep themselves."""

from __future__ import annotations

import time

DAY_SECONDS = 86400  # WEBHOOKS_SWEEP_SECONDS allows no more
AWAY_SECONDS = 3 * 3600


def quiet_period(now: float | None = None) -> int:
    """Seconds between slots of which none is within three hours of `now`, an epoch time; by default the real time.

    A period of a whole day would not do: its slot is midnight, UTC.
    """
    at = int(time.time() if now is None else now)
    return next(
        period
        for period in range(DAY_SECONDS, DAY_SECONDS // 2, -1)
        if AWAY_SECONDS <= at % period <= period - AWAY_SECONDS
    )
