"""A request for tickets as the statements take it: the filters' values and terms, the order, and the list to scan."""

from __future__ import annotations

import datetime
import types
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.lists.spelling import Near
from chassis.refusals import invalid_request
from makeready.tickets.v1 import ticket_views_pb2 as pb
from svc_tickets.search import rules
from svc_tickets.search.queries import Search
from svc_tickets.tickets.rules import fields
from svc_tickets.tickets.rules.staleness import CLOSED

# The orders: the key of `ticket_search`, and whether the largest comes first.
_ORDERS = {
    pb.TICKET_ORDER_NEWEST: ("opened", True),
    pb.TICKET_ORDER_OLDEST: ("opened", False),
    pb.TICKET_ORDER_PRIORITY: ("urgency", False),
    pb.TICKET_ORDER_STALE: ("waiting", False),
}
# The enums of filters: their values in the order of the proto.
_LABELS = {"statuses": fields.STATUSES, "priorities": fields.PRIORITIES, "categories": fields.CATEGORIES}
# The terms of filters, by name: see `rules.term`.
_LISTS = {"statuses": "s", "priorities": "p", "categories": "c", "sources": "o"}
_IDS = {"property_id": "P", "unit_id": "U", "asset_id": "E", "assignee_id": "A", "vendor_id": "V"}
_HAVING = {"has_assignee": "A", "has_vendor": "V"}
# The lists to scan, the shortest first.
_LEADS = ("unit_id", "asset_id", "vendor_id", "assignee_id", "property_id")
_OPEN = frozenset(fields.STATUSES) - frozenset(CLOSED)
Groups = list[list[tuple[str, object]]]


def search(
    request: pb.SearchTicketsRequest,
    company_id: int,
    now: datetime.datetime,
    stale_after: datetime.timedelta,
    near: Near = types.MappingProxyType({}),
) -> Search:
    """stale_after: the company's threshold. near: whole words that fit in place of one, by its text. Raises Refusal for
    values that no ticket can have."""
    if request.order not in (0, *_ORDERS):
        raise invalid_request("order must be one of: newest, oldest, priority, stale.", "order", 422)
    order, descending = _ORDERS[request.order or pb.TICKET_ORDER_NEWEST]
    values: dict[str, Any] = {name: _labels(request, name) for name in _LABELS if getattr(request, name)}
    if request.sources:
        if any(source not in fields.SOURCES for source in request.sources):
            raise invalid_request(f"sources must be of: {', '.join(fields.SOURCES)}.", "sources", 422)
        values["sources"] = list(dict.fromkeys(request.sources))
    groups: Groups = [[(_LISTS[name], label) for label in labels] for name, labels in values.items()]
    groups += _of_one(request, values)
    if request.stale or request.soon_stale:
        stale_to, soon = now - stale_after, datetime.timedelta(hours=rules.SOON_HOURS)
        values["quiet_to"] = stale_to + soon if request.soon_stale else stale_to
        if not request.stale:
            values["quiet_from"] = stale_to
        groups.append([("q", "")])
    few: Groups = []
    if request.HasField("ticket_number"):
        few.append([("#", request.ticket_number)])
    if request.HasField("external_id"):
        few.append([("x", rules.name_of(request.external_id))])
    words = rules.sought(request.words) if request.words.strip() else []
    groups += few
    terms = rules.all_of(company_id, groups, words, near) if groups or words else ""
    if few or words:
        values["terms"] = terms
    lead, lead_value = _lead(values, order)
    return Search(order, descending, values, lead, lead_value, terms, scans=not few)


def corrigible(request: pb.SearchTicketsRequest) -> list[str]:
    """The words of a search that others may be meant by: all but parts of texts without spaces."""
    words = rules.sought(request.words) if request.words.strip() else []
    return [word.text for word in words if word.is_beginning]


def _of_one(request: Message, values: dict[str, Any]) -> Groups:
    """Adds the values of filters with one value; returns their terms."""
    groups: Groups = []
    for name, kind in _IDS.items():
        if request.HasField(name):
            values[name] = getattr(request, name)
            groups.append([(kind, values[name])])
    for name, kind in _HAVING.items():
        if request.HasField(name):
            values[name] = getattr(request, name)
            groups.append([(kind, "+" if values[name] else "-")])
    for name in ("opened_from", "opened_to"):
        if request.HasField(name):
            values[name] = _instant(request, name)
    return groups


def _labels(request: Message, name: str) -> list[str]:
    """The labels of a repeated enum's values. Raises Refusal for an unknown one."""
    labels, numbers = _LABELS[name], getattr(request, name)
    if any(not 1 <= number <= len(labels) for number in numbers):
        raise invalid_request(f"{name} must be of: {', '.join(labels)}.", name, 422)
    return list(dict.fromkeys(labels[number - 1] for number in numbers))


def _instant(request: Message, name: str) -> int:
    """A stamp as a key. Raises Refusal if it is out of range."""
    stamp: Timestamp = getattr(request, name)
    try:
        return rules.opened_key(stamp.ToDatetime(datetime.UTC))
    except (ValueError, OverflowError):
        raise invalid_request(f"{name} is no instant.", name) from None


def _lead(values: Mapping[str, Any], order: str) -> tuple[str, Any]:
    """The list to scan: the one of a filter's value that is likely the shortest. Only lists in the order of opening are
    led by a value."""
    if order != "opened":
        return "", None
    for name in _LEADS:
        if name in values:
            return name, None
    if len(values.get("sources", ())) == 1:
        return "source", values["sources"][0]
    statuses = set(values.get("statuses", ()))
    if "quiet_to" in values or (statuses and statuses <= _OPEN):
        return "is_open", True
    if statuses and not statuses & _OPEN:
        return "is_open", False
    return "", None
