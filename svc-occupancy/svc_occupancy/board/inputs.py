"""What the turn board takes."""

from __future__ import annotations

import datetime

import msgspec

from svc_occupancy.units import rules as unit_rules


class StatusOfUnit(msgspec.Struct):
    """What somebody says of a unit."""

    unit_status: unit_rules.UnitStatus


class Schedule(msgspec.Struct):
    """When a turn's work will be done."""

    projected_ready_on: datetime.date | None = None
