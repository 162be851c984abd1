"""What a ticket policy may be. Pure."""

from __future__ import annotations

# Of a company that never set one.
STALE_AFTER_HOURS = 72
STALE_AFTER_HOURS_MAX = 8760
