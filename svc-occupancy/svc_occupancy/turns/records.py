"""The public shape of a turn (spec 2.10)."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

import msgspec

from chassis.records.bodies import SENSITIVE
from chassis.records.shapes import Computed, Link, Nested, Shape
from svc_occupancy import schema
from svc_occupancy.turns import rules, tables


class Named(msgspec.Struct, frozen=True, gc=False):
    """Another record, named inside one that belongs to it."""

    id: int
    """The other record's id."""
    name: str
    """The other record's name."""
    external_id: str | None


class Turn(msgspec.Struct, frozen=True, gc=False):
    """A turn: one transition of a unit, from a resident's move-in to the departure and the work after it. A first
    move-in, before any departure, is a turn too."""

    schema_version: Literal[1]
    entity_type: Literal["turn"]
    entity_id: int
    status: rules.TurnStatus
    """A turn is Active from the record of its move-in until the next resident moves in; then it is Completed. A unit
    may have several that are Active: at most one that has begun, and planned ones, whose move_in_date is later, or
    whose unit is not free yet."""
    property: Named
    """The property that the unit belongs to."""
    unit: Named
    """The unit."""
    move_out_date: datetime.date | None
    """The day on which the resident leaves or has left; null without a departure."""
    move_in_date: datetime.date | None
    """The day on which the resident moved in or will."""
    projected_ready_on: datetime.date | None
    """The day on which the unit is expected to be ready again; null if the turn has no move_out_date, or its work is
    not planned yet."""
    occupancy_source: str | None
    """The slug of the system that feeds this turn, in lower case; null when staff manage it."""
    occupancy_fed_at: str | None
    """When that system last wrote to it."""
    created_at: str
    updated_at: str
    external_id: Annotated[str | None, SENSITIVE]
    source: rules.Source
    """How the record was created, for example `import`."""
    url: str
    """Link that opens the turn's own page for a person."""


TURN = Shape(
    Turn,
    tables.transition,
    status=Computed(rules.public_status, tables.transition.c.status),
    property=Nested(Named, schema.property_),
    unit=Nested(Named, schema.unit),
    url=Link("/turns/{entity_id}"),
    version=tables.transition.c.version,
)
