"""The document's texts: operations, parameters, headers. A new route needs its entry here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = DOCS / "webhooks.md"
GUIDE_FILES = tuple(DOCS / "webhooks" / name for name in ("receiver.py", "receiver.ts", "receiver.sh", "vectors.json"))
QUICKSTART_FILES = tuple(DOCS / "quickstart" / f"quickstart.{ending}" for ending in ("sh", "py", "ts"))
# Guides with a program, which stands in place of a comment on their page.
SYNC = DOCS / "sync.md"
SYNC_FILE = DOCS / "sync" / "copy.py"
FEED = DOCS / "feed.md"
PAGING = DOCS / "paging.md"
TESTING = DOCS / "testing.md"
CLIENTS = DOCS / "clients.md"
FEED_FILE = DOCS / "feed" / "feed.py"

TITLE = "Maintenance and Occupancy Records API"

INTRODUCTION = """\
Server-side access to a company's property-maintenance records: tickets, properties, units, assets, vendors,
inspections, turns, meters and their readings; and signed webhooks that announce changes.

**Keys.** Every request carries a company's API key in the header `Authorization: Bearer <API_KEY>`, never in a URL. A
key sees the records of its own company only: a record of another company answers 404. Keys are for servers; no
response has a CORS header. `GET /whoami` returns the key's company and scope.

| scope | allows |
|---|---|
| `read` | every list and fetch |
| `write` | everything that the other two scopes allow, and every write |
| `webhook_only` | creating, listing and deleting webhook subscriptions, and nothing else but `GET /whoami` |

**Records.** Every record begins with `schema_version`, `entity_type` and `entity_id`. The types are {entity_types}.
The id is the record's own; a `webhook_delivery` has its subscription's there, and its own in `delivery_id`. Instants
are ISO 8601 in UTC with microseconds, dates `YYYY-MM-DD`. A field without a value is null, never absent. New fields,
new values of an enum, new events and new endpoints may be added at any time: ignore those that you do not know.
Requests are strict: an unknown key or value is refused.

**Lists.** A list returns `data`, `next_cursor` and `limit`, ascending by id. Follow `next_cursor` until it is null,
with the same filters; treat it as opaque: the guide at `/docs/paging` has the rest. To keep a copy in step, follow
`/changes`: the guide at `/docs/sync` has a program. An unknown query key is refused with 400, a status outside its enum
with 422.

**Writes.** Send a new `Idempotency-Key` with each new write, and the same one again when you retry: the first answer
comes back to the byte (except a signing secret, which is returned once), with `X-Idempotent-Replay: 1`, whatever has
changed since, and nothing happens twice. Two requests are the same if they have the same operation, path and JSON; the
order of keys and the spelling of values do not matter. The key is refused with `idempotency_mismatch` for any other
request, whatever the operation, and with `idempotency_in_progress` while the first request is under way. An
`Idempotency-Key` belongs to the API key that sent it. Only a successful write uses it up, for 30 days; after that, the
same request is a new write.

**Limits.** 120 requests a minute for each key; the header `RateLimit` says how many are left (`/docs/paging`). A body
has at most 256 KiB. Text must not contain NUL; text of white space, control and zero-width characters alone counts as
blank. Answers to reads are compressed with gzip, from 1 KiB, for clients whose `Accept-Encoding` names it.

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
    "Turns": "Unit transitions: a residency from its move-in to the departure, and the work in between two of them. "
    "Units are let ahead, so a unit may have several turns that are `Active`: at most one current turn, which has "
    "begun, and planned ones behind it, which change nothing about the unit until they begin. An example of four "
    "dates: in October the resident gives notice for 28 December, and the unit is `Notice`. In November a move-in for "
    "10 January is recorded, after that turn; both are `Active`, and the unit stays `Notice`, with the first turn's "
    "`projected_ready_on`, 4 January. On 29 December, at 06:00 in the company's timezone, the unit is "
    "`Vacant Not Ready`. On 10 January, just after midnight, the second turn begins: the first is `Completed`, the "
    "unit `Occupied`. A resident who stays longer is waited for.",
    "Staff": "The people of the company, to whom tickets can be assigned.",
    "Meters": "Utility meters of every scope, inactive ones included, and their readings.",
    "Changes": "Records in the order of their last change, and all records at once, for an exact copy; events in the "
    "order in which they were stored.",
    "Reports": "Figures of months and days, kept beside the records, for charts and other systems.",
    "Webhooks": "Subscriptions to the events, their deliveries, tests and replays.",
    "Sandbox": "What only a sandbox has: a company to try things in, whose keys begin with `mk_test_`. Its clock says "
    "each instant of its records, events and deliveries, and can be advanced: all that would have happened until then "
    "happens, in its order. Keys of live companies get 404 here.",
}

LISTS_AND_FETCHES = {
    "/tickets": ("tickets", "Tickets without a property are not included."),
    "/properties": ("properties", ""),
    "/units": (
        "units",
        "`unit_status` and `projected_ready_on` are those of the unit's current turn. They show a notice or a move-in "
        "over the API from its 201 on, here and in `GET /units/{unit_id}`; other changes, and these under heavy load, "
        "within a second.",
    ),
    "/assets": ("assets", "Retired assets are included."),
    "/vendors": ("vendors", "Inactive relationships are included."),
    "/inspections": (
        "inspections",
        "Inspections of operations only: walks of a consulting engagement are not included; a unit's acceptance walk "
        "without an engagement is.",
    ),
    "/turns": (
        "turns",
        "Every transition is a turn, a first move-in without a departure too. One of a later date is `Active` from the "
        "moment it is recorded.",
    ),
    "/meters": ("utility meters", "Inactive meters are included."),
    "/meters/{meter_id}/readings": (
        "readings of a meter",
        "They are in the order in which they were stored. Those of one file of the operator are stored in the order of "
        "their periods, the oldest first, whatever the order of the file. As long as nobody adds readings of earlier "
        "periods later, the last page holds the latest periods. Readings that are added later, such as a back-fill of "
        "last year, come at the end: sort by `period_start`, and follow `GET /changes/readings` for what is new.",
    ),
    "/staff": (
        "staff",
        "Members of the company's staff, to whom tickets can be assigned. Those who have left are included. E-mail "
        "addresses are not.",
    ),
    "/webhooks": ("webhook subscriptions", "The signing secret is not included."),
    "/webhooks/{sub_id}/deliveries": (
        "deliveries of a webhook subscription",
        "They are in the order of their events' ids, the oldest first, for 30 days. The events themselves are not "
        "included: see `GET /events`. With `state`, a page can have fewer deliveries than its limit, or none, although "
        "`next_cursor` is not null.",
    ),
}
# The feeds of changes and the snapshots: their plurals where a list has another one, their descriptions.
FOLLOWED = {"readings": "readings of all meters"}
FOLLOWS = (
    "Each record once, at its latest state, in the order of last change: without `cursor` all {plural}, with the "
    "`resume_cursor` of the page before those alone that have changed since. None is left out, whatever is written "
    "meanwhile, and a change of anything that the record shows counts, such as a new name of its property. A record "
    "that can no longer be seen comes as `gone`."
)
SNAPSHOT = (
    "All {plural}, ascending by {order}, one JSON object on each line, in one answer of any length. It counts as one "
    "request. The header `Service-Resume-Cursor` is the `cursor` with which `GET {changes}` goes on: what changes "
    "while the snapshot runs comes there. An answer that ends without its last chunk has broken off: ask again with "
    "{after}, and go on with the cursor of the first answer. A company has one snapshot of "
    "these records at a time."
)
OTHERS = {
    "GET /whoami": (
        "Identify the key",
        "The key's company and scope. Every active key may call it: a good first request.",
    ),
    "GET /openapi.json": (
        "Fetch this document",
        "The OpenAPI document of this API. It is public: no key is needed, and a key that is sent is ignored.",
    ),
    "GET /search": (
        "Find records by your own identifier",
        "The records of the company that have this `external_id`, of the kind if one is given. It finds a property, "
        "unit, asset, vendor, inspection, meter, reading, ticket, turn or member of staff that was synced from your "
        "system, without reading its list. The identifier is compared whole, upper and lower case differ. A turn is "
        "found by the `external_id` of its move-in, not of its notice.",
    ),
    "GET /reports/tickets": (
        "Report on tickets",
        "How many tickets were opened, completed, cancelled and reopened in some months, how long the first response "
        "and the completion took, and the backlog: in all, by month or day, and by group. Figures are kept beside the "
        "records, so a report costs the same for any number of tickets; they lack what changed in the last seconds. A "
        "later correction of a ticket changes the figures of the day that it is about. `measures` says what each is.",
    ),
    "GET /reports/vendors": (
        "Report on vendors",
        "How many tickets vendors got in some months, how soon they responded and completed them, and how long these "
        "were on hold: in all, by month or day, and by group. See `GET /reports/tickets`.",
    ),
    "GET /reports/turns": (
        "Report on turns",
        "How many residents moved out in some months, how long units took from the move-out to ready and to the next "
        "move-in, and where the days went: in all, by month or day, and by group. See `GET /reports/tickets`.",
    ),
    "GET /reports/inspections": (
        "Report on inspections",
        "How many inspections were completed in some months, how many of them passed and failed, and how many items of "
        "their checklists failed: in all, by month or day, and by group. Grouped by `item`, the checklist items that "
        "failed most come first. See `GET /reports/tickets`.",
    ),
    "GET /events": (
        "Follow events",
        "The company's events of 30 days in the order in which they were stored: the envelopes that deliveries carry, "
        "byte for byte, whether a subscription names them or not. `positions` numbers them: a company's events have "
        "the numbers 1, 2, 3 and so on, so without filters each number follows the one before, and a gap would be a "
        "lost event. What an installation stored before it had this list is not in it.",
    ),
    "GET /requests": (
        "Follow requests",
        "The requests of 30 days with the company's keys, in the order in which they were stored, a second or two "
        "after the answer; with `wait`, as they come. A key with the scope `read` gets those with itself alone. "
        "Those of `GET /requests` itself come with `route` alone. An operator may log fewer requests than all.",
    ),
    "GET /requests/{request_id}": (
        "Fetch a request",
        "One request with the bodies that are kept of it, which they are in sandboxes alone: see `request_body`. A key "
        "with the scope `read` gets those with itself alone.",
    ),
    "GET /sandbox/clock": (
        "Fetch the sandbox's clock",
        "The clock, what falls due next by time alone, and what the last advance has done so far.",
    ),
    "GET /webhooks/{sub_id}/deliveries/{event_id}": (
        "Fetch a delivery",
        "One delivery with its attempts and the beginning of each response, without the event's body.",
    ),
    "GET /webhooks/{sub_id}/filter": (
        "Fetch a webhook subscription's filter",
        "Of which properties, categories and priorities the subscription hears; all null: of all.",
    ),
    "GET /webhooks/{sub_id}/replays/{replay_id}": (
        "Fetch a replay",
        "How far a replay is. It is kept for 30 days after it has finished.",
    ),
    "DELETE /webhooks/{sub_id}": (
        "Delete a webhook subscription",
        "Deletes the subscription and the history of its deliveries. Events that wait for delivery to it are not "
        "delivered any more.",
    ),
}
# Lists that document 422 (spec 4.12.6).
FILTER_422 = (
    "/webhooks/{sub_id}/deliveries",
    "/tickets",
    "/properties",
    "/units",
    "/assets",
    "/vendors",
    "/inspections",
    "/turns",
)

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
    "staff": "staff",
    "webhooks": "webhook_subscription",
    "deliveries": "webhook_delivery",
}
# The records of fetches whose path does not say it.
FETCHED = {
    "/search": "SearchResults",
    "/requests/{request_id}": "LoggedRequestBodies",
    "/reports/tickets": "Report",
    "/reports/vendors": "Report",
    "/reports/turns": "Report",
    "/reports/inspections": "Report",
    "/sandbox/clock": "SandboxClock",
    "/webhooks/{sub_id}/deliveries/{event_id}": "WebhookDeliveryAnswers",
    "/webhooks/{sub_id}/filter": "WebhookFilter",
    "/webhooks/{sub_id}/replays/{replay_id}": "WebhookReplay",
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
    "event_id": "The event's `event_id`.",
    "replay_id": "The replay's `entity_id`.",
    "request_id": "The id that the request's answer had in `X-Request-Id`.",
}
TEXT_IDS = ("event_id", "request_id")
ID_EXAMPLES = {
    "event_id": "019cb8a2-5d40-7c3e-8f10-5d2b9e4a7c61",
    "replay_id": 7,
    "request_id": "019c36e8f1a05c1f0b8a77d1",
}
FILTERS = {
    "property_id": "Only records of the property with this id. An unknown id gives an empty page.",
    "unit_id": "Only records of the unit with this id. An unknown id gives an empty page.",
    "status": "Only records with this status. Any other value is refused with 422.",
    "updated_since": "Only records that changed at this instant or later. It must carry a UTC offset.",
    "ticket_number": "Only the ticket with this number.",
    "event": "Only events with this key. Any other value is refused with 422.",
    "entity_type": "Only events about a record of this kind. Any other value is refused with 422.",
    "entity_id": "Only events about the record with this id.",
    "since": "Only events that were stored at this instant or later, which is seconds after `occurred_at` as a rule. "
    "It must carry a UTC offset.",
    "until": "Only events that were stored before this instant. It must carry a UTC offset.",
    "key_id": "Only requests with the key with this id.",
    "/requests status": "Only answers with this status, such as 404, or of this class, such as 4xx. Anything else is "
    "refused with 422.",
    "code": "Only refusals with this code.",
    "route": "Only requests of this route: its path with the names of ids.",
    "request_id": "Only the request whose answer had this id in `X-Request-Id`.",
    "/requests since": "Only requests at this instant or later. It must carry a UTC offset.",
    "external_id": "Your own identifier of the record.",
    "kind": "Only records of this kind. Any other value is refused with 422.",
    "from_month": "The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left out: 12 "
    "months that end with the last one, or by day that month alone.",
    "to_month": "The last month, as 2026-03. Left out: the present one.",
    "bucket": "The length of `buckets`, `month` if left out. Any other value is refused with 422.",
    "group_by": "What the records of a group have in common. Left out: no groups. Any other value is refused with 422.",
    "/reports/turns group_by": "What the turns of a group have in common, or their tasks: `task_type` has figures of "
    "`task_completed` alone. Left out: no groups. Any other value is refused with 422.",
    "/reports/inspections group_by": "What the inspections of a group have in common, or the item of their checklists. "
    "Left out: no groups. Any other value is refused with 422.",
    "/reports/vendors group_by": "What the tickets of a group have in common, such as their vendor. Left out: no "
    "groups. Any other value is refused with 422.",
    "state": "Only deliveries in this state. Any other value is refused with 422.",
    **{
        f"/reports/{name} property_id": "Only records of the property with this id. An unknown id answers 404."
        for name in ("tickets", "vendors", "turns", "inspections")
    },
    "/webhooks/{sub_id}/deliveries since": "Only deliveries of events that were made at this instant or later. It must "
    "carry a UTC offset.",
}
AFTER = {
    "after_id": "The `entity_id` of the last record that you have: goes on after it.",
    "after_meter_id": "The `meter_id` of the last reading that you have, beside `after_id`.",
}
# What a filter that is a text accepts.
PRINTABLE = "^[ -~]+$"
TEXT_PATTERNS = {"status": "^[1-5]([0-9]{2}|xx)$", "external_id": "^[^\\u0000]+$"}
FILTER_EXAMPLES = {
    "from_month": "2026-01",
    "to_month": "2026-03",
    "property_id": 1,
    "unit_id": 4,
    "updated_since": "2026-03-01T00:00:00Z",
    "ticket_number": 318,
    "entity_id": 318,
    "key_id": 4,
    "external_id": "P-100-204",
    "status": "4xx",
    "code": "invalid_request",
    "route": "/tickets/{ticket_id}",
    "request_id": "019c36e8f1a05c1f0b8a77d1",
    "since": "2026-03-01T00:00:00Z",
    "until": "2026-03-02T00:00:00Z",
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
    differing: dict[str, Any] = field(default_factory=dict)
    """The fields in which the example of its answer differs from the record's."""


NO_SUBSCRIPTION = "No webhook subscription with that id is visible to this key; check the id and the key."
NO_TICKET = "The company has no ticket with that id; check the id."
NO_SANDBOX = "The key's company is live, and only a sandbox has this; use a sandbox's key."
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
        "Cancelled. The status that the ticket already has is accepted, too. Completed again is another closing: its "
        "note is stored, and `completed_at` is the time of the last one. So is Cancelled again, with `cancelled_at`, "
        "unless reason and notes are those that are stored. Fires `ticket.status_changed` for each change, with `from` "
        "equal to `to` if a ticket is closed again. Cancelled with the stored reason and notes, and Open, In Progress "
        "or On Hold again, are answered with 200, change nothing and fire nothing. "
        "Notes become comments of the ticket. Words of a note "
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
            "and this one has none (`POST /tickets/{ticket_id}/photos` adds one); or the key has no "
            "minting administrator on record.",
        },
        {400: "status is required.", 422: "note must have 5 or more words."},
        {
            "status": "Completed",
            "updated_at": "2026-03-04T09:41:30.007310Z",
            "completed_at": "2026-03-04T09:41:30.007310Z",
        },
    ),
    "POST /tickets/{ticket_id}/photos": Write(
        "Add a photo to a ticket",
        "Adds the address of a photo. The ticket's `photo_url` is then this one, and the ticket can be completed where "
        "the company requires a photo. Earlier photos stay with the ticket in the administrator interface. The address "
        "that `photo_url` has already is accepted, too, and changes nothing. Fires no event.",
        "PhotoCreate",
        201,
        "Ticket",
        {422: ("created_by_missing",)},
        {
            400: "The header `Idempotency-Key` is missing or too long; the body is not one JSON object, has an unknown "
            "key, or `photo_url` is missing, of a wrong type, over 2,000 characters, or no absolute http or https "
            "address.",
            404: "The ticket is not visible to the key.",
            422: "The key has no minting administrator on record.",
        },
        {
            400: "photo_url must be an absolute http or https address.",
            404: "No ticket with that id is visible to this key; check the id and the key.",
        },
        {
            "photo_url": "https://photos.example.com/tickets/318/heater.jpg",
            "updated_at": "2026-03-04T09:41:30.007310Z",
        },
    ),
    "PUT /tickets/{ticket_id}/assignment": Write(
        "Assign a ticket",
        "Sets who has the work: a member of staff, a vendor, both, or with an object without keys nobody. It replaces "
        "the assignment: whom the body does not name has the ticket no more. `GET /staff` and `GET /vendors` have the "
        "ids. The assignment that the ticket has already changes nothing. Fires no event.",
        "Assignment",
        200,
        "Ticket",
        {422: ("invalid_request", "created_by_missing")},
        {
            404: "The ticket is not visible to the key, or the company has no such member of staff or vendor.",
            422: "The vendor is on hold and does not have the ticket yet; or the key has no minting administrator on "
            "record.",
        },
        {
            400: "assignee_id must be an integer.",
            404: NO_TICKET,
            422: "The vendor is on hold and gets no new work; release the vendor or choose another.",
        },
        {
            "assignee": {"id": 4, "name": "DeShawn Whitfield"},
            "assigned_vendor": None,
            "updated_at": "2026-03-04T09:41:30.007310Z",
        },
    ),
    "POST /tickets/{ticket_id}/comments": Write(
        "Comment on a ticket",
        "Adds a comment, which people see with the ticket in the console. The ticket's record and its `updated_at` "
        "stay as they are. A comment of staff or of a vendor counts as work: a ticket that a resident filed is quiet "
        "anew from then on (`ticket.stale`). Comments cannot be listed: staff write there for one another. Fires no "
        "event.",
        "CommentCreate",
        201,
        "TicketComment",
        {422: ("invalid_request", "created_by_missing")},
        {
            404: "The ticket is not visible to the key.",
            422: "`author` is outside its enum; or the key has no minting administrator on record.",
        },
        {
            400: "text is required.",
            404: NO_TICKET,
            422: "author must be one of: staff, vendor, resident.",
        },
    ),
    "POST /units/{unit_id}/notice": Write(
        "Record a notice to vacate",
        "Records when the unit's current resident leaves. The unit becomes `Notice`, which fires `turn.status_changed` "
        "if it was not. Another notice replaces all values of the notice before it; one with the same date changes no "
        "status. A resident who has left can leave no more: the same date again, or an earlier one, is refused, and a "
        "later one says that the resident stayed on, or, from a planned move-in's day on, that it is the next "
        "resident's.",
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
            "entity_id": 32,
            "move_in_date": "2025-04-01",
            "move_out_date": "2030-03-31",
            "occupancy_fed_at": "2030-02-27T11:02:45.830055Z",
            "external_id": "NTV-5512",
            "lease": None,
            "parties": [],
        },
    ),
    "POST /units/{unit_id}/move-in": Write(
        "Record a move-in",
        "Records a new resident of the unit, with the lease and its parties. On its `move_in_date`, in the company's "
        "timezone, the unit becomes `Occupied`, which fires `turn.status_changed` if it was not: at once if that is "
        "today or before, else just after midnight of that day, and not before the resident before leaves. Until then "
        "nothing about the unit changes. If the unit still has a resident whose move_out_date has not passed, "
        "`predecessor_transition_id` names the turn that ends: the last of the unit's active turns. The date of a "
        "planned move-in is changed in the administrator interface alone.",
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
    "POST /meters/{meter_id}/readings": Write(
        "Add readings to a meter",
        "Stores 1 to 500 readings of a meter, by their periods: one of a period that the meter has no reading of is "
        "created, one with other values changes the reading that is there, one with the same values changes nothing. "
        "So readings may be sent again and corrected. What a reading leaves out stays as it is. Each gets its outcome. "
        "All are stored, or none: the refusal of one that cannot be stored names its index, from 0. Fires no event.",
        "ReadingsCreate",
        200,
        "ReadingResults",
        {422: ("created_by_missing",)},
        {
            400: "The header `Idempotency-Key` is missing or too long, or the body is not valid: not one JSON object, "
            "no reading or more than 500, an unknown key, a required field missing, an instant without a UTC offset, a "
            "period that ends before it starts or stands there twice, a value of a wrong type or over its cap.",
            404: "The meter is not visible to the key.",
            422: "The key has no minting administrator on record.",
        },
        {
            400: "readings[2].period_end must not be before period_start.",
            404: "The company has no meter with that id; check the id.",
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
    "POST /webhooks/{sub_id}/test": Write(
        "Test a webhook subscription",
        "Sends one signed `webhook.test` event to the subscription's URL, now, and returns its delivery with what the "
        "receiver answered. Its `data` is an empty object, and no subscription can name it. It changes no health, is "
        "never retried and is not among the events of `GET /events`. A paused subscription gets it too. "
        "A subscription gets 10 tests a minute. The body is an object without keys.",
        "TestCreate",
        200,
        "WebhookDeliveryAnswers",
        {404: ("not_found",), 422: ("invalid_request",), 503: ("receiver_busy",)},
        {
            400: "The header `Idempotency-Key` is missing or too long, or the body is not an object without keys.",
            404: "The subscription is not visible to the key.",
            422: "The company is inactive.",
            503: "The receiver is at its limit of attempts. Nothing was sent.",
        },
        {
            400: "The body may hold these keys only: .",
            404: NO_SUBSCRIPTION,
            422: "The company is inactive; have it activated before you try again.",
        },
        {
            "event": "webhook.test",
            "attempts": [
                {
                    "number": 1,
                    "cause": "test",
                    "replay_id": None,
                    "started_at": "2026-03-04T10:20:02.114901Z",
                    "duration_milliseconds": 148,
                    "first_byte_milliseconds": 131,
                    "status": 204,
                    "error": None,
                    "response_excerpt": "",
                }
            ],
        },
    ),
    "POST /sandbox/clock": Write(
        "Advance the sandbox's clock",
        "Moves the clock forward, to `advance_to` or by `advance_by`, and does everything that would have happened "
        "meanwhile, in the order of time: residencies begin and end, records become stale, events fire, and "
        "deliveries are attempted. What falls due at the target itself is done, too; an advance by `PT0S` does what "
        "is due already. The answer comes before all that: `GET /sandbox/clock` says `ready` when it is done. Writes "
        "that come meanwhile have the instant that the clock then says. Rate limits, the ends of keys, the log of "
        "requests and the `t` of signatures keep to the real clock.",
        "SandboxClockAdvance",
        202,
        "SandboxClock",
        {
            404: ("not_found",),
            409: ("idempotency_in_progress", "idempotency_mismatch", "clock_advancing"),
            422: ("invalid_request",),
        },
        {
            400: "The header `Idempotency-Key` is missing or too long, or the body is not valid: not one JSON object, "
            "an unknown key, both or neither of `advance_to` and `advance_by`, an instant without a UTC offset, a "
            "duration with years or months, or none at all.",
            404: "The key's company is live.",
            409: "Another request had the same `Idempotency-Key`, or an advance is under way.",
            422: "The target lies behind the clock, more than 400 days ahead of it, or more than 3650 days ahead of "
            "the real one.",
        },
        {
            400: "Give advance_to or advance_by, and not both.",
            404: NO_SANDBOX,
            422: "advance_to lies behind the sandbox's clock, which only goes forward.",
        },
        {"status": "advancing", "now": "2026-03-04T10:20:02.114901Z", "done": {}, "next_due": None},
    ),
    "PUT /webhooks/{sub_id}/filter": Write(
        "Set a webhook subscription's filter",
        "Replaces the filter. The subscription then hears of an event that it names if the event's property is among "
        "`property_ids`, and a ticket's category and priority among `categories` and `priorities`. Events whose data "
        "have no property's id pass `property_ids`: `vendor.hold`, `property.notice.published`, `turn.task.stale` and "
        "`pm.stale`. It decides when an event is stored, so deliveries that wait are not touched; a replay leaves out "
        "what does not pass. An object without keys takes the filter away.",
        "WebhookFilterSet",
        200,
        "WebhookFilter",
        {404: ("not_found",), 422: ("invalid_request",)},
        {
            404: "The subscription is not visible to the key.",
            422: "A list is empty, a category or priority is outside its enum, `property_ids` has more than 1,000 ids "
            "or what cannot be one.",
        },
        {
            400: "property_ids must be an array.",
            404: NO_SUBSCRIPTION,
            422: "priorities[0] must be one of: Low, Medium, High, Emergency.",
        },
    ),
    "POST /webhooks/{sub_id}/replay": Write(
        "Replay events to a webhook subscription",
        "Sends the events of a period to the subscription once more, also those from before it existed or that it did "
        "not name then. Each attempt has the event's own `event_id`, and the header `Service-Replay` with the replay's "
        "id. Attempts start at once and take turns with all others. A delivery that fails is parked; one that was "
        "waiting for a retry goes on waiting for it. The answer comes before the attempts: "
        "`GET /webhooks/{sub_id}/replays/{replay_id}` says how far they are. A replay is about 100,000 events at most, "
        "and a subscription has one under way at a time.",
        "ReplayCreate",
        202,
        "WebhookReplay",
        {404: ("not_found",), 422: ("invalid_request", "events_empty", "events_unknown_key")},
        {
            404: "The subscription is not visible to the key.",
            422: "`since` is not before `until` and now; `state` is outside its enum; `events` names an event that the "
            "subscription does not; the subscription is paused or has a replay under way; or the period holds more "
            "than 100,000 events.",
        },
        {
            400: "since is required.",
            404: NO_SUBSCRIPTION,
            422: "The subscription is paused; have it resumed in the administrator interface before a replay.",
        },
        {"waiting": 312, "succeeded": 0},
    ),
    "POST /sandbox/triggers": Write(
        "Trigger an event",
        "Makes an event happen in a sandbox by its real cause: the commands that people give in the administrator "
        "interface, and the sweep that the clock would start. Deliveries, feeds and records show it as they show any "
        "other. The answer is the event as `GET /events` has it, once it is there. A record may be named that it is to "
        "happen to: see the fields. Where none is named, a new one is made, in the property `Sandbox triggers`, which "
        "is made once; what that takes, such as a move-in before a turn can change, may fire events of its own first. "
        "`inspection.stale` moves the date of an inspection whose day is not over. The commands are those of the "
        "administrator who minted the key.",
        "TriggerCreate",
        201,
        "Event",
        {404: ("not_found",), 422: ("invalid_request", "created_by_missing")},
        {
            400: "The header `Idempotency-Key` is missing or too long, or the body is not valid: not one JSON object, "
            "an unknown key, `event` missing, a record that does not go with the event, a value of a wrong type.",
            404: "The record is not visible to the key, or the key's company is live.",
            422: "`event` is outside its enum; or it can't happen to the record: the ticket is closed or no resident "
            "filed it, the inspection is completed or was stale before, the vendor is on hold, the turn is over, not "
            "current or without a `move_out_date`; or the key has no minting administrator on record.",
        },
        {
            400: "vendor_id does not go with this event; it takes ticket_id, or no record.",
            404: "No ticket with that id is visible to this key; check the id and the key.",
            422: "The vendor is on hold already; name one that is not, or release it first.",
        },
    ),
}
# Schemas that a Struct can't express: its field accepts more, and the service refuses that with codes of its own.
AMENDED: dict[str, dict[str, Any]] = {
    "SubscriptionCreate.events": {"type": "array", "items": {"$ref": "#/$defs/EventKey"}, "minItems": 1},
    "ReplayCreate.events": {"type": ["array", "null"], "items": {"$ref": "#/$defs/EventKey"}, "minItems": 1},
    "WebhookFilterSet.property_ids": {
        "type": ["array", "null"],
        "items": {"type": "integer", "format": "int64", "minimum": 1},
        "minItems": 1,
        "maxItems": 1000,
    },
    "WebhookFilterSet.categories": {
        "type": ["array", "null"],
        "items": {"$ref": "#/$defs/TicketCategory"},
        "minItems": 1,
    },
    "WebhookFilterSet.priorities": {
        "type": ["array", "null"],
        "items": {"$ref": "#/$defs/TicketPriority"},
        "minItems": 1,
    },
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
    "TriggerCreateEvent": "EventKey",
    "WebhookReplayEvents": "EventKey",
    "WebhookFilterCategories": "TicketCategory",
    "WebhookFilterPriorities": "TicketPriority",
    "WebhookFilterSetCategories": "TicketCategory",
    "WebhookFilterSetPriorities": "TicketPriority",
    "FoundRecordEntityType": "RecordKind",
    "TicketCommentAuthor": "CommentAuthor",
    "CommentCreateAuthor": "CommentAuthor",
    "ReplayCreateState": "ReplayState",
    "WebhookReplayState": "ReplayState",
    "SubscriptionHealth": "WebhookHealth",
    "UnitUnitStatus": "UnitStatus",
}
