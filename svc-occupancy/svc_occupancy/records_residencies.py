"""The bodies of a notice and of a move-in (spec 4.5), and what both answer (spec 2.6)."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from chassis.records.bodies import BODY_BYTES_MAX, Between, LongText, RecordId, Text
from chassis.schedule.instants import printed
from svc_occupancy import rules
from svc_occupancy import rules_residencies as residencies

# Counted by `rules.provider`, once it is stripped: here whatever a body can hold passes.
Provider = Annotated[
    str,
    Text(longest=BODY_BYTES_MAX, blank=False),
    msgspec.Meta(extra_json_schema={"maxLength": rules.PROVIDER_POINTS_MAX}),
]
ExternalId = Annotated[str, Text(longest=residencies.EXTERNAL_ID_POINTS_MAX)]
PartyName = Annotated[str, Text(longest=residencies.PARTY_NAME_POINTS_MAX)]
Email = Annotated[
    str, Text(longest=residencies.PARTY_EMAIL_POINTS_MAX), msgspec.Meta(extra_json_schema={"format": "email"})
]
Phone = Annotated[str, Text(longest=residencies.PARTY_PHONE_POINTS_MAX)]


class Lease(msgspec.Struct, frozen=True, gc=False):
    """The lease that a move-in created."""

    id: int
    """The lease's id."""
    lease_type: residencies.LeaseType
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
    role: residencies.PartyRole | None
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
    status: rules.TransitionStatus
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


class NoticeCreate(msgspec.Struct, frozen=True, kw_only=True):
    """A departure of the unit's current resident."""

    move_out_date: datetime.date
    """The day on which the resident leaves or has left."""
    provider: Provider
    """Short name of the system that tells this. Blanks around it are dropped, and it is kept in lower case."""
    ntv_reason_code: LongText | None = None
    """Why the resident leaves, as a code of the provider's."""
    departure_destination_code: LongText | None = None
    """Where the resident goes, as a code of the provider's."""
    notes: LongText | None = None
    """Whatever else is to be known of the departure."""
    external_id: ExternalId | None = None
    """Your own identifier of the notice. The turn keeps its own."""


class PartyCreate(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who stands in the lease."""

    first_name: PartyName | None = None
    """The first name."""
    last_name: PartyName | None = None
    """The last name."""
    email: Email | None = None
    """The e-mail address. It is kept and never shown."""
    phone: Phone | None = None
    """The phone number. It is kept and never shown."""
    role: residencies.PartyRole | None = None
    """As what the party stands in the lease."""
    external_id: ExternalId | None = None
    """Your own identifier of the party."""


class MoveInCreate(msgspec.Struct, frozen=True, kw_only=True):
    """A new resident's tenancy of the unit."""

    move_in_date: datetime.date
    """The day on which the resident moves in."""
    lease_start_date: datetime.date
    """The lease's first day."""
    lease_end_date: datetime.date | None = None
    """The lease's last day, not before its first; left out, the lease runs from month to month."""
    predecessor_transition_id: RecordId | None = None
    """The `entity_id` of the turn that this move-in ends: the unit's active one, for which a notice was recorded. Not
    needed where its move_out_date has passed."""
    provider: Provider
    """Short name of the system that tells this. Blanks around it are dropped, and it is kept in lower case."""
    external_id: ExternalId | None = None
    """Your own identifier of the residency: the turn's `external_id`."""
    parties: Annotated[list[PartyCreate], Between(1, residencies.PARTIES_MAX)]
    """Who stands in the lease; at least one leaseholder with first and last name."""


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
            else Lease(lease["id"], residencies.lease_type(lease["end_date"]), lease["start_date"], lease["end_date"]),
            [Party(*(one[name] for name in Party.__struct_fields__)) for one in parties],
            f"{self._prefix}{turn['unit_id']}/transitions",
        )
