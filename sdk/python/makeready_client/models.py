"""Records, events and enums.

Enums in answers are open: any other text may come, and unknown fields are ignored.

Made by `make openapi` from the tables of the API: change openapi/reference instead.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from makeready_client.answers import Answer, Envelope, Model

CONTRACT = "2026-11-28"
"""The date of the last change of the contract that this was made from."""
PAGE_RECORDS_MAX = 200
KINDS = (
    "tickets",
    "properties",
    "units",
    "assets",
    "vendors",
    "inspections",
    "turns",
    "meters",
    "readings",
)
"""The kinds of records that have a snapshot and a feed of changes."""

AssetStatus: TypeAlias = Literal["Active", "Needs Service", "Out of Service", "Retired"]
CommentAuthor: TypeAlias = Literal["staff", "vendor", "resident"]
CompanyMode: TypeAlias = Literal["live", "sandbox"]
EventEntityType: TypeAlias = Literal["inspection", "notice", "pm_task", "ticket", "turn", "vendor"]
EventKey: TypeAlias = Literal[
    "inspection.stale",
    "pm.stale",
    "property.notice.published",
    "ticket.created",
    "ticket.stale",
    "ticket.status_changed",
    "turn.schedule_changed",
    "turn.status_changed",
    "turn.task.stale",
    "vendor.hold",
]
InspectionReportGroupBy: TypeAlias = Literal["property", "type", "item"]
InspectionResult: TypeAlias = Literal["passed", "failed"]
InspectionSource: TypeAlias = Literal["staff", "import"]
InspectionStatus: TypeAlias = Literal["Scheduled", "In Progress", "Completed"]
KeyScope: TypeAlias = Literal["read", "write", "webhook_only"]
LeaseType: TypeAlias = Literal["fixed_term", "month_to_month"]
LocationType: TypeAlias = Literal[
    "unit", "mechanical_room", "common_area", "amenity", "parking", "storage", "exterior", "other"
]
MeterScope: TypeAlias = Literal["master", "common_area", "unit"]
MeterUtilityType: TypeAlias = Literal["electric", "gas", "water", "sewer", "trash", "other"]
OccupancyStatus: TypeAlias = Literal["active", "completed", "cancelled"]
PartyRole: TypeAlias = Literal["leaseholder", "guarantor"]
ReadingResultOutcome: TypeAlias = Literal["created", "changed", "unchanged"]
RecordKind: TypeAlias = Literal[
    "property", "unit", "asset", "vendor", "inspection", "utility_meter", "utility_reading", "ticket", "turn", "staff"
]
ReplayState: TypeAlias = Literal["all", "parked", "failed"]
ReportBucket: TypeAlias = Literal["day", "month"]
ReportMeasureKind: TypeAlias = Literal["count", "duration", "level"]
SandboxClockStatus: TypeAlias = Literal["ready", "advancing"]
SubscriptionSource: TypeAlias = Literal["api", "administrator"]
TicketCancellationReasonCode: TypeAlias = Literal[
    "duplicate_ticket",
    "no_access_repeated",
    "resident_cancelled",
    "resolved_independently",
    "scheduled_for_later",
    "see_notes",
    "wrong_property",
]
TicketCategory: TypeAlias = Literal[
    "HVAC",
    "Plumbing",
    "Electrical",
    "Mechanical",
    "Life Safety",
    "Elevator",
    "Appliance",
    "Doors/Windows",
    "Flooring",
    "Painting",
    "Roofing",
    "Leak",
    "Pest Control",
    "Structural",
    "Grounds",
    "Parking Garage",
    "Pool",
    "Security",
    "Common Area",
    "General",
    "Other",
]
TicketPriority: TypeAlias = Literal["Low", "Medium", "High", "Emergency"]
TicketReportGroupBy: TypeAlias = Literal["property", "category", "priority", "assignee", "vendor", "source"]
TicketSource: TypeAlias = Literal["api", "staff", "resident_portal", "inspection", "import"]
TicketStatus: TypeAlias = Literal["Open", "In Progress", "On Hold", "Completed", "Cancelled"]
TurnReportGroupBy: TypeAlias = Literal["property", "task_type"]
TurnSource: TypeAlias = Literal["api", "staff", "import"]
TurnStatus: TypeAlias = Literal["Active", "Completed", "Cancelled"]
UnitStatus: TypeAlias = Literal["Occupied", "Notice", "Vacant Not Ready", "Vacant Ready", "Down"]
VendorLastComplianceState: TypeAlias = Literal["compliant", "expiring", "noncompliant", "missing", "unknown"]
VendorPropertyVisibility: TypeAlias = Literal["all_properties", "selected_properties"]
VendorReportGroupBy: TypeAlias = Literal["vendor", "property", "category", "priority"]
WebhookAttemptCause: TypeAlias = Literal["sweep", "retry", "manual", "resend", "test", "replay"]
WebhookDeliveryState: TypeAlias = Literal["waiting", "succeeded", "parked", "failed"]
WebhookHealth: TypeAlias = Literal["healthy", "retrying", "dead_lettered", "paused"]
WebhookReplayStatus: TypeAlias = Literal["under_way", "finished"]

# msgspec takes no union of literals and str; type checkers do, and show the values.
if TYPE_CHECKING:
    OpenAssetStatus: TypeAlias = AssetStatus | str
    OpenCommentAuthor: TypeAlias = CommentAuthor | str
    OpenCompanyMode: TypeAlias = CompanyMode | str
    OpenEventKey: TypeAlias = EventKey | str
    OpenInspectionResult: TypeAlias = InspectionResult | str
    OpenInspectionSource: TypeAlias = InspectionSource | str
    OpenInspectionStatus: TypeAlias = InspectionStatus | str
    OpenKeyScope: TypeAlias = KeyScope | str
    OpenLeaseType: TypeAlias = LeaseType | str
    OpenLocationType: TypeAlias = LocationType | str
    OpenMeterScope: TypeAlias = MeterScope | str
    OpenMeterUtilityType: TypeAlias = MeterUtilityType | str
    OpenOccupancyStatus: TypeAlias = OccupancyStatus | str
    OpenPartyRole: TypeAlias = PartyRole | str
    OpenReadingResultOutcome: TypeAlias = ReadingResultOutcome | str
    OpenRecordKind: TypeAlias = RecordKind | str
    OpenReplayState: TypeAlias = ReplayState | str
    OpenReportBucket: TypeAlias = ReportBucket | str
    OpenReportMeasureKind: TypeAlias = ReportMeasureKind | str
    OpenSandboxClockStatus: TypeAlias = SandboxClockStatus | str
    OpenSubscriptionSource: TypeAlias = SubscriptionSource | str
    OpenTicketCancellationReasonCode: TypeAlias = TicketCancellationReasonCode | str
    OpenTicketCategory: TypeAlias = TicketCategory | str
    OpenTicketPriority: TypeAlias = TicketPriority | str
    OpenTicketSource: TypeAlias = TicketSource | str
    OpenTicketStatus: TypeAlias = TicketStatus | str
    OpenTurnSource: TypeAlias = TurnSource | str
    OpenTurnStatus: TypeAlias = TurnStatus | str
    OpenUnitStatus: TypeAlias = UnitStatus | str
    OpenVendorLastComplianceState: TypeAlias = VendorLastComplianceState | str
    OpenVendorPropertyVisibility: TypeAlias = VendorPropertyVisibility | str
    OpenWebhookAttemptCause: TypeAlias = WebhookAttemptCause | str
    OpenWebhookDeliveryState: TypeAlias = WebhookDeliveryState | str
    OpenWebhookHealth: TypeAlias = WebhookHealth | str
    OpenWebhookReplayStatus: TypeAlias = WebhookReplayStatus | str
else:
    OpenAssetStatus = OpenCommentAuthor = OpenCompanyMode = OpenEventKey = OpenInspectionResult = (
        OpenInspectionSource
    ) = OpenInspectionStatus = OpenKeyScope = OpenLeaseType = OpenLocationType = OpenMeterScope = (
        OpenMeterUtilityType
    ) = OpenOccupancyStatus = OpenPartyRole = OpenReadingResultOutcome = OpenRecordKind = OpenReplayState = (
        OpenReportBucket
    ) = OpenReportMeasureKind = OpenSandboxClockStatus = OpenSubscriptionSource = OpenTicketCancellationReasonCode = (
        OpenTicketCategory
    ) = OpenTicketPriority = OpenTicketSource = OpenTicketStatus = OpenTurnSource = OpenTurnStatus = OpenUnitStatus = (
        OpenVendorLastComplianceState
    ) = OpenVendorPropertyVisibility = OpenWebhookAttemptCause = OpenWebhookDeliveryState = OpenWebhookHealth = (
        OpenWebhookReplayStatus
    ) = str


class Reference(Model, kw_only=True):
    """Another record, named inside one that belongs to it."""

    id: int
    """The other record's id."""
    name: str
    """The other record's name."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""


class Location(Model, kw_only=True):
    """Where an asset stands: a unit, or another place of the property such as a mechanical room."""

    id: int
    """The location's id; where location_type is `unit`, the unit's id."""
    name: str
    """The location's name."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""
    location_type: OpenLocationType
    """What kind of place it is."""


class Asset(Answer, kw_only=True):
    """An asset: a piece of equipment that the company maintains. Retired assets are included."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["asset"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    name: str
    """What people call it."""
    category: str
    """What kind of equipment it is, in the company's own words."""
    sub_category: str | None
    """A narrower kind, in the company's own words."""
    asset_tag: str | None
    """The tag on the equipment."""
    make: str
    """Who made it."""
    model: str
    """The maker's name for the model."""
    serial_number: str | None
    """The maker's serial number."""
    status: OpenAssetStatus
    """Whether it is in use."""
    property: Reference
    """The property that it belongs to."""
    location: Location | None
    """Its location: a unit or another place; null if not on record."""
    year: int | None
    """The year in which it was made."""
    installed_on: datetime.date | None
    """The day on which it was installed."""
    warranty_expires_on: datetime.date | None
    """The last day of its warranty."""
    expected_life_years: int | None
    """How many years it is expected to last from its installation."""
    created_at: datetime.datetime
    """When the record was created."""
    updated_at: datetime.datetime
    """When the record last changed."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""
    source: str
    """How the record was created, for example `import`."""
    url: str
    """Link that opens the record for a person."""


class AssetChange(Model, kw_only=True):
    """The latest state of a record that has changed."""

    schema_version: Literal[1]
    """Always 1."""
    entity_type: Literal["asset"]
    """The kind of the record."""
    entity_id: int
    """The record's `entity_id`."""
    gone: bool
    """Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again."""
    record: Asset | None
    """The record at its latest state, as its fetch returns it, to the byte; null if it is gone."""


class Assignee(Model, kw_only=True):
    """The member of staff who has the work."""

    id: int
    """The person's id."""
    name: str
    """The person's name."""


class Business(Model, kw_only=True):
    """The legal entity behind a vendor. Vendors with the same business are relationships with the same entity."""

    id: int
    """The business's id."""
    legal_name: str
    """The name that it is registered under."""
    website: str | None
    """The address of its website; null where none is known."""


class Company(Model, kw_only=True):
    """The company that a key belongs to."""

    id: int
    """The company's id; the `company_id` of its events."""
    name: str
    """The company's name."""
    timezone: str
    """The company's timezone, an IANA name such as America/Chicago."""
    mode: OpenCompanyMode
    """`sandbox` for a company to try things in; its keys begin with `mk_test_`."""


class Floorplan(Model, kw_only=True):
    """The plan that a unit is built to."""

    id: int
    """The floorplan's id."""
    name: str
    """What the property calls the plan, for example B2."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""
    bedrooms: int | None
    """How many bedrooms it has; 0 is a studio."""
    bathrooms: float | None
    """How many bathrooms it has; a half has a toilet and no bath."""
    square_feet: int | None
    """Its floor area in square feet."""


class FoundRecord(Model, kw_only=True):
    """A record that a search has found. Its fetch returns the rest."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: OpenRecordKind
    """What kind of record it is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    external_id: str
    """Your own identifier of the record, for which you searched."""


class Inspection(Answer, kw_only=True):
    """An inspection of operations: of a property, or of one unit. Walks of consulting engagements are not shown."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["inspection"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    inspection_number: int | None
    """The number that staff see, from a sequence of the property; null if the inspection never got one."""
    title: str | None
    """The subject of the inspection in one line; null on legacy inspections."""
    inspection_type: str | None
    """The type of the template that it follows, for example General or Fire Alarm."""
    status: OpenInspectionStatus
    """Its status. An inspection that was finalized on the legacy plain-checklist path is Completed."""
    result: OpenInspectionResult | None
    """Its result; null where neither applies."""
    property: Reference
    """The property that is inspected."""
    unit: Reference | None
    """The unit that is inspected; null if the property or another part of it is."""
    scheduled_date: datetime.date | None
    """The day for which it is planned."""
    completed_date: datetime.date | None
    """The day on which it was done."""
    assignee: Assignee | None
    """The member of staff who does it; null if none is assigned."""
    is_compliance_inspection: bool
    """Whether a law or a contract requires it."""
    compliance_type: str | None
    """The law or contract that requires it, in the company's own words."""
    created_at: datetime.datetime
    """When the record was created."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""
    source: OpenInspectionSource
    """How the inspection was created."""
    url: str
    """Link that opens the record for a person."""


class InspectionChange(Model, kw_only=True):
    """The latest state of a record that has changed."""

    schema_version: Literal[1]
    """Always 1."""
    entity_type: Literal["inspection"]
    """The kind of the record."""
    entity_id: int
    """The record's `entity_id`."""
    gone: bool
    """Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again."""
    record: Inspection | None
    """The record at its latest state, as its fetch returns it, to the byte; null if it is gone."""


class InspectionStaleEvent(Envelope, kw_only=True):
    """An inspection was not completed by the morning after its scheduled date, at 06:00 in the company's timezone.
    Once for each inspection, even if it is postponed later.
    """

    schema_version: Literal[1]
    """Version of the shape: 1."""
    event_id: str
    """Unique to the event; retries carry the same one. Use it to drop duplicates."""
    event: Literal["inspection.stale"]
    """The event key. Ignore events whose key you do not know: new ones may come."""
    occurred_at: datetime.datetime
    """When it happened; the delivery may come an hour later or more. Orders the events of one record."""
    company_id: int
    """The company that it happened in."""
    data: Inspection
    change: None
    """Always null here."""


class Key(Model, kw_only=True):
    """An API key, without its secret part."""

    id: int
    """The key's id."""
    name: str
    """What the administrator called the key."""
    prefix: str
    """The first characters of the key, to tell keys apart."""
    scope: OpenKeyScope
    """What the key opens. `write` opens all that the other two do."""
    created_at: datetime.datetime
    """When the key was minted."""


class Lease(Model, kw_only=True):
    """The lease that a move-in created."""

    id: int
    """The lease's id."""
    lease_type: OpenLeaseType
    """For a fixed term, which has an end_date, or from month to month, which has none."""
    start_date: datetime.date
    """The lease's first day."""
    end_date: datetime.date | None
    """The lease's last day; null from month to month."""


class LoggedRequest(Model, kw_only=True):
    """A request with a key of the company, and what it was answered."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["request"]
    """What kind of record this is."""
    entity_id: int
    """Ascends in the order in which requests were stored."""
    request_id: str
    """The answer's header `X-Request-Id`, for example 019c36e8f1a05c1f0b8a77d1."""
    requested_at: datetime.datetime
    """When it came."""
    key_id: int
    """The key's id, as `GET /whoami` has it."""
    method: str
    """The verb, for example PATCH."""
    route: str
    """The path with the names of its ids, for example /tickets/{ticket_id}."""
    path: str
    """The path, for example /tickets/318."""
    query: str
    """The query, in which ids, states and instants stand as they came. Other values begin with `~`: a hash, the same
    for the same value.
    """
    status: int
    """The answer's HTTP status, for example 422."""
    code: str | None
    """The error's code, for example invalid_request."""
    message: str | None
    """The error's sentence, for example Completing a ticket needs a note of 5 or more words."""
    field: str | None
    """The field or parameter at fault, if the refusal names one."""
    milliseconds: float
    """From the request to the answer, without what a feed waited, for example 8.4."""
    bytes_in: int
    """The length of the body, for example 31."""
    bytes_out: int
    """The length of the answer's body, for example 120."""
    address: str
    """Where it came from, for example 203.0.113.9."""
    user_agent: str
    """The header `User-Agent`, for example makeready-client/0.3."""
    idempotency_key_hash: str | None
    """A hash of the `Idempotency-Key`, the same for the same key."""
    is_replay: bool
    """Whether the answer to an earlier request with the `Idempotency-Key` was repeated."""
    record_type: str | None
    """The `entity_type` of the record that a write made or changed, for example ticket."""
    record_id: int | None
    """Its `entity_id`."""
    trace_id: str
    """The id of its trace, for example 4bf92f3577b34da6a3ce929d0e0e4736."""


class LoggedRequestBodies(Answer, kw_only=True):
    """A request with a key of the company, with the bodies that are kept of it in a sandbox."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["request"]
    """What kind of record this is."""
    entity_id: int
    """Ascends in the order in which requests were stored."""
    request_id: str
    """The answer's header `X-Request-Id`, for example 019c36e8f1a05c1f0b8a77d1."""
    requested_at: datetime.datetime
    """When it came."""
    key_id: int
    """The key's id, as `GET /whoami` has it."""
    method: str
    """The verb, for example PATCH."""
    route: str
    """The path with the names of its ids, for example /tickets/{ticket_id}."""
    path: str
    """The path, for example /tickets/318."""
    query: str
    """The query, in which ids, states and instants stand as they came. Other values begin with `~`: a hash, the same
    for the same value.
    """
    status: int
    """The answer's HTTP status, for example 422."""
    code: str | None
    """The error's code, for example invalid_request."""
    message: str | None
    """The error's sentence, for example Completing a ticket needs a note of 5 or more words."""
    field: str | None
    """The field or parameter at fault, if the refusal names one."""
    milliseconds: float
    """From the request to the answer, without what a feed waited, for example 8.4."""
    bytes_in: int
    """The length of the body, for example 31."""
    bytes_out: int
    """The length of the answer's body, for example 120."""
    address: str
    """Where it came from, for example 203.0.113.9."""
    user_agent: str
    """The header `User-Agent`, for example makeready-client/0.3."""
    idempotency_key_hash: str | None
    """A hash of the `Idempotency-Key`, the same for the same key."""
    is_replay: bool
    """Whether the answer to an earlier request with the `Idempotency-Key` was repeated."""
    record_type: str | None
    """The `entity_type` of the record that a write made or changed, for example ticket."""
    record_id: int | None
    """Its `entity_id`."""
    trace_id: str
    """The id of its trace, for example 4bf92f3577b34da6a3ce929d0e0e4736."""
    request_body: str | None
    """What is kept of the body that was sent, as JSON: its first 16 KiB. A value that may say who somebody is stands
    there as `[redacted string]`, and so does a value of a type that the operation does not take; a key that it
    does not know begins with `~`: a hash. null if there was no body, and always for a live company, of which no
    body is kept.
    """
    response_body: str | None
    """What is kept of the answer's body, in the same way."""


class Meter(Answer, kw_only=True):
    """A utility meter of a property: of all of it, of its common areas, or of one unit."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["utility_meter"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    name: str
    """What people call the meter, for example Maple Court 204 electric."""
    utility_type: OpenMeterUtilityType
    """What it measures."""
    scope: OpenMeterScope
    """The part of the property that it measures: `master` is the whole property, `unit` one unit."""
    meter_number: str | None
    """The number on the meter."""
    unit_of_measure: str | None
    """The unit of its readings, for example kWh; null if not on record."""
    is_active: bool
    """Whether it is still in use. Inactive meters stay in the list, with their readings."""
    property: Reference
    """The property that it belongs to."""
    unit: Reference | None
    """The unit that it measures; null unless `scope` is `unit`."""
    created_at: datetime.datetime
    """When the record was created."""
    updated_at: datetime.datetime
    """When the record last changed."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""
    source: str
    """How the record was created, for example `import`."""
    url: str
    """Link that opens the record for a person."""


class MeterChange(Model, kw_only=True):
    """The latest state of a record that has changed."""

    schema_version: Literal[1]
    """Always 1."""
    entity_type: Literal["utility_meter"]
    """The kind of the record."""
    entity_id: int
    """The record's `entity_id`."""
    gone: bool
    """Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again."""
    record: Meter | None
    """The record at its latest state, as its fetch returns it, to the byte; null if it is gone."""


class PartyCreate(TypedDict, total=False):
    """A party of the lease."""

    first_name: str | None
    """The first name."""
    last_name: str | None
    """The last name."""
    email: str | None
    """The e-mail address. It is stored, and no response contains it."""
    phone: str | None
    """The phone number. It is stored, and no response contains it."""
    role: PartyRole | None
    """The party's role in the lease."""
    external_id: str | None
    """Your own identifier of the party."""


class NewSubscription(Answer, kw_only=True):
    """A webhook subscription that was just created, with its signing secret."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["webhook_subscription"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    destination_url: str
    """The URL that receives deliveries."""
    events: list[OpenEventKey]
    """The events that are delivered, sorted, each once."""
    health: OpenWebhookHealth
    """The health of the subscription as a whole: `retrying` after a failed attempt, `dead_lettered` after repeated
    failures (deliveries are still attempted), `paused` by an administrator; `healthy` after the next success.
    """
    secret_prefix: str
    """The first characters of the signing secret, to tell secrets apart."""
    created_at: datetime.datetime
    """When the record was created."""
    source: OpenSubscriptionSource
    """How it was created: `api` over this API, `administrator` in the administrator interface."""
    secret: str | None = None
    """The signing secret. Store it: replays and lists do not contain it."""


class NextDue(Model, kw_only=True):
    """What falls due next in a sandbox, by time alone."""

    at: datetime.datetime
    """When, by the sandbox's clock."""
    event: str
    """The event's key, or the name of a change that fires none by itself, for example ticket.stale."""


class Party(Model, kw_only=True):
    """A party of a lease. Its e-mail address and phone number are stored, but not part of this record."""

    id: int
    """The party's id."""
    first_name: str | None
    """The first name, as it was sent."""
    last_name: str | None
    """The last name, as it was sent."""
    role: OpenPartyRole | None
    """The party's role in the lease; null if none was sent."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""


class OccupancyRecord(Answer, kw_only=True):
    """What a notice or a move-in recorded on a unit."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["occupancy"]
    """What kind of record this is."""
    entity_id: int
    """The id of the transition, which is the `entity_id` of the turn."""
    unit_id: int
    """The unit's id."""
    status: OpenOccupancyStatus
    """The transition's stored status; a turn has it in title case."""
    move_in_date: datetime.date | None
    """The day on which the resident moved in or will move in; null if not on record."""
    move_out_date: datetime.date | None
    """The day on which the resident leaves or has left; null on a move-in."""
    occupancy_source: str | None
    """The provider that was sent, stripped and in lower case."""
    occupancy_fed_at: datetime.datetime | None
    """When this was recorded."""
    external_id: str | None
    """The external_id that was sent with this notice or move-in."""
    lease: Lease | None
    """The lease that the move-in created; null on a notice."""
    parties: list[Party]
    """The parties of the lease: leaseholders with first and last name first, then all others; otherwise in the order
    in which they were sent. `[]` on a notice.
    """
    url: str
    """Link that opens the unit's transitions for a person."""


class StalePmTask(Model, kw_only=True):
    """A preventive-maintenance task that is overdue. It has no id, and there is nothing to fetch afterwards."""

    task_name: str
    """The work to be done."""
    property: str
    """The property's name."""
    unit: str
    """Where: a unit, an area, or the whole property, in words."""
    due_date: datetime.date
    """The day by which it was due."""
    url: str
    """Link that opens the record for a person."""


class PmStaleEvent(Envelope, kw_only=True):
    """A preventive-maintenance task was still open on the morning after its due date, at 06:00 in the company's
    timezone. Once for each task, even if it is postponed later. A recurring task's next occurrence is a task of
    its own.
    """

    schema_version: Literal[1]
    """Version of the shape: 1."""
    event_id: str
    """Unique to the event; retries carry the same one. Use it to drop duplicates."""
    event: Literal["pm.stale"]
    """The event key. Ignore events whose key you do not know: new ones may come."""
    occurred_at: datetime.datetime
    """When it happened; the delivery may come an hour later or more. Orders the events of one record."""
    company_id: int
    """The company that it happened in."""
    data: StalePmTask
    change: None
    """Always null here."""


class Property(Answer, kw_only=True):
    """A property: one site with its buildings and units."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["property"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    name: str
    """What people call the property."""
    address: str
    """Its street address."""
    city: str | None
    """The city of the address."""
    state: str | None
    """The state or province of the address."""
    postal_code: str | None
    """The postal code of the address."""
    building_type: str | None
    """What kind of building it is, in the company's own words, for example Garden."""
    construction_type: str | None
    """How it is built, in the company's own words, for example Wood frame."""
    unit_count: int | None
    """The number of units on the property's own record; the API may list more or fewer units."""
    year_built: int | None
    """The year in which it was built."""
    latitude: float | None
    """Degrees north of the equator (WGS 84)."""
    longitude: float | None
    """Degrees east of Greenwich (WGS 84)."""
    created_at: datetime.datetime
    """When the record was created."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""
    source: str
    """How the record was created, for example `import`."""
    url: str
    """Link that opens the record for a person."""


class PropertyChange(Model, kw_only=True):
    """The latest state of a record that has changed."""

    schema_version: Literal[1]
    """Always 1."""
    entity_type: Literal["property"]
    """The kind of the record."""
    entity_id: int
    """The record's `entity_id`."""
    gone: bool
    """Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again."""
    record: Property | None
    """The record at its latest state, as its fetch returns it, to the byte; null if it is gone."""


class PropertyNotice(Model, kw_only=True):
    """A notice to the residents of a property. It has no id, and there is nothing to fetch afterwards."""

    subject: str
    """The subject of the notice."""
    property: str
    """The property's name."""
    unit: str
    """Whom it is for: a unit or an area, a number of units, or the whole property, in words."""
    url: str
    """Link that opens the record for a person."""
    created_at: datetime.datetime
    """When it was published."""
    when: str
    """When the announced work or event takes place, in words."""


class PropertyNoticePublishedEvent(Envelope, kw_only=True):
    """A notice to the residents of a property was published. Once for each notice."""

    schema_version: Literal[1]
    """Version of the shape: 1."""
    event_id: str
    """Unique to the event; retries carry the same one. Use it to drop duplicates."""
    event: Literal["property.notice.published"]
    """The event key. Ignore events whose key you do not know: new ones may come."""
    occurred_at: datetime.datetime
    """When it happened; the delivery may come an hour later or more. Orders the events of one record."""
    company_id: int
    """The company that it happened in."""
    data: PropertyNotice
    change: None
    """Always null here."""


class Reading(Answer, kw_only=True):
    """A reading: the consumption that one meter measured in one period."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["utility_reading"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    meter_id: int
    """The meter's id."""
    period_start: datetime.datetime
    """The instant from which it counts."""
    period_end: datetime.datetime
    """The instant up to which it counts."""
    consumption: float
    """The consumption in the period, in `unit_of_measure`; negative if more was fed back than drawn. Numbers of up
    to fifteen digits are exact.
    """
    unit_of_measure: str | None
    """The unit of `consumption`, for example kWh, as it was when the meter was read; null if not on record."""
    cost: float | None
    """The cost of the period, in the company's currency; null if not on record."""
    is_estimated: bool
    """Whether the consumption was estimated rather than read."""
    created_at: datetime.datetime
    """When the record was created."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""
    source: str
    """How the record was created, for example `import`."""


class ReadingChange(Model, kw_only=True):
    """The latest state of a record that has changed."""

    schema_version: Literal[1]
    """Always 1."""
    entity_type: Literal["utility_reading"]
    """The kind of the record."""
    entity_id: int
    """The record's `entity_id`."""
    gone: bool
    """Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again."""
    record: Reading | None
    """The record at its latest state, as its fetch returns it, to the byte; null if it is gone."""


class ReadingCreate(TypedDict, total=False):
    """A reading to store. If the meter has one of the same period, it is changed; what is left out there stays."""

    period_start: datetime.datetime
    """The instant from which it counts, with a UTC offset."""
    period_end: datetime.datetime
    """The instant up to which it counts, with a UTC offset."""
    consumption: float
    """The consumption in the period; negative if more was fed back than drawn."""
    unit_of_measure: str | None
    """The unit of `consumption`; that of the meter if left out."""
    cost: float | None
    """The cost of the period, in the company's currency."""
    is_estimated: bool | None
    """Whether the consumption was estimated rather than read; false if left out."""


class ReadingResult(Model, kw_only=True):
    """What became of one reading."""

    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    outcome: OpenReadingResultOutcome
    """`unchanged`: the reading was stored before with these values."""


class ReadingResults(Answer, kw_only=True):
    """What became of the readings of a request."""

    data: list[ReadingResult]
    """One for each reading, in the order of the request."""


class ReportMeasure(Model, kw_only=True):
    """A measure of a report."""

    name: str
    """The measure's name, for example first_response."""
    kind: OpenReportMeasureKind
    """A count is of the records of the period, and a duration measures each of them, too. A level is how many there
    are at the end of the period, such as a backlog.
    """
    unit: str
    """What is counted, or the unit of a duration: `minutes` or `days`. For example minutes."""
    definition: str
    """What it says, in a sentence."""


class ReportFigure(Model, kw_only=True):
    """What a measure was in a period."""

    measure: str
    """The name of one of `measures`, for example first_response."""
    count: int
    """How many records the figure is of; of a level, how many there are at the end of the period. For example 42."""
    median: int | None
    """The duration that half of the records do not exceed, in the measure's unit; null if the measure is no duration
    or there are no records. Up to 64 it is exact, above to within 2 %. For example 95.
    """
    p90: int | None
    """The duration that nine of ten records do not exceed, as `median`. For example 1440."""


class ReportPeriod(Model, kw_only=True):
    """The figures of a month or a day."""

    starts_on: datetime.date
    """Its first day, for example 2026-03-01."""
    figures: list[ReportFigure]
    """A figure of each measure, in their order."""


class ReportGroup(Model, kw_only=True):
    """The figures of a group of records in the whole period."""

    entity_id: int | None
    """The record that the group is named after, such as the property; null if the group has a value alone. For
    example 7.
    """
    name: str | None
    """The name of that record, or the value that the group's records share; null for records without one. For
    example Alder Court.
    """
    figures: list[ReportFigure]
    """A figure of each measure, in their order."""


class Report(Answer, kw_only=True):
    """Figures of a period, in all, by month or day, and by group."""

    name: str
    """The report, as in its path, for example tickets."""
    from_month: str
    """The first month of the period, for example 2026-01."""
    to_month: str
    """The last month of the period, for example 2026-03."""
    timezone: str
    """The company's timezone, in which days and months begin. For example America/Chicago."""
    property_id: int | None
    """The property whose records alone count; null for all. For example 7."""
    bucket: OpenReportBucket
    """The length of `buckets`."""
    group_by: str | None
    """What `groups` have in common, for example category; null without groups."""
    is_complete: bool
    """False while figures of older records are still being made, such as after an upgrade."""
    measures: list[ReportMeasure]
    """What each figure says."""
    total: list[ReportFigure]
    """The figures of the whole period."""
    buckets: list[ReportPeriod]
    """The figures of each month or day that has begun, ascending."""
    groups: list[ReportGroup]
    """The groups, at most 100, those with the most records first."""
    groups_left_out: int
    """How many more groups have figures. For example 0."""


class SandboxClock(Answer, kw_only=True):
    """A sandbox's clock, and what its last advance has done."""

    now: datetime.datetime
    """The instant that the sandbox's clock says, which records and events have."""
    status: OpenSandboxClockStatus
    """`advancing` until everything that falls due up to `target` is done."""
    start: datetime.datetime | None
    """Where the last advance began, by the sandbox's clock; null before the first."""
    target: datetime.datetime | None
    """Where it leads; null before the first advance."""
    done: dict[str, int]
    """How often the last advance has fired each event, and made each other change, by their names; without those
    that it has not.
    """
    waiting: str | None
    """Why an advance stands still, or why `next_due` is not known: a sentence for people."""
    next_due: NextDue | None
    """What falls due next; null while the clock advances, and if time alone makes nothing due."""


class SearchResults(Answer, kw_only=True):
    """All that a search has found."""

    data: list[FoundRecord]
    """The records, one of a kind at most; `[]` where there are none. A feed may give several turns the same
    `external_id`: of these up to 100.
    """


class StaffMember(Model, kw_only=True):
    """A member of the company's staff, to whom tickets can be assigned."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["staff"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    name: str
    """The person's name."""
    is_active: bool
    """Whether the person still works for the company. Those who have left stay in the list, with their work."""
    created_at: datetime.datetime
    """When the record was created."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""
    source: str
    """How the record was created, for example `import`."""


class StaleTurnTask(Model, kw_only=True):
    """A make-ready task that is overdue. It has no id, and there is nothing to fetch afterwards."""

    task_type: str
    """The kind of work."""
    property: str
    """The property's name."""
    unit: str
    """The unit's name."""
    url: str
    """Link that opens the record for a person."""


class Subscription(Model, kw_only=True):
    """A webhook subscription."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["webhook_subscription"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    destination_url: str
    """The URL that receives deliveries."""
    events: list[OpenEventKey]
    """The events that are delivered, sorted, each once."""
    health: OpenWebhookHealth
    """The health of the subscription as a whole: `retrying` after a failed attempt, `dead_lettered` after repeated
    failures (deliveries are still attempted), `paused` by an administrator; `healthy` after the next success.
    """
    secret_prefix: str
    """The first characters of the signing secret, to tell secrets apart."""
    created_at: datetime.datetime
    """When the record was created."""
    source: OpenSubscriptionSource
    """How it was created: `api` over this API, `administrator` in the administrator interface."""


class Ticket(Answer, kw_only=True):
    """A maintenance ticket."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["ticket"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    ticket_number: int | None
    """The number that staff and residents see. It is unique within one property only, so filter by property, too."""
    title: str
    """The problem, in one line."""
    description: str | None
    """The full report."""
    category: OpenTicketCategory
    """The trade that the ticket is for."""
    subcategory: str | None
    """A narrower kind of work, in the company's own words."""
    priority: OpenTicketPriority
    """How urgent it is."""
    status: OpenTicketStatus
    """The ticket's status. Every status can follow every other one, Completed and Cancelled included."""
    property: Reference
    """The property that the ticket belongs to."""
    unit: Reference | None
    """The unit that the ticket is tied to; null for work elsewhere on the property."""
    unit_number: str | None
    """The unit number as it was typed when the ticket was opened; it may match no unit on record."""
    room: str | None
    """The room where the work is, for example Kitchen."""
    room_instance: str | None
    """Distinguishes rooms of the same kind, for example 2 for the second bathroom."""
    permission_to_enter: bool
    """Whether the resident allows staff to enter when the home is empty."""
    preferred_access_time: str | None
    """When the resident would like the visit, in their own words."""
    assignee: Assignee | None
    """The member of staff to whom the ticket is assigned; null if none is."""
    assigned_vendor: Reference | None
    """The vendor to whom the ticket is assigned; null if none is."""
    photo_url: str | None
    """The address of a photo of the problem."""
    created_at: datetime.datetime
    """When the ticket was opened."""
    updated_at: datetime.datetime
    """When the ticket last changed; `updated_since` compares this."""
    completed_at: datetime.datetime | None
    """When it was completed; null unless status is Completed, and for a completed ticket that came in a file without
    the instant.
    """
    cancelled_at: datetime.datetime | None
    """When it was cancelled; null unless status is Cancelled, and for a cancelled ticket that came in a file without
    the instant.
    """
    cancellation_reason_code: OpenTicketCancellationReasonCode | None
    """Why it was cancelled; null unless status is Cancelled."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""
    source: OpenTicketSource
    """How the ticket was opened: over this API, by staff, by a resident in the portal, from an inspection, or by an
    import.
    """
    url: str
    """Link that opens the record for a person."""


class TicketChange(Model, kw_only=True):
    """The latest state of a record that has changed."""

    schema_version: Literal[1]
    """Always 1."""
    entity_type: Literal["ticket"]
    """The kind of the record."""
    entity_id: int
    """The record's `entity_id`."""
    gone: bool
    """Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again."""
    record: Ticket | None
    """The record at its latest state, as its fetch returns it, to the byte; null if it is gone."""


class TicketComment(Answer, kw_only=True):
    """A comment on a ticket. It is part of no ticket's record; people see it with the ticket."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["ticket_comment"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    ticket_id: int
    """The ticket's id."""
    text: str
    """What is said."""
    author: OpenCommentAuthor
    """Whose words they are."""
    created_at: datetime.datetime
    """When the record was created."""


class TicketCreatedEvent(Envelope, kw_only=True):
    """A ticket was opened by staff, by a resident, by a failed row of an inspection, or with `POST /tickets`; the
    ticket's `source` says which. Once for each ticket; a row that fails again opens no second ticket.
    """

    schema_version: Literal[1]
    """Version of the shape: 1."""
    event_id: str
    """Unique to the event; retries carry the same one. Use it to drop duplicates."""
    event: Literal["ticket.created"]
    """The event key. Ignore events whose key you do not know: new ones may come."""
    occurred_at: datetime.datetime
    """When it happened; the delivery may come an hour later or more. Orders the events of one record."""
    company_id: int
    """The company that it happened in."""
    data: Ticket
    change: None
    """Always null here."""


class TicketStaleEvent(Envelope, kw_only=True):
    """Neither staff nor a vendor did anything about a ticket that a resident opened for longer than the company's
    threshold (72 hours unless the company has set another). Residents' own comments and changes do not count. A
    ticket that is Completed or Cancelled is never stale. Again after each further threshold; after an outage once
    for all that were missed.
    """

    schema_version: Literal[1]
    """Version of the shape: 1."""
    event_id: str
    """Unique to the event; retries carry the same one. Use it to drop duplicates."""
    event: Literal["ticket.stale"]
    """The event key. Ignore events whose key you do not know: new ones may come."""
    occurred_at: datetime.datetime
    """When it happened; the delivery may come an hour later or more. Orders the events of one record."""
    company_id: int
    """The company that it happened in."""
    data: Ticket
    change: None
    """Always null here."""


class TicketStatusChangedEventChange(Model, kw_only=True, rename={"from_": "from"}):
    """What moved."""

    field: Literal["status"]
    """The field that moved."""
    from_: OpenTicketStatus
    """Its value before."""
    to: OpenTicketStatus
    """Its value now."""


class TicketStatusChangedEvent(Envelope, kw_only=True):
    """A ticket's status changed, or a closed ticket was closed again: by staff or with `PATCH /tickets/{ticket_id}`.
    If it was closed again, `from` and `to` are equal: Completed again has another `completed_at`; Cancelled again
    has another `cancelled_at`, and another `cancellation_reason_code` or other notes. Once for each change.
    Cancelled again with the stored reason and notes fires nothing; neither does Open, In Progress or On Hold
    again.
    """

    schema_version: Literal[1]
    """Version of the shape: 1."""
    event_id: str
    """Unique to the event; retries carry the same one. Use it to drop duplicates."""
    event: Literal["ticket.status_changed"]
    """The event key. Ignore events whose key you do not know: new ones may come."""
    occurred_at: datetime.datetime
    """When it happened; the delivery may come an hour later or more. Orders the events of one record."""
    company_id: int
    """The company that it happened in."""
    data: Ticket
    change: TicketStatusChangedEventChange
    """What moved."""


class Turn(Answer, kw_only=True):
    """A turn: one transition of a unit, from a resident's move-in to the departure and the work after it. A first
    move-in, before any departure, is a turn too.
    """

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["turn"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    status: OpenTurnStatus
    """A turn is Active from the record of its move-in until the next resident moves in; then it is Completed. A unit
    may have several that are Active: at most one that has begun, and planned ones, whose move_in_date is later,
    or whose unit is not free yet.
    """
    property: Reference
    """The property that the unit belongs to."""
    unit: Reference
    """The unit."""
    move_out_date: datetime.date | None
    """The day on which the resident leaves or has left; null without a departure."""
    move_in_date: datetime.date | None
    """The day on which the resident moved in or will."""
    projected_ready_on: datetime.date | None
    """The day on which the unit is expected to be ready again; null if the turn has no move_out_date, or its work is
    not planned yet.
    """
    occupancy_source: str | None
    """The slug of the system that feeds this turn, in lower case; null when staff manage it."""
    occupancy_fed_at: datetime.datetime | None
    """When that system last wrote to it."""
    created_at: datetime.datetime
    """When the record was created."""
    updated_at: datetime.datetime
    """When the record last changed."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""
    source: OpenTurnSource
    """How the record was created, for example `import`."""
    url: str
    """Link that opens the turn's own page for a person."""


class TurnChange(Model, kw_only=True):
    """The latest state of a record that has changed."""

    schema_version: Literal[1]
    """Always 1."""
    entity_type: Literal["turn"]
    """The kind of the record."""
    entity_id: int
    """The record's `entity_id`."""
    gone: bool
    """Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again."""
    record: Turn | None
    """The record at its latest state, as its fetch returns it, to the byte; null if it is gone."""


class TurnScheduleChangedEventChange(Model, kw_only=True, rename={"from_": "from"}):
    """What moved."""

    field: Literal["projected_ready_on"]
    """The field that moved."""
    from_: datetime.date | None
    """Its value before."""
    to: datetime.date | None
    """Its value now."""


class TurnScheduleChangedEvent(Envelope, kw_only=True):
    """A turn's projected ready date changed. Either date may be null: there was none before, or there is none now.
    Once for each change. Changes of make-ready tasks do not change the date.
    """

    schema_version: Literal[1]
    """Version of the shape: 1."""
    event_id: str
    """Unique to the event; retries carry the same one. Use it to drop duplicates."""
    event: Literal["turn.schedule_changed"]
    """The event key. Ignore events whose key you do not know: new ones may come."""
    occurred_at: datetime.datetime
    """When it happened; the delivery may come an hour later or more. Orders the events of one record."""
    company_id: int
    """The company that it happened in."""
    data: Turn
    change: TurnScheduleChangedEventChange
    """What moved."""


class TurnStatusChangedEventChange(Model, kw_only=True, rename={"from_": "from"}):
    """What moved."""

    field: Literal["unit_status"]
    """The field that moved."""
    from_: OpenUnitStatus | None
    """Its value before."""
    to: OpenUnitStatus
    """Its value now."""


class TurnStatusChangedEvent(Envelope, kw_only=True):
    """A unit with a turn changed status: by a notice, a move-in that begins, staff on the turn board, or at 06:00 in
    the company's timezone because its resident's move-out date was the day before and no resident follows. A
    move-in of a later date fires when it begins, just after midnight in the company's timezone. `from` and `to`
    are the unit's old and new status; `from` is null if the unit had none. `data` is the unit's current turn, or
    else its newest. Once for each change. A unit that never had a turn fires nothing.
    """

    schema_version: Literal[1]
    """Version of the shape: 1."""
    event_id: str
    """Unique to the event; retries carry the same one. Use it to drop duplicates."""
    event: Literal["turn.status_changed"]
    """The event key. Ignore events whose key you do not know: new ones may come."""
    occurred_at: datetime.datetime
    """When it happened; the delivery may come an hour later or more. Orders the events of one record."""
    company_id: int
    """The company that it happened in."""
    data: Turn
    change: TurnStatusChangedEventChange
    """What moved."""


class TurnTaskStaleEvent(Envelope, kw_only=True):
    """A make-ready task of a turn was still open on the morning after its scheduled date, at 06:00 in the company's
    timezone. Once for each task, even if it is postponed later.
    """

    schema_version: Literal[1]
    """Version of the shape: 1."""
    event_id: str
    """Unique to the event; retries carry the same one. Use it to drop duplicates."""
    event: Literal["turn.task.stale"]
    """The event key. Ignore events whose key you do not know: new ones may come."""
    occurred_at: datetime.datetime
    """When it happened; the delivery may come an hour later or more. Orders the events of one record."""
    company_id: int
    """The company that it happened in."""
    data: StaleTurnTask
    change: None
    """Always null here."""


class Unit(Answer, kw_only=True):
    """A unit: one home or suite of a property."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["unit"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    name: str
    """The name that people see, for example Maple Court 204."""
    unit_number: str | None
    """The number on the door."""
    unit_status: OpenUnitStatus | None
    """Whether it is occupied, and if not, whether it is ready; null if unknown."""
    property: Reference
    """The property that it belongs to."""
    floorplan: Floorplan | None
    """The plan that it is built to; null if none is assigned."""
    building: Reference | None
    """The building that it is in; null if the property's buildings are not recorded."""
    floor: Reference | None
    """The floor that was declared for it."""
    created_at: datetime.datetime
    """When the record was created."""
    external_id: str | None
    """Your own identifier of the record, where it was synced from your system; else null."""
    source: str
    """How the record was created, for example `import`."""
    projected_ready_on: datetime.date | None
    """The day on which the unit's active turn is expected to be ready; null without one. It is a projection, and not
    the day on which the unit became ready.
    """
    url: str
    """Link that opens the property's unit status view for a person."""


class UnitChange(Model, kw_only=True):
    """The latest state of a record that has changed."""

    schema_version: Literal[1]
    """Always 1."""
    entity_type: Literal["unit"]
    """The kind of the record."""
    entity_id: int
    """The record's `entity_id`."""
    gone: bool
    """Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again."""
    record: Unit | None
    """The record at its latest state, as its fetch returns it, to the byte; null if it is gone."""


class Vendor(Answer, kw_only=True):
    """A vendor: the company's relationship with a business that works for it. Inactive vendors are included."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["vendor"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    name: str
    """The company's name for the vendor: its nickname, or else the legal name of the business."""
    business: Business
    """The legal entity behind the vendor."""
    avg_rating: float | None
    """The average of its ratings; null where there is none."""
    rating_count: int
    """How many ratings it has."""
    is_active: bool
    """Whether the company works with the vendor at present."""
    property_visibility: OpenVendorPropertyVisibility
    """At which of the company's properties the vendor may work: all of them, or those selected for it."""
    onboarded_at: datetime.datetime
    """When the relationship began."""
    retired_at: datetime.datetime | None
    """When the relationship ended; null where it has not."""
    url: str
    """Link that opens the record for a person."""
    last_compliance_state: OpenVendorLastComplianceState
    """The result of the last hourly check of its insurance and documents; `unknown` before the first check."""


class VendorChange(Model, kw_only=True):
    """The latest state of a record that has changed."""

    schema_version: Literal[1]
    """Always 1."""
    entity_type: Literal["vendor"]
    """The kind of the record."""
    entity_id: int
    """The record's `entity_id`."""
    gone: bool
    """Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again."""
    record: Vendor | None
    """The record at its latest state, as its fetch returns it, to the byte; null if it is gone."""


class VendorHoldEventChange(Model, kw_only=True, rename={"from_": "from"}):
    """What moved."""

    field: Literal["on_hold"]
    """The field that moved."""
    from_: bool
    """Its value before."""
    to: bool
    """Its value now."""


class VendorHoldEvent(Envelope, kw_only=True):
    """A vendor was placed on hold, by an administrator or because its insurance has lapsed. Once for each hold. The
    end of a hold fires nothing.
    """

    schema_version: Literal[1]
    """Version of the shape: 1."""
    event_id: str
    """Unique to the event; retries carry the same one. Use it to drop duplicates."""
    event: Literal["vendor.hold"]
    """The event key. Ignore events whose key you do not know: new ones may come."""
    occurred_at: datetime.datetime
    """When it happened; the delivery may come an hour later or more. Orders the events of one record."""
    company_id: int
    """The company that it happened in."""
    data: Vendor
    change: VendorHoldEventChange
    """What moved."""


class WebhookAttempt(Model, kw_only=True):
    """One attempt of a delivery."""

    number: int
    """1 is the first; the header `Service-Attempt`."""
    cause: OpenWebhookAttemptCause
    """Why it was made: `sweep` on its date, `replay` and `test` over this API, the others in the administrator
    interface.
    """
    replay_id: int | None
    """The replay that it was made for; the header `Service-Replay`."""
    started_at: datetime.datetime
    """When it began."""
    duration_milliseconds: int
    """Of the whole attempt."""
    first_byte_milliseconds: int | None
    """From the start to the first byte of the response; null if none arrived."""
    status: int | None
    """The HTTP status of the response; null if none arrived."""
    error: str | None
    """Why it failed, for example `status`, `timeout` or `certificate`; null after a success."""


class WebhookAttemptAnswer(Model, kw_only=True):
    """One attempt of a delivery, with the response to it."""

    number: int
    """1 is the first; the header `Service-Attempt`."""
    cause: OpenWebhookAttemptCause
    """Why it was made: `sweep` on its date, `replay` and `test` over this API, the others in the administrator
    interface.
    """
    replay_id: int | None
    """The replay that it was made for; the header `Service-Replay`."""
    started_at: datetime.datetime
    """When it began."""
    duration_milliseconds: int
    """Of the whole attempt."""
    first_byte_milliseconds: int | None
    """From the start to the first byte of the response; null if none arrived."""
    status: int | None
    """The HTTP status of the response; null if none arrived."""
    error: str | None
    """Why it failed, for example `status`, `timeout` or `certificate`; null after a success."""
    response_excerpt: str
    """The first 4 KiB of the response's body."""


class WebhookDelivery(Model, kw_only=True):
    """An event's delivery to a subscription, without the event itself."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["webhook_delivery"]
    """What kind of record this is."""
    entity_id: int
    """The id of the subscription, the same in all deliveries of one list."""
    delivery_id: str
    """The delivery's own id, which stays for as long as the delivery exists. It has at most 64 characters; treat it
    as opaque.
    """
    event_id: str
    """The event's id, as its envelope has it."""
    event: str
    """The event's key; `webhook.test` for a test."""
    occurred_at: datetime.datetime
    """When the event happened."""
    state: OpenWebhookDeliveryState
    """`waiting` for its next attempt; `parked` when the retries are used up; `failed`: a test that did not arrive."""
    next_attempt_at: datetime.datetime | None
    """When the next attempt is due; null unless the delivery waits."""
    expires_at: datetime.datetime
    """When the delivery is deleted."""
    attempts: list[WebhookAttempt]
    """Ascending by number."""


class WebhookDeliveryAnswers(Answer, kw_only=True):
    """An event's delivery to a subscription, with the responses to its attempts."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["webhook_delivery"]
    """What kind of record this is."""
    entity_id: int
    """The id of the subscription, the same in all deliveries of one list."""
    delivery_id: str
    """The delivery's own id, which stays for as long as the delivery exists. It has at most 64 characters; treat it
    as opaque.
    """
    event_id: str
    """The event's id, as its envelope has it."""
    event: str
    """The event's key; `webhook.test` for a test."""
    occurred_at: datetime.datetime
    """When the event happened."""
    state: OpenWebhookDeliveryState
    """`waiting` for its next attempt; `parked` when the retries are used up; `failed`: a test that did not arrive."""
    next_attempt_at: datetime.datetime | None
    """When the next attempt is due; null unless the delivery waits."""
    expires_at: datetime.datetime
    """When the delivery is deleted."""
    attempts: list[WebhookAttemptAnswer]
    """Ascending by number."""


class WebhookFilter(Answer, kw_only=True):
    """The filter of a webhook subscription."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["webhook_filter"]
    """What kind of record this is."""
    entity_id: int
    """The id of the subscription."""
    property_ids: list[int] | None
    """Only events of these properties, ascending; null: of all."""
    categories: list[OpenTicketCategory] | None
    """Only tickets with these categories; null: with any."""
    priorities: list[OpenTicketPriority] | None
    """Only tickets with these priorities; null: with any."""


class WebhookReplay(Answer, kw_only=True):
    """A replay: the events of a period, sent to a subscription once more."""

    schema_version: Literal[1]
    """Version of the shape: 1. New fields do not change it."""
    entity_type: Literal["webhook_replay"]
    """What kind of record this is."""
    entity_id: int
    """The record's id, stable for its life; where the record can be fetched, the id in the path."""
    subscription_id: int
    """The subscription that the events are sent to."""
    since: datetime.datetime
    """Only events that were stored at this instant or later."""
    until: datetime.datetime
    """Only events that were stored before this instant."""
    events: list[OpenEventKey]
    """Only events with these keys; sorted, each once."""
    state: OpenReplayState
    """Which deliveries it is about; see ReplayCreate."""
    status: OpenWebhookReplayStatus
    """`finished` when each delivery was attempted."""
    matched: int
    """The deliveries that it was about when it was requested. Those whose events do not pass the subscription's
    filter are taken off while it runs.
    """
    waiting: int
    """Those that were not attempted yet."""
    succeeded: int
    """Attempts of this replay that arrived."""
    failed: int
    """Attempts of this replay that failed. Such a delivery is parked, or goes on with the retries that it had left."""
    created_at: datetime.datetime
    """When it was requested."""
    finished_at: datetime.datetime | None
    """When each delivery had been attempted; null until then."""


class Whoami(Answer, kw_only=True):
    """The key that asked, and its company."""

    api_version: Literal["v1"]
    """The version of this API."""
    company: Company
    """The company whose records the key sees."""
    key: Key
    """The key itself."""


class UnknownEvent(Envelope):
    """An event whose key this version does not know."""

    event_id: str
    event: str
    occurred_at: datetime.datetime
    company_id: int
    data: dict[str, Any]
    change: dict[str, Any] | None


Event: TypeAlias = (
    TicketCreatedEvent
    | TicketStatusChangedEvent
    | TurnStatusChangedEvent
    | TurnScheduleChangedEvent
    | VendorHoldEvent
    | TicketStaleEvent
    | InspectionStaleEvent
    | PropertyNoticePublishedEvent
    | TurnTaskStaleEvent
    | PmStaleEvent
    | UnknownEvent
)
EVENTS: dict[str, type[Event]] = {
    "ticket.created": TicketCreatedEvent,
    "ticket.status_changed": TicketStatusChangedEvent,
    "turn.status_changed": TurnStatusChangedEvent,
    "turn.schedule_changed": TurnScheduleChangedEvent,
    "vendor.hold": VendorHoldEvent,
    "ticket.stale": TicketStaleEvent,
    "inspection.stale": InspectionStaleEvent,
    "property.notice.published": PropertyNoticePublishedEvent,
    "turn.task.stale": TurnTaskStaleEvent,
    "pm.stale": PmStaleEvent,
}
