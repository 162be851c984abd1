"""The API at a glance: one line for each route. Dispatch, Allow, filters and the tests' walks come from this table."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import dataclass
from typing import Any, Literal

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from chassis.auth.access import OPENED_BY, asked_scope
from gateway.http.filters import Filter, filters_of

PREFIX = "/api/v1"
READ_SECONDS, WRITE_SECONDS = 5.0, 10.0

# The scope of an operation that needs no key.
PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class Route:
    """One operation of the public API.

    rpc: CONTEXT.SERVICE/METHOD of its contract; empty if the gateway answers by itself. key_sentence: the message for a
    write without an Idempotency-Key. scope: that of an operation without RPC; an RPC's proto names its own.
    """

    method: str
    path: str
    rpc: str = ""
    key_sentence: str = ""
    scope: str = ""


ROUTES = (
    Route("GET", "/whoami", scope="any"),
    Route("GET", "/openapi.json", scope=PUBLIC),
    Route("GET", "/tickets", "tickets.TicketsService/ListTickets"),
    Route("POST", "/tickets", "tickets.TicketsService/CreateTicket",
          "Creating a ticket needs an Idempotency-Key header; send a new key with each new ticket."),
    Route("GET", "/tickets/{ticket_id}", "tickets.TicketsService/GetTicket"),
    Route("PATCH", "/tickets/{ticket_id}", "tickets.TicketsService/ChangeTicketStatus",
          "Changing a ticket's status needs an Idempotency-Key header; send a new key with each change."),
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
    Route("GET", "/webhooks", "webhooks.SubscriptionsService/ListSubscriptions"),
    Route("POST", "/webhooks", "webhooks.SubscriptionsService/CreateSubscription",
          "Creating a webhook subscription needs an Idempotency-Key header; send a new key with each subscription."),
    Route("DELETE", "/webhooks/{sub_id}", "webhooks.SubscriptionsService/DeleteSubscription"),
)  # fmt: skip

Kind = Literal["own", "list", "fetch", "write", "delete"]


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """A route and the properties derived from its contract."""

    route: Route
    kind: Kind
    service: str
    """The service that answers it, for example "svc-tickets"."""
    rpc_path: str
    request: Any
    """The message class of the RPC's request."""
    response: Any
    id_field: str
    """The request's field that takes the id in the path; empty if the path has none."""
    filters: tuple[Filter, ...]
    allowed_query: tuple[str, ...]
    scope: str
    """The scope that it asks of a key: a key of `OPENED_BY`, or PUBLIC."""
    opened_by: frozenset[str]
    """The scopes of the keys that open it."""
    deadline_seconds: float


@dataclass(frozen=True, slots=True)
class Resource:
    """One path and its verbs."""

    operations: dict[str, Operation]
    allow: str


def _operation(route: Route) -> Operation:
    if not route.rpc:
        opened_by = OPENED_BY.get(route.scope, frozenset())
        return Operation(route, "own", "", "", None, None, "", (), (), route.scope, opened_by, READ_SECONDS)
    context, _, rpc = route.rpc.partition(".")
    service_name, _, method_name = rpc.partition("/")
    service = _contracts(context)[service_name]
    method = service.methods_by_name[method_name]
    kind = _kind(method)
    segment = route.path.rpartition("/")[2] if "{" not in route.path else route.path.split("/")[2]
    id_field = segment.strip("{}") if segment.startswith("{") else ""
    fields = method.input_type.fields_by_name
    assert not id_field or id_field in fields, f"{route.path}: {method.full_name} takes no {id_field}"
    assert (kind == "write") == bool(route.key_sentence), f"{route.path}: writes, and they alone, have a key sentence"
    scope = asked_scope(method)
    assert scope and not route.scope, f"{route.path}: the proto of {method.full_name} names the scope"
    filters = filters_of(method.input_type) if kind == "list" else ()
    return Operation(
        route,
        kind,
        f"svc-{context}",
        f"/{service.full_name}/{method.name}",
        GetMessageClass(method.input_type),
        GetMessageClass(method.output_type),
        id_field,
        filters,
        ("limit", "cursor", *(one.name for one in filters)) if kind == "list" else (),
        scope,
        OPENED_BY[scope],
        WRITE_SECONDS if kind in ("write", "delete") else READ_SECONDS,
    )


@functools.cache
def _contracts(context: str) -> dict[str, ServiceDescriptor]:
    """The services that a context's contracts declare, by their short names."""
    package = importlib.import_module(f"makeready.{context}.v1")
    names = [module.name for module in pkgutil.iter_modules(package.__path__) if module.name.endswith("_pb2")]
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return {name: found for one in modules for name, found in one.DESCRIPTOR.services_by_name.items()}


def _kind(method: MethodDescriptor) -> Kind:
    """The kind of operation, from the fields of its response."""
    fields = method.output_type.fields_by_name
    if "page" in fields:
        return "list"
    if "document" in fields:
        return "fetch"
    return "write" if "reply" in fields else "delete"


OPERATIONS = tuple(_operation(route) for route in ROUTES)


def _resources() -> dict[tuple[str | None, ...], Resource]:
    """Resources by the segments of the path below the prefix; None stands for the id, which is always the second
    one."""
    found: dict[tuple[str | None, ...], Resource] = {}
    for operation in OPERATIONS:
        segments: list[str | None] = list(operation.route.path[1:].split("/"))
        if len(segments) > 1:
            assert operation.route.path.count("{") == 1 and str(segments[1]).startswith("{"), operation.route.path
            segments[1] = None
        resource = found.get(tuple(segments)) or Resource({}, "")
        operations = resource.operations | {operation.route.method: operation}
        found[tuple(segments)] = Resource(operations, ", ".join(operations))
    return found


_RESOURCES = _resources()
_ROOT = PREFIX + "/"


def resource_of(path: str) -> tuple[Resource, str] | None:
    """The resource at a path and the id in it ("" if it has none); None if no resource has that path."""
    if not path.startswith(_ROOT):
        return None
    segments: list[str | None] = list(path[len(_ROOT) :].split("/"))
    found = _RESOURCES.get(tuple(segments))
    if found is not None or len(segments) == 1:
        return None if found is None else (found, "")
    entity_id, segments[1] = str(segments[1]), None
    found = _RESOURCES.get(tuple(segments))
    return (found, entity_id) if found is not None and entity_id else None
