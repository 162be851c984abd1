"""The document's texts: operations, parameters, headers. A new route needs its entry here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TITLE = "Maintenance and Occupancy Records API"

INTRODUCTION = """\
Server-side access to a company's property-maintenance records: tickets, properties, units, assets, vendors,
inspections, turns, meters and their readings; and signed webhooks that announce changes.

**Keys.** Every request carries a company's API key in the header `Authorization: Bearer <API_KEY>`, never in a URL. A
key sees the records of its own company only: a record of another company answers 404. Keys are for servers; no
response has a CORS header. `GET /whoami` returns the key's company and scope.

| scope | allows |
|---|---|
| `read` | every list and fetch, and the list of webhook subscriptions |
| `write` | everything that the other two scopes allow, and the writes |
| `webhook_only` | creating, listing and deleting webhook subscriptions |

**Records.** Every record begins with `schema_version`, `entity_type` and `entity_id`. Instants are ISO 8601 in UTC with
microseconds, dates `YYYY-MM-DD`. A field without a value is null, never absent. New fields, new values of an
enum, new events and new endpoints may be added at any time: ignore those that you do not know. Requests are
strict: an unknown key or value is refused.

**Lists.** A list returns `data`, `next_cursor` and `limit`, ascending by id. Follow `next_cursor` until it is null,
with the same filters; treat it as opaque. Records that are created meanwhile neither shift nor repeat others; one may
become visible shortly after a record with a higher id, so a walk that runs at that moment may pass it. There is no
total count. To follow changes, ask with `updated_since` a minute before your last look: an instant may become
visible shortly after it was taken. An unknown query key is refused with 400, a status outside its enum with 422.

**Writes.** Send a new `Idempotency-Key` with each new write, and the same one again when you retry: the first answer
comes back to the byte (except a signing secret, which is returned once), with `X-Idempotent-Replay: 1`, whatever has
changed since, and nothing happens twice. Two requests are the same if they have the same operation, path and JSON; the
order of keys and the spelling of values do not matter. The key is refused with `idempotency_mismatch` for any other
request, and with `idempotency_in_progress` while the first request is under way. An `Idempotency-Key` belongs to the
API key that sent it. Only a successful write uses it up, for 30 days; after that, the same request is a new write.

**Limits.** 120 requests a minute for each key; the header `RateLimit` says how many are left. A request body has at
most 256 KiB. Text must not contain NUL; text of white space, control and zero-width characters alone counts as
blank.

**Errors.** Every failure returns `{"error": {"code", "message"}}`. Branch on `code`; the message is for people. Retry
429 (after `Retry-After` seconds), 500 and 503, and `idempotency_in_progress` with the same key; nothing else."""

TAGS = {
    "Meta": "The calling key, and this document.",
    "Tickets": "Maintenance work: the report, its status and its assignee.",
    "Properties": "The company's sites.",
    "Units": "Homes and suites of the properties.",
    "Assets": "Equipment of the properties, retired equipment included.",
    "Vendors": "The company's relationships with the businesses that work for it, inactive ones included.",
    "Inspections": "Inspections of operations: planned, under way and completed.",
    "Turns": "Unit transitions: a residency from its move-in to the departure, and the work in between two of them.",
    "Meters": "Utility meters of every scope, inactive ones included, and their readings.",
    "Webhooks": "Subscriptions to the events.",
}

LISTS_AND_FETCHES = {
    "/tickets": ("tickets", "Tickets without a property are not included."),
    "/properties": ("properties", ""),
    "/units": ("units", ""),
    "/assets": ("assets", "Retired assets are included."),
    "/vendors": ("vendors", "Inactive relationships are included."),
    "/inspections": (
        "inspections",
        "Inspections of operations only: walks of a consulting engagement are not included; a unit's acceptance walk "
        "without an engagement is.",
    ),
    "/turns": ("turns", "Every transition is a turn, a first move-in without a departure too."),
    "/meters": ("utility meters", "Inactive meters are included."),
    "/meters/{meter_id}/readings": (
        "readings of a meter",
        "The oldest come first: the last page holds the latest periods.",
    ),
    "/webhooks": ("webhook subscriptions", "The signing secret is not included."),
}
OTHERS = {
    "GET /whoami": (
        "Identify the key",
        "The key's company and scope. Every active key may call it: a good first request.",
    ),
    "GET /openapi.json": (
        "Fetch this document",
        "The OpenAPI document of this API. It is public: no key is needed, and a key that is sent is ignored.",
    ),
    "DELETE /webhooks/{sub_id}": (
        "Delete a webhook subscription",
        "Deletes the subscription and the history of its deliveries. Events that wait for delivery to it are not "
        "delivered any more.",
    ),
}
# Lists that document 422 (spec 4.12.6).
FILTER_422 = ("/tickets", "/properties", "/units", "/assets", "/vendors", "/inspections", "/turns")

# The entity_type of the record that a path's noun stands for.
ENTITY_TYPES = {
    "tickets": "ticket",
    "properties": "property",
    "units": "unit",
    "assets": "asset",
    "vendors": "vendor",
    "inspections": "inspection",
    "turns": "turn",
    "meters": "utility_meter",
    "readings": "utility_reading",
    "webhooks": "webhook_subscription",
}
IDS = {
    "ticket_id": "The ticket's `entity_id`.",
    "property_id": "The property's `entity_id`.",
    "unit_id": "The unit's `entity_id`.",
    "asset_id": "The asset's `entity_id`.",
    "vendor_id": "The vendor's `entity_id`.",
    "inspection_id": "The inspection's `entity_id`.",
    "turn_id": "The turn's `entity_id`.",
    "meter_id": "The meter's `entity_id`.",
    "sub_id": "The subscription's `entity_id`.",
}
FILTERS = {
    "property_id": "Only records of the property with this id. An unknown id gives an empty page.",
    "unit_id": "Only records of the unit with this id. An unknown id gives an empty page.",
    "status": "Only records with this status. Any other value is refused with 422.",
    "updated_since": "Only records that changed at this instant or later. It must carry a UTC offset.",
    "ticket_number": "Only the ticket with this number.",
}
FILTER_EXAMPLES = {
    "property_id": 12,
    "unit_id": 204,
    "updated_since": "2026-03-01T00:00:00Z",
    "ticket_number": 318,
}


@dataclass(frozen=True, slots=True)
class Write:
    """A write's body and answer, and the refusals that it has in addition to those of every write."""

    summary: str
    description: str
    body: str
    status: int
    answer: str
    codes: dict[int, tuple[str, ...]]
    refusals: dict[int, str]
    """The meaning of the codes for this write, by status."""
    messages: dict[int, str]
    """The sentence of an `invalid_request`, by status; under 404 that of a `not_found`."""
    shown: dict[str, Any] = field(default_factory=dict)
    """The fields in which the example of its answer differs from the record's."""


NO_UNIT = "No unit with that id is visible to this key; check the id and the key."
WRITES = {
    "POST /tickets": Write(
        "Create a ticket",
        "Opens a ticket on a unit. Fires `ticket.created`.",
        "TicketCreate",
        201,
        "Ticket",
        {404: ("not_found",), 422: ("invalid_request", "created_by_missing")},
        {
            404: "The unit or the asset is not visible to the key, or the asset is on another property.",
            422: "The body contains `status`, `priority` or `category` is outside its enum, `title` is over 150 "
            "characters; or the key has no minting administrator on record.",
        },
        {400: "title is required.", 404: NO_UNIT, 422: "title must be at most 150 characters."},
        {
            "subcategory": None,
            "room": None,
            "permission_to_enter": False,
            "preferred_access_time": None,
            "assignee": None,
            "source": "api",
        },
    ),
    "PATCH /tickets/{ticket_id}": Write(
        "Change a ticket's status",
        "Every status can follow every other one, Completed and Cancelled included: `completed_at` is null again "
        "when the ticket is no longer Completed, `cancelled_at` and `cancellation_reason_code` when it is no longer "
        "Cancelled. The status that the ticket already has is accepted, too; a new reason or note is then stored. "
        "Fires `ticket.status_changed` if the status changes. Notes become comments of the ticket. Words of a note "
        "are separated by blanks, and each contains a letter or a digit. In scripts without blanks between words, each "
        "Chinese or Japanese character counts as a word, and in Thai, Lao, Khmer, Burmese and similar scripts every "
        "three letters do.",
        "StatusChange",
        200,
        "Ticket",
        {404: ("not_found",), 422: ("invalid_request", "created_by_missing")},
        {
            400: "The header `Idempotency-Key` is missing or too long; the body is not one JSON object, `status` is "
            "missing, a value is of a wrong type or over its cap; or `cancellation_notes` is sent with another code "
            "than `see_notes`.",
            404: "The ticket is not visible to the key.",
            422: "`status` or `cancellation_reason_code` is outside its enum; a field is not accepted with this "
            "status, or is not a field of the body; the closing note, the cancellation reason or the cancellation "
            "notes are missing, or a note has fewer than 5 words; the company requires a photo to complete a ticket "
            "and this one has none; or the key has no minting administrator on record.",
        },
        {400: "status is required.", 422: "note must have 5 or more words."},
        {
            "status": "Completed",
            "updated_at": "2026-03-04T09:41:30.007310Z",
            "completed_at": "2026-03-04T09:41:30.007310Z",
        },
    ),
    "POST /units/{unit_id}/notice": Write(
        "Record a notice to vacate",
        "Records when the unit's current resident leaves. The unit becomes `Notice`, which fires `turn.status_changed` "
        "if it was not. Another notice replaces all values of the notice before it.",
        "NoticeCreate",
        201,
        "OccupancyRecord",
        {422: ("invalid_request", "created_by_missing")},
        {
            400: "The header `Idempotency-Key` is missing or too long, or the body is not valid: "
            "not one JSON object, an unknown key, `move_out_date` or `provider` missing, a date that does not exist, a "
            "value of a wrong type or over its cap. The message names the field and the cap.",
            404: "The unit is not visible to the key.",
            422: "The unit has no active resident; or the key has no minting administrator on record.",
        },
        {
            400: "provider is required.",
            404: NO_UNIT,
            422: "The unit has no active resident; record the move-in before a notice.",
        },
        {
            "entity_id": 1207,
            "move_in_date": "2025-04-01",
            "move_out_date": "2026-03-31",
            "occupancy_fed_at": "2026-02-27T11:02:45.830055Z",
            "external_id": "NTV-5512",
            "lease": None,
            "parties": [],
        },
    ),
    "POST /units/{unit_id}/move-in": Write(
        "Record a move-in",
        "Records a new resident of the unit, with the lease and its parties. The unit becomes `Occupied`, "
        "which fires `turn.status_changed` if it was not. If the unit still has a resident whose move_out_date "
        "has not passed, `predecessor_transition_id` names the turn that ends.",
        "MoveInCreate",
        201,
        "OccupancyRecord",
        {422: ("invalid_request", "created_by_missing")},
        {
            400: "The header `Idempotency-Key` is missing or too long, or the body is not valid: "
            "not one JSON object, an unknown key, a required field missing, a date that does not exist, no party or "
            "more than 20, an invalid e-mail address, a value of a wrong type or over its cap. The message names "
            "the field (for a party with its index from 0) and the cap.",
            404: "The unit is not visible to the key.",
            422: "An active resident occupies the unit; `predecessor_transition_id` names no outgoing transition of "
            "the unit; no leaseholder is named, or a party's `role` is outside its enum; `lease_end_date` is before "
            "`lease_start_date`; or the key has no minting administrator on record.",
        },
        {
            400: "parties[0].first_name must be at most 80 characters.",
            404: NO_UNIT,
            422: "lease_end_date must be on or after lease_start_date.",
        },
    ),
    "POST /webhooks": Write(
        "Create a webhook subscription",
        "Subscribes a URL to events. The response contains the signing secret; no later response does. For its "
        "`Idempotency-Key`, a request is the same if its destination and its set of events are the same.",
        "SubscriptionCreate",
        201,
        "NewSubscription",
        {
            422: ("invalid_destination_url", "events_empty", "events_unknown_key", "invalid_request"),
            503: ("vault_unavailable",),
        },
        {
            422: "Nothing was created. `invalid_request`: the company has as many subscriptions as it may, 1,000 "
            "unless the operator sets another number.",
            503: "Nothing was created.",
        },
        {
            400: "destination_url is required.",
            422: "A company has at most 1,000 webhook subscriptions; delete one that is not needed.",
        },
    ),
}
# Schemas that a Struct can't express: its field accepts more, and the service refuses that with codes of its own.
AMENDED: dict[str, dict[str, Any]] = {
    "SubscriptionCreate.events": {"type": "array", "items": {"$ref": "#/$defs/EventKey"}, "minItems": 1},
    "MoveInCreate.parties": {
        "type": "array",
        "items": {"$ref": "#/$defs/PartyCreate"},
        "minItems": 1,
        "maxItems": 20,
        "contains": {
            "type": "object",
            "properties": {
                "first_name": {"type": "string", "pattern": r"\S"},
                "last_name": {"type": "string", "pattern": r"\S"},
                "role": {"const": "leaseholder"},
            },
            "required": ["first_name", "last_name", "role"],
        },
    },
}
# Public names that read better than those of their Structs and fields.
PUBLIC_NAMES = {
    "LocationLocationType": "LocationType",
    "LeaseLeaseType": "LeaseType",
    "OccupancyRecordStatus": "OccupancyStatus",
    "Named": "Reference",
    "SubscriptionEvents": "EventKey",
    "SubscriptionHealth": "WebhookHealth",
    "UnitUnitStatus": "UnitStatus",
}
