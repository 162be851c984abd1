"""What a notice and a move-in answer (spec 2.6)."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from chassis.schedule.instants import printed
from svc_occupancy.residencies import rules
from svc_occupancy.turns import rules as turn_rules


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
    """Somebody who stands in a lease. E-mail address and phone number are kept and never shown."""

    id: int
    """The party's id."""
    first_name: str | None
    """The first name, as it was sent."""
    last_name: str | None
    """The last name, as it was sent."""
    role: rules.PartyRole | None
    """As what the party stands in the lease; null where nothing was said."""
    external_id: str | None


class OccupancyRecord(msgspec.Struct, frozen=True, gc=False):
    """What a notice or a move-in recorded on a unit."""

    schema_version: Literal[1]
    entity_type: Literal["occupancy"]
    entity_id: int
    """The id of the transition, which is the `entity_id` of the turn."""
    unit_id: int
    """The unit's id."""
    status: turn_rules.TransitionStatus
    """The transition's status, as it is kept; a turn shows it in title case."""
    move_in_date: datetime.date | None
    """The day on which the resident moved in or will; null where nobody has told."""
    move_out_date: datetime.date | None
    """The day on which the resident leaves or has left; null on a move-in."""
    occupancy_source: str | None
    """The provider that was sent, stripped and in lower case."""
    occupancy_fed_at: str | None
    """When this was recorded."""
    external_id: str | None
    """The external_id that was sent with this notice or move-in."""
    lease: Lease | None
    """The lease that the move-in created; null on a notice."""
    parties: list[Party]
    """Who stands in the lease: leaseholders with first and last name first, then all others, otherwise in the order in
    which they were sent. `[]` on a notice."""
    url: str
    """Link that opens the unit's transitions for a person."""


class OccupancyLinks:
    """Renders transitions as OccupancyRecords with links that start at the given address."""

    def __init__(self, links_url: str) -> None:
        self._prefix = f"{links_url}/units/"

    def occupancy(
        self,
        turn: Mapping[str, Any],
        external_id: str | None,
        lease: Mapping[str, Any] | None = None,
        parties: Sequence[Mapping[str, Any]] = (),
    ) -> OccupancyRecord:
        """turn, lease, parties: rows as they are stored; external_id: the one of the write."""
        return OccupancyRecord(
            1,
            "occupancy",
            turn["id"],
            turn["unit_id"],
            turn["status"],
            turn["move_in_date"],
            turn["move_out_date"],
            turn["occupancy_source"],
            printed(turn["occupancy_fed_at"]),
            external_id,
            None
            if lease is None
            else Lease(lease["id"], rules.lease_type(lease["end_date"]), lease["start_date"], lease["end_date"]),
            [Party(*(one[name] for name in Party.__struct_fields__)) for one in parties],
            f"{self._prefix}{turn['unit_id']}/transitions",
        )
