"""The responses of a notice and of a move-in (spec 2.6), and the messages of residencies."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from asyncpg import Record
from sqlalchemy import column

from chassis.db.statements import Expression
from chassis.records.bodies import SENSITIVE
from chassis.records.shapes import Computed, Link, Nested, Shape
from makeready.occupancy.v1 import residencies_pb2
from svc_occupancy.messages import filled
from svc_occupancy.residencies import rules, tables
from svc_occupancy.turns import rules as turn_rules
from svc_occupancy.turns import tables as turn_tables


class Lease(msgspec.Struct, frozen=True, gc=False):
    """The lease that a move-in created."""

    id: int
    """The lease's id."""
    lease_type: rules.LeaseType
    """For a fixed term, which has an end_date, or from month to month, which has none."""
    start_date: datetime.date
    """The lease's first day."""
    end_date: datetime.date | None
    """The lease's last day; null from month to month."""


class Party(msgspec.Struct, frozen=True, gc=False):
    """A party of a lease. Its e-mail address and phone number are stored, but not part of this record."""

    id: int
    """The party's id."""
    first_name: Annotated[str | None, SENSITIVE]
    """The first name, as it was sent."""
    last_name: Annotated[str | None, SENSITIVE]
    """The last name, as it was sent."""
    role: rules.PartyRole | None
    """The party's role in the lease; null if none was sent."""
    external_id: Annotated[str | None, SENSITIVE]


class OccupancyRecord(msgspec.Struct, frozen=True, gc=False):
    """What a notice or a move-in recorded on a unit."""

    schema_version: Literal[1]
    entity_type: Literal["occupancy"]
    entity_id: int
    """The id of the transition, which is the `entity_id` of the turn."""
    unit_id: int
    """The unit's id."""
    status: turn_rules.TransitionStatus
    """The transition's stored status; a turn has it in title case."""
    move_in_date: datetime.date | None
    """The day on which the resident moved in or will move in; null if not on record."""
    move_out_date: datetime.date | None
    """The day on which the resident leaves or has left; null on a move-in."""
    occupancy_source: str | None
    """The provider that was sent, stripped and in lower case."""
    occupancy_fed_at: str | None
    """When this was recorded."""
    external_id: Annotated[str | None, SENSITIVE]
    """The external_id that was sent with this notice or move-in."""
    lease: Lease | None
    """The lease that the move-in created; null on a notice."""
    parties: list[Party]
    """The parties of the lease: leaseholders with first and last name first, then all others; otherwise in the order in
    which they were sent. `[]` on a notice."""
    url: str
    """Link that opens the unit's transitions for a person."""


PARTY = Shape(Party, tables.party)
_party = PARTY.renderer()


def _parties(rows: Sequence[Mapping[str, object]]) -> list[Party]:
    columns = [column for column in tables.party.c if column.name in rows[0]] if rows else []
    return [_party.of_values({column: row[column.name] for column in columns}) for row in rows]


# The rows of a lease's parties, in their order. No statement selects them: they are a value for `Renderer.of_values`.
PARTIES: Expression = column("parties")

_URL = Link("/units/{unit_id}/transitions")
# external_id is the one in the request: the turn stores its own and the notice's in two columns.
NOTICE = Shape(
    OccupancyRecord,
    turn_tables.transition,
    external_id=turn_tables.transition.c.notice_external_id,
    lease=Computed(lambda: None),
    parties=Computed(list),
    url=_URL,
)
MOVE_IN = Shape(
    OccupancyRecord,
    turn_tables.transition,
    lease=Nested(Lease, tables.lease, lease_type=Computed(rules.lease_type, tables.lease.c.end_date)),
    parties=Computed(_parties, PARTIES),
    url=_URL,
)


def residency(row: Record, parties: Sequence[Record]) -> residencies_pb2.Residency:
    """A residency for people, with contacts. row: of `queries.RESIDENCIES`."""
    values = {
        "turn_id": row["id"],
        "status": turn_rules.public_status(row["status"]),
        "is_planned": row["status"] == "active" and not row["has_begun"],
        "lease": None,
        "parties": None,
    }
    message = filled(residencies_pb2.Residency, {**row, **values})
    if row["lease_id"] is not None:
        message.lease.id, message.lease.start_date = row["lease_id"], row["lease_start_date"].isoformat()
        message.lease.lease_type = rules.lease_type(row["lease_end_date"])
        if row["lease_end_date"] is not None:
            message.lease.end_date = row["lease_end_date"].isoformat()
    message.parties.extend(filled(residencies_pb2.Party, party) for party in parties)
    return message
