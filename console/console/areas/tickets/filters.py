"""The filters of the list of tickets: from the address to a request, and to what the page shows of them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from google.protobuf.descriptor import EnumDescriptor
from multidict import MultiMapping

from console.kit.browser_session import STAFF
from console.kit.context import PageContext
from console.kit.texts import _, ngettext
from makeready.common.v1 import maintenance_pb2, options_pb2
from makeready.tickets.v1 import ticket_views_pb2 as pb
from makeready.tickets.v1 import tickets_pb2

PATH = "/tickets"
OPEN = (tickets_pb2.TICKET_STATUS_OPEN, tickets_pb2.TICKET_STATUS_IN_PROGRESS, tickets_pb2.TICKET_STATUS_ON_HOLD)
CLOSED = (tickets_pb2.TICKET_STATUS_COMPLETED, tickets_pb2.TICKET_STATUS_CANCELLED)
# The tabs, with the order and the grouping that each begins with.
VIEWS = {
    "open": (_("Open"), "priority", "who"),
    "mine": (_("Assigned to me"), "priority", "status"),
    "waiting": (_("Overdue response"), "stale", ""),
    "soon": (_("Due soon"), "stale", ""),
    "closed": (_("Closed"), "newest", ""),
    "all": (_("All"), "newest", ""),
}
ORDERS = {
    "newest": _("Newest first"), "oldest": _("Oldest first"), "priority": _("Priority"),
    "stale": _("Longest without activity"),
}  # fmt: skip
GROUPS = {"who": _("Assignment"), "status": _("Status"), "property": _("Property"), "none": _("None")}
SOURCES = {
    "api": _("an integration"),
    "staff": _("staff"),
    "resident_portal": _("a resident"),
    "inspection": _("an inspection"),
    "import": _("an import"),
}
TEXT_MAX = 200


def reported_by(source: str, resident_asked: bool) -> str:
    """Who reported a ticket, within a sentence. resident_asked: whether staff opened it because a resident asked."""
    words = SOURCES.get(source, source)
    return _("%(source)s, a resident asked") % {"source": words} if resident_asked else words


_IDS = {"property": "property_id", "unit": "unit_id", "asset": "asset_id"}
_ASSIGNMENT = {"assignee": ("assignee_id", "has_assignee"), "vendor": ("vendor_id", "has_vendor")}


def labels(enum: EnumDescriptor) -> dict[str, int]:
    """An enum's values by the words that people read."""
    return {value.GetOptions().Extensions[options_pb2.label]: value.number for value in enum.values if value.number}


CHOICES = {
    "status": ("statuses", labels(tickets_pb2.TicketStatus.DESCRIPTOR)),
    "priority": ("priorities", labels(maintenance_pb2.TicketPriority.DESCRIPTOR)),
    "category": ("categories", labels(maintenance_pb2.TicketCategory.DESCRIPTOR)),
}
_ORDER_NUMBERS = labels(pb.TicketOrder.DESCRIPTOR)


@dataclass
class TicketSearch:
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


def read(context: PageContext) -> TicketSearch:
    """The filters of this context's address."""
    query = context.request.query
    view = query.get("view", "open")
    if view not in VIEWS or (view == "mine" and context.session.kind != STAFF):
        view = "open"
    _words, order, group = VIEWS[view]
    search = TicketSearch(pb.SearchTicketsRequest(), view, order, group)
    if view != "open":
        search.query.append(("view", view))
    if (choice := query.get("order", "")) in ORDERS:
        search.order = choice
        if choice != order:
            search.query.append(("order", choice))
    if (choice := query.get("group", "")) in GROUPS:
        search.group = choice if choice != "none" else ""
        if search.group != group:
            search.query.append(("group", choice))
    search.request.order = pb.TicketOrder.ValueType(_ORDER_NUMBERS[search.order])
    _read_choices(search, query)
    _read_ids(search, query)
    _read_days(search, query, context.wall.now)
    words = query.get("q", "").strip()[:TEXT_MAX]
    if words:
        search.query.append(("q", words))
        if any(sign.isalnum() for sign in words):
            search.request.words = words
        else:
            search.errors.append(_("Search for letters or digits."))
    _read_view(search, context.session.person.person_id)
    return search


def _read_choices(search: TicketSearch, query: MultiMapping[str]) -> None:
    for name, (field_name, numbers) in CHOICES.items():
        for value in query.getall(name, []):
            if value in numbers:
                getattr(search.request, field_name).append(numbers[value])
                search.query.append((name, value))
    for value in query.getall("source", []):
        if value in SOURCES:
            search.request.sources.append(value)
            search.query.append(("source", value))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 19 else None


def _read_ids(search: TicketSearch, query: MultiMapping[str]) -> None:
    for name, field_name in _IDS.items():
        if (number := _number(query.get(name, ""))) is not None:
            setattr(search.request, field_name, number)
            search.query.append((name, str(number)))
    for name, (field_name, has) in _ASSIGNMENT.items():
        value = query.get(name, "")
        if value == "none":
            setattr(search.request, has, False)
            search.query.append((name, value))
        elif (number := _number(value)) is not None:
            setattr(search.request, field_name, number)
            search.query.append((name, str(number)))


def _read_days(search: TicketSearch, query: MultiMapping[str], now: datetime.datetime) -> None:
    """Opened between two days of the company, or so many hours ago: `older=72` and `younger=168`."""
    for name, stamp, days in (("from", search.request.opened_from, 0), ("to", search.request.opened_to, 1)):
        if value := query.get(name, "").strip():
            try:
                date = datetime.date.fromisoformat(value) + datetime.timedelta(days=days)
                stamp.FromDatetime(datetime.datetime.combine(date, datetime.time(), now.tzinfo))
                search.query.append((name, value))
            except (ValueError, OverflowError):
                search.errors.append("A day is like 2026-11-22.")
    for name, stamp in (("younger", search.request.opened_from), ("older", search.request.opened_to)):
        hours = _number(query.get(name, ""))
        if hours is not None and hours < 10**6:
            stamp.FromDatetime(now - datetime.timedelta(hours=hours))
            search.query.append((name, str(hours)))
    # Empty submessages are set by the access above, if they were read at all: none is sent.
    for name in ("opened_from", "opened_to"):
        if not getattr(search.request, name).seconds:
            search.request.ClearField(name)  # type: ignore[arg-type]


def _read_view(search: TicketSearch, person_id: int) -> None:
    request = search.request
    if search.view in ("open", "mine") and not request.statuses:
        request.statuses.extend(OPEN)
    if search.view == "closed" and not request.statuses:
        request.statuses.extend(CLOSED)
    if search.view == "mine":
        request.assignee_id = person_id
    if search.view == "waiting":
        request.stale = True
    if search.view == "soon":
        request.soon_stale = True


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


def chips(
    search: TicketSearch, counts: pb.CountTicketsResponse | None, tickets: Sequence[pb.TicketSummary]
) -> list[Chip]:
    """The filters. Properties and people are those of open tickets, of the tickets shown, and those chosen."""
    all_chips = []
    for name, title in (("priority", _("Priority")), ("status", _("Status")), ("category", _("Category"))):
        chosen = search.values(name)
        choices = [(word, word, word in chosen) for word in CHOICES[name][1]]
        all_chips.append(Chip(name, title, ", ".join(chosen), "many", choices, search.path(name)))
    people: dict[str, dict[int, str]] = {"property": {}, "assignee": {}, "vendor": {}}
    if counts is not None:
        people["property"].update((row.id, row.name) for row in counts.by_property)
        people["assignee"].update((row.id, row.name) for row in counts.by_assignee if row.id)
    for ticket in tickets:
        people["property"][ticket.property_id] = ticket.property_name
        if ticket.HasField("assignee_id"):
            people["assignee"][ticket.assignee_id] = ticket.assignee_name
        if ticket.HasField("vendor_id"):
            people["vendor"][ticket.vendor_id] = ticket.vendor_name
    for name, title in (("property", _("Property")), ("assignee", _("Assigned to")), ("vendor", _("Vendor"))):
        all_chips.append(_of_names(search, name, title, people[name]))
    chosen = search.values("source")
    choices = [(value, words[:1].upper() + words[1:], value in chosen) for value, words in SOURCES.items()]
    all_chips.append(
        Chip(
            "source",
            _("Source"),
            ", ".join(SOURCES[source] for source in chosen),
            "many",
            choices,
            search.path("source"),
        )
    )
    return all_chips


def _of_names(search: TicketSearch, name: str, title: str, names: Mapping[int, str]) -> Chip:
    (chosen, *_more) = (*search.values(name), "")
    words_by_value = {str(number): words for number, words in names.items()}
    if chosen and chosen != "none":
        words_by_value.setdefault(chosen, f"{name} {chosen}")
    ordered = sorted(words_by_value.items(), key=lambda pair: pair[1].casefold())
    choices = [(value, words, value == chosen) for value, words in ordered]
    if name in _ASSIGNMENT:
        choices.insert(0, ("none", _("Unassigned") if name == "assignee" else _("None"), chosen == "none"))
    words = next((words for value, words, is_chosen in choices if is_chosen), "")
    return Chip(name, title, words, "one", choices, search.path(name))


_SAID = (
    ("unit", _("Unit {}")),
    ("asset", _("Asset {}")),
    ("from", _("Opened since {}")),
    ("to", _("Opened until {}")),
    ("older", _("Older than {}")),
    ("younger", _("Newer than {}")),
    ("q", "“{}”"),
)


def others(search: TicketSearch) -> list[tuple[str, str]]:
    """The filters without a chip of their own, in words, each with the list without it."""
    sentences = []
    for name, words in _SAID:
        for value in search.values(name):
            text = hours(int(value)) if name in ("older", "younger") else value
            sentences.append((words.format(text), search.path(name)))
    return sentences


def hours(number: int) -> str:
    """ "3 days" for 72"""
    if number % 24:
        return ngettext("%(num)s hour", "%(num)s hours", number) % {"num": number}
    days = number // 24
    return ngettext("%(num)s day", "%(num)s days", days) % {"num": days}
