"""The row of a file in an import of turns."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import PastInstant, Text
from svc_occupancy.turns import rules
from svc_occupancy.units import rules as unit_rules

ExternalId = Annotated[str, Text(longest=rules.EXTERNAL_ID_POINTS_MAX, blank=False)]


class TurnRow(msgspec.Struct, kw_only=True):
    """A turn's row in an import. unit is the external_id of that unit; unit_status is the unit's, not the turn's."""

    external_id: ExternalId
    unit: ExternalId
    status: rules.TurnStatus | None = None
    move_out_date: datetime.date | None = None
    move_in_date: datetime.date | None = None
    projected_ready_on: datetime.date | None = None
    occupancy_source: str | None = None
    occupancy_fed_at: datetime.datetime | None = None
    unit_status: unit_rules.UnitStatus | None = None
    created_at: PastInstant | None = None
    updated_at: PastInstant | None = None
