"""The audit log of all services, merged: the newest entries first."""

from __future__ import annotations

import datetime
import heapq
import itertools
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from aiohttp import web

from chassis.auth.clients import ServiceUnavailable
from chassis.refusals import Unavailable
from console.config import SERVICES
from console.kit import csv_files, links
from console.kit.browser_session import STAFF
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.names import RPC as NAMES
from console.kit.names import Names, names_of
from console.kit.records import Record
from console.kit.texts import _
from makeready.common.v1 import audit_pb2 as pb
from makeready.identity.v1 import administrators_pb2, identity_pb2, requests_pb2, staff_commands_pb2
from makeready.webhooks.v1 import webhooks_pb2

log = structlog.stdlib.get_logger(__name__)

HERE = "Audit log"
PATH = "/audit"
LIST = "common.AuditService/ListAudit"
SHOWS = (LIST, NAMES)
REQUESTS = "identity.RequestLogService/ListRequests"
ADMINISTRATORS = "identity.AdministratorsService/ListAdministrators"
STAFF_LIST = "identity.StaffCommandsService/ListStaff"
KEYS = "identity.KeysService/ListKeys"
WITH_KEYS = (*SHOWS, REQUESTS, ADMINISTRATORS, STAFF_LIST, KEYS)
API = "API"
"""In place of a service: what keys wrote, which the request log has."""
NAMED_MAX = 200
MATCHES_SHOWN = 12
_ACTOR = re.compile(r"(?:administrator|staff|api_key):[0-9]{1,18}|operator|gateway|svc-[a-z]+")
# Kinds of records that the API names otherwise.
_IN_API = {"meter": "utility_meter", "reading": "utility_reading"}
EVENTS = "webhooks.AdministrationService/ListEvents"
SHOWN, CSV_ROWS = 50, 200
TEXT_MAX = 100
PANEL_SHOWN, RECENT_SHOWN = 10, 8
# The services that have entries about a kind of record.
KINDS: Mapping[str, Sequence[str]] = {
    "administrator": ("gateway",),
    "company": ("gateway", "svc-tickets"),
    "key": ("gateway",),
    "staff": ("gateway",),
    "asset": ("svc-catalog",),
    "inspection": ("svc-catalog",),
    "inspection_template": ("svc-catalog",),
    "meter": ("svc-catalog",),
    "notice": ("svc-catalog",),
    "property": ("svc-catalog",),
    "reading": ("svc-catalog",),
    "unit": ("svc-catalog", "svc-occupancy"),
    "vendor": ("svc-catalog",),
    "turn": ("svc-occupancy",),
    "turn_task": ("svc-occupancy",),
    "turn_template": ("svc-occupancy",),
    "pm_task": ("svc-tickets",),
    "ticket": ("svc-tickets",),
    "webhook_subscription": ("svc-webhooks",),
}
# What an event says about its record.
HAPPENED = {
    "inspection.stale": _("is overdue"),
    "pm.stale": _("is overdue"),
    "property.notice.published": _("was published"),
    "ticket.created": _("was opened"),
    "ticket.stale": _("is overdue for a response"),
    "ticket.status_changed": _("changed status"),
    "turn.schedule_changed": _("changed dates"),
    "turn.status_changed": _("changed status"),
    "turn.task.stale": _("is overdue"),
    "vendor.hold": _("is on hold"),
}
# Staff open no pages of these records.
FOR_ADMINISTRATORS = ("administrator", "company", "key", "staff", "webhook_subscription")
FILTERS = ("actor", "subject", "id", "from", "to", "request")


@dataclass(frozen=True, slots=True)
class Change:
    """One value that an action changed; None: it was or is absent."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Row:
    service: str
    entry: pb.AuditEntry
    changes: Sequence[Change]
    path: str
    """The page of the record; empty if it has none."""
    address: str = ""
    """From where it came; empty if that is not kept."""
    is_replay: bool = False
    """Whether the answer to an earlier request was repeated, and nothing written."""


def changes_of(entry: pb.AuditEntry) -> Sequence[Change]:
    """The entry's values before and after, by field."""
    before, after = _object(entry.before), _object(entry.after)
    return [
        Change(name, _text(before.get(name)), _text(after.get(name)))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def _object(data: bytes) -> Record:
    try:
        parsed = json.loads(data) if data else {}
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {"": parsed}


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def merged(pages: Mapping[str, Sequence[pb.AuditEntry]], limit: int) -> list[tuple[str, pb.AuditEntry]]:
    """The newest entries of all services. Of one service, they stay in its own order, which its ids have."""
    each = ([(service, entry) for entry in page_entries] for service, page_entries in sorted(pages.items()))
    entries = heapq.merge(*each, key=lambda row: (-row[1].recorded_at.seconds, -row[1].recorded_at.nanos))
    return list(itertools.islice(entries, limit))


def read_cursor(text: str) -> dict[str, int]:
    """The last entry that was shown of each service: "gateway.41_svc-tickets.7". Anything else in it is left out."""
    last_ids = {}
    for part in text[:200].split("_"):
        service, _, number = part.rpartition(".")
        if service in (*SERVICES, API) and number.isascii() and number.isdigit() and len(number) < 19:
            last_ids[service] = int(number)
    return last_ids


def next_cursor(before: Mapping[str, int], newest: Sequence[tuple[str, pb.AuditEntry]]) -> str:
    """The cursor of the page after this one."""
    last = {**before, **{service: entry.id for service, entry in newest}}
    return "_".join(f"{service}.{number}" for service, number in sorted(last.items()))


def _actors(newest: Sequence[tuple[str, pb.AuditEntry]]) -> Sequence[str]:
    """Those who did something, and the keys that it was about."""
    keys = [f"api_key:{entry.subject_id}" for _, entry in newest if entry.subject == "key"]
    return [*(entry.actor for _, entry in newest), *keys]


async def show_audit(context: PageContext) -> web.StreamResponse:
    filters = {name: context.query.get(name, "").strip()[:TEXT_MAX] for name in FILTERS}
    limit = CSV_ROWS if "csv" in context.query else SHOWN
    before = read_cursor(context.query.get("before", ""))
    people, meant = await _actors_meant(context, filters["actor"])
    request, errors = _request({**filters, "actor": next(iter(meant), "")}, context.wall.zone)
    request.limit = limit
    pages: Mapping[str, Panel[Any]] = {}
    by_keys = None
    if len(meant) == bool(filters["actor"]):
        *panels, by_keys = await together(
            *(context.rpcs.panel(LIST, _before(request, before.get(service)), service=service) for service in SERVICES),
            _of_keys(context, request, before.get(API)),
        )
        pages = dict(zip(SERVICES, panels, strict=True))
    entries = {service: page.entries for service, page in pages.items() if page.ok}
    requests = {logged.id: logged for logged in (by_keys.requests if by_keys and by_keys.ok else ())}
    looked_to = by_keys.next_before_id if by_keys and by_keys.ok and by_keys.HasField("next_before_id") else 0
    total = sum(map(len, entries.values())) + len(requests)
    if looked_to and len(requests) < limit:
        # The log was not looked through further: what is older than that waits for the next page.
        reached = datetime.datetime.fromtimestamp(looked_to / 1_000_000, datetime.UTC)
        entries = {service: _since(reached, listed) for service, listed in entries.items()}
    newest = merged({**entries, API: [_entry_of(logged) for logged in requests.values()]}, limit)
    names, addresses = await together(
        names_of(context.rpcs, _actors(newest)), _addresses(context, [entry for _service, entry in newest])
    )
    rows = [_row(context, service, entry, requests, addresses) for service, entry in newest]
    if "csv" in context.query:
        return _csv(rows, names)
    has_more = total > len(newest) or any(page.HasField("next_before_id") for page in pages.values() if page.ok)
    cursor = next_cursor(before, newest) if has_more or looked_to else ""
    if looked_to and sum(service == API for service, _entry in newest) == len(requests):
        cursor = next_cursor(read_cursor(cursor), [(API, pb.AuditEntry(id=looked_to))])
    older = links.with_query(PATH, {**filters, "before": cursor}) if cursor else ""
    several = {actor: links.with_query(PATH, {**filters, "actor": actor}) for actor in meant[:MATCHES_SHOWN]}
    away = [service for service, page in pages.items() if not page.ok]
    return context.render(
        "company/audit.html", here=HERE, rows=rows, names=names, filters=filters, errors=errors, older=older,
        people=people, meant=meant, several=several if len(meant) > 1 else {}, unseen=len(meant) - len(several),
        away=[*away, *([_("API keys")] if by_keys and not by_keys.ok else [])], API=API,
        csv_path=links.with_query(PATH, {**filters, "csv": 1}), later=bool(before),
    )  # fmt: skip


async def _actors_meant(context: PageContext, text: str) -> tuple[Mapping[str, str], Sequence[str]]:
    """The names of those who may have done something, by how entries spell them; and whom of them a filter means:
    "staff:7", or the words of names."""
    spelled = _ACTOR.fullmatch(text)
    words = "" if spelled else text
    keys = identity_pb2.ListKeysRequest(company_id=context.session.person.company_id, limit=NAMED_MAX)
    listings = [staff_commands_pb2.ListStaffRequest(limit=NAMED_MAX, words=each) for each in dict.fromkeys(("", words))]
    administrators, of_keys, *of_staff = await together(
        context.rpcs.panel(ADMINISTRATORS, administrators_pb2.ListAdministratorsRequest()),
        context.rpcs.panel(KEYS, keys),
        *(context.rpcs.panel(STAFF_LIST, listing) for listing in listings),
    )
    people: dict[str, str] = {}
    if administrators.ok:
        people |= {
            f"administrator:{row.administrator_id}": row.name or row.email for row in administrators.administrators
        }
    for page in of_staff:
        people |= {f"staff:{row.staff_id}": row.name for row in page.staff} if page.ok else {}
    while of_keys.ok:
        people |= {f"api_key:{key.id}": key.name or key.prefix for key in of_keys.keys}
        if not of_keys.HasField("next_after_id"):
            break
        keys.after_id = of_keys.next_after_id
        of_keys = await context.rpcs.panel(KEYS, keys)
    if spelled or not words:
        return people, [spelled[0]] if spelled else []
    each = words.casefold().split()
    same = [actor for actor, name in people.items() if name.casefold().split() == each]
    return people, same or [actor for actor, name in people.items() if all(word in name.casefold() for word in each)]


async def _of_keys(context: PageContext, by: pb.ListAuditRequest, before_id: int | None) -> Panel[Any]:
    """What keys wrote, of what the filters ask for."""
    kind, _colon, number = by.actor.partition(":")
    if by.actor and kind != "api_key":
        return Panel(requests_pb2.ListRequestsResponse())
    request = requests_pb2.ListRequestsRequest(
        company_id=context.session.person.company_id, writes=True, limit=by.limit, before_id=before_id,
        entity_type=_IN_API.get(by.subject, by.subject), request_id=by.request_id,
        entity_id=by.subject_id if by.HasField("subject_id") else None, key_id=int(number) if number else None,
    )  # fmt: skip
    for name in ("since", "until"):
        if by.HasField(name):
            getattr(request, name).CopyFrom(getattr(by, name))
    return await context.rpcs.panel(REQUESTS, request)


def _entry_of(logged: requests_pb2.LoggedRequest) -> pb.AuditEntry:
    """A request as an entry of its key."""
    return pb.AuditEntry(
        id=logged.id, recorded_at=logged.requested_at, actor=f"api_key:{logged.key_id}", request_id=logged.request_id,
        action=f"{logged.method} {logged.path}", subject=logged.entity_type, subject_id=logged.entity_id,
    )  # fmt: skip


def _since(instant: datetime.datetime, entries: Sequence[pb.AuditEntry]) -> list[pb.AuditEntry]:
    """The newest entries, up to the first one that is older than the instant."""
    return list(itertools.takewhile(lambda entry: entry.recorded_at.ToDatetime(datetime.UTC) >= instant, entries))


async def _addresses(context: PageContext, entries: Sequence[pb.AuditEntry]) -> Mapping[str, str]:
    """From where people acted in the console, by the ids of requests; none where that cannot be read now."""
    request_ids = {entry.request_id for entry in entries if entry.request_id}
    try:
        return await context.site.act_addresses.of(context.session.person.company_id, request_ids)
    except Unavailable as error:
        log.warning("addresses_missing", reason=str(error))
        return {}


def _row(
    context: PageContext,
    service: str,
    entry: pb.AuditEntry,
    requests: Mapping[int, requests_pb2.LoggedRequest],
    addresses: Mapping[str, str],
) -> Row:
    path = context.navigation.path_of(entry.subject, entry.subject_id)
    if service == API:
        logged = requests[entry.id]
        return Row(service, entry, [], path, logged.address, logged.is_replay)
    address = addresses.get(entry.request_id, "")
    if entry.action in ("session.started", "sign_in.failed"):
        address = _text(_object(entry.after).get("address")) or ""
    return Row(service, entry, changes_of(entry), path, address)


async def panel(context: PageContext) -> web.StreamResponse:
    """Who did what to one record, `?kind=ticket&id=41`, for those who may open it. Raises HTTPNotFound."""
    kind, number = context.query.get("kind", ""), context.query.get("id", "")
    is_id = number.isascii() and number.isdigit() and len(number) < 19
    if kind not in KINDS or not is_id or (context.session.kind == STAFF and kind in FOR_ADMINISTRATORS):
        raise web.HTTPNotFound
    request = pb.ListAuditRequest(subject=kind, subject_id=int(number), limit=PANEL_SHOWN)
    rows, names, has_more = await _newest(context, KINDS[kind], request)
    every = (
        links.with_query(PATH, {"subject": kind, "id": number}) if has_more and context.session.kind != STAFF else ""
    )
    return context.render("company/audit_panel.html", rows=rows, names=names, kind=kind, number=number, every=every)


async def recent(context: PageContext) -> web.StreamResponse:
    """What happened just now, as a part of the first page: what people and scheduled work did, and the public events of
    what integrations did. An event of an action that has an entry is left out. All have the real clock, of a sandbox,
    too."""
    (rows, names, _), page = await together(
        _newest(context, SERVICES, pb.ListAuditRequest(limit=RECENT_SHOWN)),
        context.rpcs.panel(EVENTS, webhooks_pb2.ListEventsRequest(limit=RECENT_SHOWN)),
    )
    on_record = {row.entry.request_id for row in rows if row.entry.request_id}
    events = page.events if page.ok else []
    items: list[tuple[datetime.datetime, Row | None, webhooks_pb2.Event | None]] = [
        (row.entry.recorded_at.ToDatetime(datetime.UTC), row, None) for row in rows
    ]
    items += [
        (_made_at(event.event_id), None, event)
        for event in events
        if event.event in HAPPENED and event.request_id not in on_record
    ]
    items.sort(key=lambda item: item[0], reverse=True)
    return context.render(
        "company/audit_recent.html", items=items[:RECENT_SHOWN], names=names, doing=doing, subject=subject,
        happened=HAPPENED,
    )  # fmt: skip


def _made_at(event_id: str) -> datetime.datetime:
    """When an event was made by the real clock, in milliseconds: the time in its id (UUIDv7)."""
    return datetime.datetime.fromtimestamp((uuid.UUID(event_id).int >> 80) / 1000, datetime.UTC)


async def _newest(
    context: PageContext, services: Sequence[str], request: pb.ListAuditRequest
) -> tuple[Sequence[Row], Names, bool]:
    """The newest entries of these services, the names of their actors, and whether there are more. Raises
    ServiceUnavailable if no service answers."""
    panels: list[Panel[pb.ListAuditResponse]] = await together(
        *(context.rpcs.panel(LIST, request, service=service) for service in services)
    )
    if not any(page.ok for page in panels):
        raise ServiceUnavailable("no audit log")
    newest = merged(
        {service: page.entries for service, page in zip(services, panels, strict=True) if page.ok}, request.limit
    )
    names = await names_of(context.rpcs, _actors(newest))
    rows = [
        Row(service, entry, changes_of(entry), context.navigation.path_of(entry.subject, entry.subject_id))
        for service, entry in newest
    ]
    total = sum(len(page.entries) for page in panels if page.ok)
    return rows, names, total > len(rows) or any(page.HasField("next_before_id") for page in panels if page.ok)


def subject(row: Row) -> str:
    """The record of an entry in words: by a name that the entry has, else by its kind and id."""
    kind = row.entry.subject.replace("_", " ")
    if kind == "company":
        return "the company"
    names = {change.field: change.after or change.before for change in row.changes}
    name = names.get("name") or names.get("title")
    return f"{kind} “{name[:80]}”" if name else f"{kind} {row.entry.subject_id}"


# Actions in words, where their own name does not read well before the record.
DOING = {
    "session.started": _("signed in"),
    "session.ended": _("signed out"),
    "session.confirmed": _("confirmed their identity"),
    "sign_in.failed": _("failed to sign in"),
    "subscription.tested": _("sent a test to"),
    "ticket.commented": _("commented on"),
    "ticket.photographed": _("added a photo to"),
    "ticket.photo_removed": _("removed a photo from"),
    "ticket.texts_removed": _("removed text from"),
    "unit.contacts_viewed": _("viewed contacts of"),
    "unit.person_forgotten": _("forgot a person of"),
    "turn.tasks_ordered": _("reordered the tasks of"),
    "inspection.row_added": _("added an item to"),
    "inspection.row_removed": _("removed an item from"),
    "inspection.row_passed": _("passed an item of"),
    "inspection.row_failed": _("failed an item of"),
    "key.minted": _("created"),
    "key.taken_over": _("took over"),
    "delivery.retried": _("retried a delivery to"),
    "delivery.attempted": _("attempted a delivery to"),
    "delivery.resent": _("resent a delivery to"),
    "deliveries.retried": _("retried deliveries to"),
}
OBJECTS = ("added", "made", "removed", "used", "changed", "passed", "failed", "viewed", "reopened")


def doing(action: str) -> str:
    """An action in words before its record: "ticket.status_changed" is "changed the status of"."""
    if action in DOING:
        return DOING[action]
    part, _blank, verb = action.rpartition(".")[2].rpartition("_")
    if part and verb in OBJECTS:
        return f"{verb} " + _("the %(part)s of") % {"part": part.replace("_", " ")}
    return action.rpartition(".")[2].replace("_", " ")


def _before(request: pb.ListAuditRequest, entry_id: int | None) -> pb.ListAuditRequest:
    copied = pb.ListAuditRequest()
    copied.CopyFrom(request)
    if entry_id is not None:
        copied.before_id = entry_id
    return copied


def _request(filters: Mapping[str, str], zone: datetime.tzinfo) -> tuple[pb.ListAuditRequest, Sequence[str]]:
    """The filters as a request, and what of them could not be read."""
    request, errors = pb.ListAuditRequest(subject=filters["subject"]), []
    if filters["actor"]:
        request.actor = filters["actor"]
    if filters["request"]:
        request.request_id = filters["request"]
    if filters["id"]:
        if filters["subject"] and filters["id"].isascii() and filters["id"].isdigit() and len(filters["id"]) < 19:
            request.subject_id = int(filters["id"])
        else:
            errors.append(_("Enter the ID as a number, with its record kind."))
    for name, stamp, days in (("from", request.since, 0), ("to", request.until, 1)):
        if filters[name]:
            try:
                date = datetime.date.fromisoformat(filters[name]) + datetime.timedelta(days=days)
            except (ValueError, OverflowError):
                errors.append(_("Enter a date such as 2026-11-22."))
                continue
            stamp.FromDatetime(datetime.datetime.combine(date, datetime.time(), zone))
    return request, errors


def _csv(rows: Sequence[Row], names: Names) -> web.Response:
    header = (
        "recorded_at",
        "actor",
        "name",
        "action",
        "subject",
        "subject_id",
        "before",
        "after",
        "request_id",
        "service",
        "address",
    )
    return csv_files.answer(
        "audit-log",
        header,
        (
            (row.entry.recorded_at.ToJsonString(), row.entry.actor, names[row.entry.actor].name, row.entry.action,
             row.entry.subject, row.entry.subject_id, row.entry.before.decode(errors="replace"),
             row.entry.after.decode(errors="replace"), row.entry.request_id, row.service, row.address)
            for row in rows
        ),
    )  # fmt: skip
