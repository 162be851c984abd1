"""The bodies of a notice and of a move-in (spec 4.5), and what staff record of them: the same without a provider."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import BODY_BYTES_MAX, SENSITIVE, Between, PersonalText, RecordId, Text
from svc_occupancy.residencies import rules
from svc_occupancy.turns import rules as turn_rules

# `turns.rules.provider` checks the length after stripping, so this type accepts any length that a body can have.
Provider = Annotated[
    str,
    Text(longest=BODY_BYTES_MAX, blank=False),
    msgspec.Meta(extra_json_schema={"maxLength": turn_rules.PROVIDER_POINTS_MAX}),
]
# An identifier of a residency, a notice or a party: a feed may take a person's e-mail address for it.
ExternalId = Annotated[str, Text(longest=turn_rules.FEED_EXTERNAL_ID_POINTS_MAX), SENSITIVE]
PartyName = Annotated[str, Text(longest=rules.PARTY_NAME_POINTS_MAX), SENSITIVE]
Email = Annotated[
    str, Text(longest=rules.PARTY_EMAIL_POINTS_MAX), msgspec.Meta(extra_json_schema={"format": "email"}), SENSITIVE
]
Phone = Annotated[str, Text(longest=rules.PARTY_PHONE_POINTS_MAX), SENSITIVE]


class NoticeCreate(msgspec.Struct, frozen=True, kw_only=True):
    """A departure of the unit's current resident."""

    move_out_date: datetime.date
    """The day on which the resident leaves or has left."""
    provider: Provider
    """Short name of the system that sends this. Surrounding blanks are removed, and it is stored in lower case."""
    ntv_reason_code: PersonalText | None = None
    """Why the resident leaves, as a code of the provider."""
    departure_destination_code: PersonalText | None = None
    """Where the resident goes, as a code of the provider."""
    notes: PersonalText | None = None
    """Any other notes about the departure."""
    external_id: ExternalId | None = None
    """Your own identifier of the notice. It does not change the turn's `external_id`."""


class PartyCreate(msgspec.Struct, frozen=True, kw_only=True):
    """A party of the lease."""

    first_name: PartyName | None = None
    """The first name."""
    last_name: PartyName | None = None
    """The last name."""
    email: Email | None = None
    """The e-mail address. It is stored, and no response contains it."""
    phone: Phone | None = None
    """The phone number. It is stored, and no response contains it."""
    role: rules.PartyRole | None = None
    """The party's role in the lease."""
    external_id: ExternalId | None = None
    """Your own identifier of the party."""


class MoveInCreate(msgspec.Struct, frozen=True, kw_only=True):
    """A new resident's tenancy of the unit."""

    move_in_date: datetime.date
    """The day on which the resident moves in. A later day than today plans the move-in: it changes nothing about the
    unit until then."""
    lease_start_date: datetime.date
    """The lease's first day."""
    lease_end_date: datetime.date | None = None
    """The lease's last day, not before its first. Without it, the lease runs from month to month."""
    predecessor_transition_id: RecordId | None = None
    """The `entity_id` of the turn that this move-in ends: the last of the unit's active turns, for which a notice was
    recorded. It is not needed if that turn's resident has left."""
    provider: Provider
    """Short name of the system that sends this. Surrounding blanks are removed, and it is stored in lower case."""
    external_id: ExternalId | None = None
    """Your own identifier of the residency: the turn's `external_id`."""
    parties: Annotated[list[PartyCreate], Between(1, rules.PARTIES_MAX)]
    """The parties of the lease; at least one is a leaseholder with first and last name."""


class StaffNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A departure that staff record. The fields are those of NoticeCreate."""

    move_out_date: datetime.date
    ntv_reason_code: PersonalText | None = None
    departure_destination_code: PersonalText | None = None
    notes: PersonalText | None = None
    external_id: ExternalId | None = None


class StaffMoveIn(msgspec.Struct, frozen=True, kw_only=True):
    """A tenancy that staff record. The fields are those of MoveInCreate."""

    move_in_date: datetime.date
    lease_start_date: datetime.date
    lease_end_date: datetime.date | None = None
    predecessor_transition_id: RecordId | None = None
    external_id: ExternalId | None = None
    parties: Annotated[list[PartyCreate], Between(1, rules.PARTIES_MAX)]


class MoveInChange(msgspec.Struct, frozen=True, kw_only=True):
    """The new date of a planned move-in."""

    move_in_date: datetime.date
