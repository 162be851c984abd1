"""The filters of the list of tickets: from the address to a request, and to what the page shows of them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from console.kit.visit import STAFF, Visit
from makeready.common.v1 import maintenance_pb2, options_pb2
from makeready.tickets.v1 import ticket_views_pb2 as pb
from makeready.tickets.v1 import tickets_pb2

PATH = "/tickets"
OPEN = (tickets_pb2.TICKET_STATUS_OPEN, tickets_pb2.TICKET_STATUS_IN_PROGRESS, tickets_pb2.TICKET_STATUS_ON_HOLD)
CLOSED = (tickets_pb2.TICKET_STATUS_COMPLETED, tickets_pb2.TICKET_STATUS_CANCELLED)
# The tabs, with the order and the grouping that each begins with.
VIEWS = {
    "open": ("Open", "priority", "who"),
    "mine": ("Mine", "priority", "status"),
    "waiting": ("Waiting", "stale", ""),
    "closed": ("Closed", "newest", ""),
    "all": ("All", "newest", ""),
}
ORDERS = {"newest": "Newest first", "oldest": "Oldest first", "priority": "By priority", "stale": "Longest quiet first"}
GROUPS = {"who": "Who has them", "status": "Status", "property": "Property", "none": "No groups"}
SOURCES = {
    "api": "an integration",
    "staff": "staff",
    "resident_portal": "a resident",
    "inspection": "an inspection",
    "import": "an import",
}
TEXT_MAX = 200
_IDS = {"property": "property_id", "unit": "unit_id", "asset": "asset_id"}
_HANDS = {"assignee": ("assignee_id", "has_assignee"), "vendor": ("vendor_id", "has_vendor")}


def labels(enum: Any) -> dict[str, int]:
    """An enum's values by the words that people read."""
    values = enum.DESCRIPTOR.values
    return {value.GetOptions().Extensions[options_pb2.label]: value.number for value in values if value.number}


CHOICES = {
    "status": ("statuses", labels(tickets_pb2.TicketStatus)),
    "priority": ("priorities", labels(maintenance_pb2.TicketPriority)),
    "category": ("categories", labels(maintenance_pb2.TicketCategory)),
}
_ORDER_NUMBERS: Mapping[str, Any] = labels(pb.TicketOrder)


@dataclass
class Asked:
    """What the address asks for. query: the filters as they stand in the address, without those that say nothing;
    errors: what of them could not be read."""

    request: pb.SearchTicketsRequest
    view: str
    order: str
    group: str
    query: list[tuple[str, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.query if key == name]

    @property
    def is_filtered(self) -> bool:
        return any(name not in ("view", "order", "group") for name, _ in self.query)

    def path(self, *without: str, **more: object) -> str:
        """The list with these filters, without some and with others."""
        kept = [(name, value) for name, value in self.query if name not in without and name not in more]
        kept += [(name, str(value)) for name, value in more.items() if value not in (None, "")]
        return f"{PATH}?{urlencode(kept)}" if kept else PATH


def read(visit: Visit) -> Asked:
    """The filters of this visit's address."""
    assert visit.who is not None
    given = visit.request.query
    view = given.get("view", "open")
    if view not in VIEWS or (view == "mine" and visit.kind != STAFF):
        view = "open"
    _, order, group = VIEWS[view]
    asked = Asked(pb.SearchTicketsRequest(), view, order, group)
    if view != "open":
        asked.query.append(("view", view))
    if (wanted := given.get("order", "")) in ORDERS:
        asked.order = wanted
        if wanted != order:
            asked.query.append(("order", wanted))
    if (wanted := given.get("group", "")) in GROUPS:
        asked.group = wanted if wanted != "none" else ""
        if asked.group != group:
            asked.query.append(("group", wanted))
    asked.request.order = _ORDER_NUMBERS[asked.order]
    _read_choices(asked, given)
    _read_ids(asked, given)
    _read_days(asked, given, visit.wall.now)
    words = given.get("q", "").strip()[:TEXT_MAX]
    if words:
        asked.query.append(("q", words))
        if any(sign.isalnum() for sign in words):
            asked.request.words = words
        else:
            asked.errors.append("Words are letters or digits.")
    _read_view(asked, visit.who.person_id)
    return asked


def _read_choices(asked: Asked, given: Any) -> None:
    for name, (field_name, numbers) in CHOICES.items():
        for value in given.getall(name, []):
            if value in numbers:
                getattr(asked.request, field_name).append(numbers[value])
                asked.query.append((name, value))
    for value in given.getall("source", []):
        if value in SOURCES:
            asked.request.sources.append(value)
            asked.query.append(("source", value))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 19 else None


def _read_ids(asked: Asked, given: Any) -> None:
    for name, field_name in _IDS.items():
        if (number := _number(given.get(name, ""))) is not None:
            setattr(asked.request, field_name, number)
            asked.query.append((name, str(number)))
    for name, (field_name, has) in _HANDS.items():
        value = given.get(name, "")
        if value == "none":
            setattr(asked.request, has, False)
            asked.query.append((name, value))
        elif (number := _number(value)) is not None:
            setattr(asked.request, field_name, number)
            asked.query.append((name, str(number)))


def _read_days(asked: Asked, given: Any, now: datetime.datetime) -> None:
    """Opened between two days of the company, or so many hours ago: `older=72` and `younger=168`."""
    for name, stamp, days in (("from", asked.request.opened_from, 0), ("to", asked.request.opened_to, 1)):
        if value := given.get(name, "").strip():
            try:
                date = datetime.date.fromisoformat(value) + datetime.timedelta(days=days)
                stamp.FromDatetime(datetime.datetime.combine(date, datetime.time(), now.tzinfo))
                asked.query.append((name, value))
            except (ValueError, OverflowError):
                asked.errors.append("A day is like 2026-11-22.")
    for name, stamp in (("younger", asked.request.opened_from), ("older", asked.request.opened_to)):
        hours = _number(given.get(name, ""))
        if hours is not None and hours < 10**6:
            stamp.FromDatetime(now - datetime.timedelta(hours=hours))
            asked.query.append((name, str(hours)))
    # Empty submessages are set by the access above, if they were read at all: none is sent.
    for name in ("opened_from", "opened_to"):
        if not getattr(asked.request, name).seconds:
            asked.request.ClearField(name)  # type: ignore[arg-type]


def _read_view(asked: Asked, person_id: int) -> None:
    request = asked.request
    if asked.view in ("open", "mine") and not request.statuses:
        request.statuses.extend(OPEN)
    if asked.view == "closed" and not request.statuses:
        request.statuses.extend(CLOSED)
    if asked.view == "mine":
        request.assignee_id = person_id
    if asked.view == "waiting":
        request.stale = request.soon_stale = True


@dataclass(frozen=True, slots=True)
class Chip:
    """One filter as the page shows it. words: what it is set to, empty for nothing; kind: "many" for checkboxes, else
    "one"; choices: value, words and whether it is chosen; off: the list without it."""

    name: str
    title: str
    words: str
    kind: str
    choices: Sequence[tuple[str, str, bool]]
    off: str


def chips(asked: Asked, counts: pb.CountTicketsResponse | None, shown: Sequence[pb.TicketSummary]) -> list[Chip]:
    """The filters. Properties and people are those of open tickets, of the tickets shown, and those chosen."""
    found = []
    for name, title in (("priority", "Priority"), ("status", "Status"), ("category", "Category")):
        chosen = asked.values(name)
        choices = [(word, word, word in chosen) for word in CHOICES[name][1]]
        found.append(Chip(name, title, ", ".join(chosen), "many", choices, asked.path(name)))
    people: dict[str, dict[int, str]] = {"property": {}, "assignee": {}, "vendor": {}}
    if counts is not None:
        people["property"].update((one.id, one.name) for one in counts.by_property)
        people["assignee"].update((one.id, one.name) for one in counts.by_assignee if one.id)
    for one in shown:
        people["property"][one.property_id] = one.property_name
        if one.HasField("assignee_id"):
            people["assignee"][one.assignee_id] = one.assignee_name
        if one.HasField("vendor_id"):
            people["vendor"][one.vendor_id] = one.vendor_name
    for name, title in (("property", "Property"), ("assignee", "Assignee"), ("vendor", "Vendor")):
        found.append(_of_names(asked, name, title, people[name]))
    chosen = asked.values("source")
    choices = [(value, words[:1].upper() + words[1:], value in chosen) for value, words in SOURCES.items()]
    found.append(
        Chip("source", "Opened by", ", ".join(SOURCES[one] for one in chosen), "many", choices, asked.path("source"))
    )
    return found


def _of_names(asked: Asked, name: str, title: str, names: Mapping[int, str]) -> Chip:
    (chosen, *_) = (*asked.values(name), "")
    known = {str(number): words for number, words in names.items()}
    if chosen and chosen != "none":
        known.setdefault(chosen, f"{name} {chosen}")
    ordered = sorted(known.items(), key=lambda one: one[1].casefold())
    choices = [(value, words, value == chosen) for value, words in ordered]
    if name in _HANDS:
        choices.insert(0, ("none", "Nobody" if name == "assignee" else "None", chosen == "none"))
    words = next((words for value, words, is_chosen in choices if is_chosen), "")
    return Chip(name, title, words, "one", choices, asked.path(name))


_SAID = (
    ("unit", "Unit {}"),
    ("asset", "Asset {}"),
    ("from", "Opened since {}"),
    ("to", "Opened until {}"),
    ("older", "Older than {}"),
    ("younger", "Younger than {}"),
    ("q", "“{}”"),
)


def others(asked: Asked) -> list[tuple[str, str]]:
    """The filters without a chip of their own, in words, each with the list without it."""
    found = []
    for name, words in _SAID:
        for value in asked.values(name):
            said = hours(int(value)) if name in ("older", "younger") else value
            found.append((words.format(said), asked.path(name)))
    return found


def hours(number: int) -> str:
    """ "3 days" for 72"""
    if number % 24:
        return f"{number:,} hours"
    days = number // 24
    return "a day" if days == 1 else f"{days:,} days"
