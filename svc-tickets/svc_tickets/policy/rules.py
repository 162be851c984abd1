"""Default and bounds of a ticket policy. Pure."""

from __future__ import annotations

# The threshold of a company that never set one.
STALE_AFTER_HOURS = 72
STALE_AFTER_HOURS_MAX = 8760
