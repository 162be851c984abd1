"""The public shape of a turn (spec 2.10), and its row in an import."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

import msgspec
from asyncpg import Record

from chassis.bodies import Text
from chassis.instants import printed
from svc_occupancy import rules

encode = msgspec.json.Encoder().encode


class Named(msgspec.Struct, frozen=True, gc=False):
    """A property or unit inside another record."""

    id: int
    name: str
    external_id: str | None


class Turn(msgspec.Struct, frozen=True, gc=False):
    """A unit's transition, keys in the order of spec 2.10."""

    schema_version: int
    entity_type: str
    entity_id: int
    status: rules.TurnStatus
    property: Named
    unit: Named
    move_out_date: datetime.date | None
    move_in_date: datetime.date | None
    projected_ready_on: datetime.date | None
    occupancy_source: str | None
    occupancy_fed_at: str | None
    created_at: str
    updated_at: str
    external_id: str | None
    source: str
    url: str


class Links:
    """Renders rows of `queries` with links that start at the given address."""

    def __init__(self, links_url: str) -> None:
        self._prefix = f"{links_url}/turns/"

    def turn(self, row: Record | tuple[Any, ...]) -> Turn:
        # The columns of queries.TURN_COLUMNS, in their order.
        (
            entity_id,
            status,
            property_id,
            property_name,
            property_external_id,
            unit_id,
            unit_name,
            unit_external_id,
            move_out_date,
            move_in_date,
            projected_ready_on,
            occupancy_source,
            occupancy_fed_at,
            created_at,
            updated_at,
            external_id,
            source,
            _version,
        ) = row
        created = printed(created_at)
        return Turn(
            1,
            "turn",
            entity_id,
            rules.shown(status),
            Named(property_id, property_name, property_external_id),
            Named(unit_id, unit_name, unit_external_id),
            move_out_date,
            move_in_date,
            projected_ready_on,
            occupancy_source,
            printed(occupancy_fed_at),
            created,
            created if updated_at == created_at else printed(updated_at),
            external_id,
            source,
            f"{self._prefix}{entity_id}",
        )


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
    unit_status: rules.UnitStatus | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None
