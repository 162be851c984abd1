"""The API at a glance: one line for each route. Dispatch, Allow, filters and the tests' walks come from this table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from chassis.auth.access import OPENED_BY, asked_scope
from chassis.auth.rpcs import path_of, services_of
from gateway.http.filters import Filter, filters_of

PREFIX = "/api/v1"
READ_SECONDS, WRITE_SECONDS = 5.0, 10.0

# The service that answers what the gateway's own database has.
OWN_SERVICE = "gateway"
# The scope of an operation that needs no key.
PUBLIC = "public"
# A kind's snapshot, and its changes from there on.
SNAPSHOTS, CHANGES = "/snapshots/", "/changes/"
# What only the keys of sandboxes have.
SANDBOX = "/sandbox/"


@dataclass(frozen=True, slots=True)
class Route:
    """One operation of the public API.

    rpc: CONTEXT.SERVICE/METHOD of its contract; empty if the gateway answers by itself. key_sentence: the message for a
    write without an Idempotency-Key. scope: that of an operation without RPC; an RPC's proto names its own. seconds:
    its deadline, if it is another than that of other reads or writes.
    """

    method: str
    path: str
    rpc: str = ""
    key_sentence: str = ""
    scope: str = ""
    seconds: float = 0.0


ROUTES = (
    Route("GET", "/whoami", scope="any"),
    Route("GET", "/openapi.json", scope=PUBLIC),
    Route("GET", "/search", "common.LookupService/FindRecords"),
    Route("GET", "/tickets", "tickets.TicketsService/ListTickets"),
    Route("POST", "/tickets", "tickets.TicketsService/CreateTicket",
          "Creating a ticket needs an Idempotency-Key header; send a new key with each new ticket."),
    Route("GET", "/tickets/{ticket_id}", "tickets.TicketsService/GetTicket"),
    Route("PATCH", "/tickets/{ticket_id}", "tickets.TicketsService/ChangeTicketStatus",
          "Changing a ticket's status needs an Idempotency-Key header; send a new key with each change."),
    Route("POST", "/tickets/{ticket_id}/photos", "tickets.TicketsService/CreateTicketPhoto",
          "Adding a photo to a ticket needs an Idempotency-Key header; send a new key with each new photo."),
    Route("PUT", "/tickets/{ticket_id}/assignment", "tickets.TicketCommandsService/SetTicketAssignment",
          "Assigning a ticket needs an Idempotency-Key header; send a new key with each assignment."),
    Route("POST", "/tickets/{ticket_id}/comments", "tickets.TicketCommandsService/CreateTicketComment",
          "Commenting on a ticket needs an Idempotency-Key header; send a new key with each comment."),
    Route("GET", "/properties", "catalog.PropertiesService/ListProperties"),
    Route("GET", "/properties/{property_id}", "catalog.PropertiesService/GetProperty"),
    Route("GET", "/units", "catalog.UnitsService/ListUnits"),
    Route("GET", "/units/{unit_id}", "catalog.UnitsService/GetUnit"),
    Route("POST", "/units/{unit_id}/notice", "occupancy.ResidenciesService/RecordNotice",
          "Recording a notice needs an Idempotency-Key header; send a new key with each new notice."),
    Route("POST", "/units/{unit_id}/move-in", "occupancy.ResidenciesService/RecordMoveIn",
          "Recording a move-in needs an Idempotency-Key header; send a new key with each new move-in."),
    Route("GET", "/assets", "catalog.AssetsService/ListAssets"),
    Route("GET", "/assets/{asset_id}", "catalog.AssetsService/GetAsset"),
    Route("GET", "/vendors", "catalog.VendorsService/ListVendors"),
    Route("GET", "/vendors/{vendor_id}", "catalog.VendorsService/GetVendor"),
    Route("GET", "/inspections", "catalog.InspectionsService/ListInspections"),
    Route("GET", "/inspections/{inspection_id}", "catalog.InspectionsService/GetInspection"),
    Route("GET", "/turns", "occupancy.TurnsService/ListTurns"),
    Route("GET", "/turns/{turn_id}", "occupancy.TurnsService/GetTurn"),
    Route("GET", "/meters", "catalog.MetersService/ListMeters"),
    Route("GET", "/meters/{meter_id}", "catalog.MetersService/GetMeter"),
    Route("GET", "/meters/{meter_id}/readings", "catalog.MetersService/ListReadings"),
    Route("POST", "/meters/{meter_id}/readings", "catalog.MeterCommandsService/AddMeterReadings",
          "Adding readings to a meter needs an Idempotency-Key header; send a new key with each request."),
    Route("GET", "/staff", "identity.StaffService/ListMembers"),
    Route("GET", "/reports/tickets", "tickets.TicketReportsService/GetTicketReport"),
    Route("GET", "/reports/vendors", "tickets.TicketReportsService/GetVendorReport"),
    Route("GET", "/reports/turns", "occupancy.TurnReportsService/GetTurnReport"),
    Route("GET", "/reports/inspections", "catalog.InspectionReportsService/GetInspectionReport"),
    Route("GET", "/changes/tickets", "tickets.TicketsService/ListTicketChanges"),
    Route("GET", "/changes/properties", "catalog.PropertiesService/ListPropertyChanges"),
    Route("GET", "/changes/units", "catalog.UnitsService/ListUnitChanges"),
    Route("GET", "/changes/assets", "catalog.AssetsService/ListAssetChanges"),
    Route("GET", "/changes/vendors", "catalog.VendorsService/ListVendorChanges"),
    Route("GET", "/changes/inspections", "catalog.InspectionsService/ListInspectionChanges"),
    Route("GET", "/changes/turns", "occupancy.TurnsService/ListTurnChanges"),
    Route("GET", "/changes/meters", "catalog.MetersService/ListMeterChanges"),
    Route("GET", "/changes/readings", "catalog.MetersService/ListReadingChanges"),
    Route("GET", "/snapshots/tickets", "tickets.TicketsService/ListTickets"),
    Route("GET", "/snapshots/properties", "catalog.PropertiesService/ListProperties"),
    Route("GET", "/snapshots/units", "catalog.UnitsService/ListUnits"),
    Route("GET", "/snapshots/assets", "catalog.AssetsService/ListAssets"),
    Route("GET", "/snapshots/vendors", "catalog.VendorsService/ListVendors"),
    Route("GET", "/snapshots/inspections", "catalog.InspectionsService/ListInspections"),
    Route("GET", "/snapshots/turns", "occupancy.TurnsService/ListTurns"),
    Route("GET", "/snapshots/meters", "catalog.MetersService/ListMeters"),
    Route("GET", "/snapshots/readings", "catalog.MetersService/ListReadingsOfAllMeters"),
    Route("GET", "/webhooks", "webhooks.SubscriptionsService/ListSubscriptions"),
    Route("POST", "/webhooks", "webhooks.SubscriptionsService/CreateSubscription",
          "Creating a webhook subscription needs an Idempotency-Key header; send a new key with each subscription."),
    Route("DELETE", "/webhooks/{sub_id}", "webhooks.SubscriptionsService/DeleteSubscription"),
    Route("GET", "/webhooks/{sub_id}/filter", "webhooks.SubscriptionsService/GetFilter"),
    Route("PUT", "/webhooks/{sub_id}/filter", "webhooks.SubscriptionsService/SetFilter",
          "Setting a filter needs an Idempotency-Key header; send a new key with each change."),
    Route("POST", "/webhooks/{sub_id}/test", "webhooks.FeedService/TestSubscription",
          "Testing a webhook subscription needs an Idempotency-Key header; send a new key with each test.",
          seconds=30.0),  # it waits for the receiver
    Route("GET", "/webhooks/{sub_id}/deliveries", "webhooks.FeedService/ListDeliveries"),
    Route("GET", "/webhooks/{sub_id}/deliveries/{event_id}", "webhooks.FeedService/GetDelivery"),
    Route("POST", "/webhooks/{sub_id}/replay", "webhooks.FeedService/CreateReplay",
          "Starting a replay needs an Idempotency-Key header; send a new key with each replay."),
    Route("GET", "/webhooks/{sub_id}/replays/{replay_id}", "webhooks.FeedService/GetReplay"),
    Route("GET", "/events", "webhooks.FeedService/ListEvents"),
    Route("GET", "/requests", "identity.RequestFeedService/FollowRequests"),
    Route("GET", "/requests/{request_id}", "identity.RequestFeedService/FetchRequest"),
    Route("GET", "/sandbox/clock", "identity.SandboxClockService/GetSandboxClock"),
    Route("POST", "/sandbox/clock", "identity.SandboxClockService/AdvanceSandboxClock",
          "Advancing the clock needs an Idempotency-Key header; send a new key with each advance."),
    Route("POST", "/sandbox/triggers", "identity.TriggersService/CreateTrigger",
          "A trigger needs an Idempotency-Key header; send a new key with each trigger.",
          seconds=30.0),  # it waits for the event
)  # fmt: skip

Kind = Literal["own", "search", "report", "list", "feed", "snapshot", "fetch", "write", "delete"]


# The query keys of each kind of operation that has some, besides its filters.
_QUERY: dict[Kind, tuple[str, ...]] = {
    "search": (),
    "report": (),
    "list": ("limit", "cursor"),
    "feed": ("limit", "cursor", "wait"),
}
AFTER_ID = "after_id"


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """A route and the properties derived from its contract."""

    route: Route
    kind: Kind
    service: str
    """The service that answers it, for example "svc-tickets"; OWN_SERVICE: this process. Empty: several, or none."""
    rpc_path: str
    request: Any
    """The message class of the RPC's request."""
    response: Any
    ids: tuple[str, ...]
    """The request's fields that take the ids in the path, in its order."""
    filters: tuple[Filter, ...]
    allowed_query: tuple[str, ...]
    may_be_empty: frozenset[str]
    """Query keys whose own check answers an empty value: limit, cursor, and filters, which list what they allow."""
    scope: str
    """The scope that it asks of a key: a key of `OPENED_BY`, or PUBLIC."""
    opened_by: frozenset[str]
    """The scopes of the keys that open it."""
    deadline_seconds: float

    @property
    def id_field(self) -> str:
        """The field of the first id in the path; empty if the path has none."""
        return self.ids[0] if self.ids else ""

    @property
    def is_by_position(self) -> bool:
        """Whether a page of the list begins at a position of the service's, and not after an id."""
        return self.request is not None and "position" in self.request.DESCRIPTOR.fields_by_name

    @property
    def has_positions(self) -> bool:
        """Whether the feed numbers its documents."""
        return self.response is not None and "positions" in self.response.DESCRIPTOR.fields_by_name


@dataclass(frozen=True, slots=True)
class Resource:
    """One path and its verbs."""

    operations: dict[str, Operation]
    allow: str


def _operation(route: Route) -> Operation:
    if not route.rpc:
        opened_by = OPENED_BY.get(route.scope, frozenset())
        return Operation(
            route, "own", "", "", None, None, (), (), (), frozenset(), route.scope, opened_by, READ_SECONDS
        )
    context, _, rpc = route.rpc.partition(".")
    service_name, _, method_name = rpc.partition("/")
    service = services_of(f"makeready.{context}.v1")[service_name]
    method = service.methods_by_name[method_name]
    kind = "snapshot" if route.path.startswith(SNAPSHOTS) else _kind(method)
    ids = tuple(segment.strip("{}") for segment in route.path.split("/") if segment.startswith("{"))
    fields = method.input_type.fields_by_name
    missing = set(ids).difference(fields)
    assert not missing, f"{route.path}: {method.full_name} takes no {missing}"
    assert (kind == "write") == bool(route.key_sentence), f"{route.path}: writes, and they alone, have a key sentence"
    scope = asked_scope(method)
    assert scope and not route.scope, f"{route.path}: the proto of {method.full_name} names the scope"
    filters = filters_of(method.input_type) if kind in _QUERY else ()
    # A snapshot goes on after a record, by the fields that name it.
    after = tuple(name for name in fields if name.startswith("after_")) if kind == "snapshot" else ()
    return Operation(
        route,
        kind,
        {"identity": OWN_SERVICE, "common": ""}.get(context, f"svc-{context}"),
        path_of(method),
        GetMessageClass(method.input_type),
        GetMessageClass(method.output_type),
        ids,
        filters,
        (*_QUERY.get(kind, ()), *after, *(query_filter.name for query_filter in filters)),
        frozenset(("limit", "cursor", *(query_filter.name for query_filter in filters if query_filter.labels))),
        scope,
        OPENED_BY[scope],
        route.seconds or (WRITE_SECONDS if kind in ("write", "delete") else READ_SECONDS),
    )


def _kind(method: MethodDescriptor) -> Kind:
    """The kind of operation, from the fields of its response."""
    fields = method.output_type.fields_by_name
    if "page" in fields:
        return "list"
    if "feed" in fields:
        return "feed"
    if "document" in fields:
        return "report" if "bucket" in method.input_type.fields_by_name else "fetch"
    if "records" in fields:
        return "search"
    return "write" if "reply" in fields else "delete"


OPERATIONS = tuple(_operation(route) for route in ROUTES)
_BY_NAME = {(operation.route.method, operation.route.path): operation for operation in OPERATIONS}


def operation_at(method: str, path: str) -> Operation:
    """The operation of a route of the table."""
    return _BY_NAME[method, path]


def _resources() -> dict[tuple[str | None, ...], Resource]:
    """Resources by the segments of the path below the prefix; None stands for an id."""
    resources: dict[tuple[str | None, ...], Resource] = {}
    for operation in OPERATIONS:
        path = operation.route.path[1:].split("/")
        segments = tuple(None if segment.startswith("{") else segment for segment in path)
        resource = resources.get(segments) or Resource({}, "")
        operations = resource.operations | {operation.route.method: operation}
        resources[segments] = Resource(operations, ", ".join(operations))
    return resources


_RESOURCES = _resources()
# Where paths of a length have their ids; none in the first place, so that a path without ids is found first.
_PLACES = {
    length: sorted(
        {tuple(n for n, segment in enumerate(key) if segment is None) for key in _RESOURCES if len(key) == length}
    )
    for length in {len(key) for key in _RESOURCES}
}
_ROOT = PREFIX + "/"


def resource_of(path: str) -> tuple[Resource, tuple[str, ...]] | None:
    """The resource at a path and the ids in it; None if no resource has that path."""
    if not path.startswith(_ROOT):
        return None
    segments = path[len(_ROOT) :].split("/")
    for places in _PLACES.get(len(segments), ()):
        key: list[str | None] = [*segments]
        for n in places:
            key[n] = None
        resource = _RESOURCES.get(tuple(key))
        ids = tuple([segments[n] for n in places])
        if resource is not None and all(ids):
            return resource, ids
    return None
