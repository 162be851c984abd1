"""The pages of events: what happened in 30 days, what caused it, and whether it arrived."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web

from chassis.refusals import Refusal
from console.config import SERVICES
from console.kit import attempt_words, body_text, csv_files, filters, links
from console.kit.attempt_words import SUCCEEDED
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.names import RPC as NAMES
from console.kit.names import Names, names_of
from console.kit.panels import include
from console.kit.texts import _
from makeready.common.v1 import audit_pb2
from makeready.webhooks.v1 import webhooks_pb2 as pb

HERE = "Events"
PATH = "/events"
LIST = "webhooks.AdministrationService/ListEvents"
GET = "webhooks.AdministrationService/GetEvent"
OF_RECORD = "webhooks.DeliveriesService/ListDeliveriesOf"
AUDIT = "common.AuditService/ListAudit"
SHOWS = (GET, AUDIT, NAMES)

SHOWN, CSV_ROWS = 50, 200
PANEL_EVENTS, PANEL_DELIVERIES = 8, 100
AUDIT_ROWS = 20
HITS = 8
FILTERS = ("event", "kind", "id", "from", "to", "outcome", "request_id")
KEYS = (
    "ticket.created", "ticket.status_changed", "ticket.stale", "turn.status_changed", "turn.schedule_changed",
    "turn.task.stale", "pm.stale", "inspection.stale", "property.notice.published", "vendor.hold", "webhook.test",
)  # fmt: skip
KINDS = (
    ("ticket", "ticket"), ("turn", "turn"), ("pm_task", _("maintenance task")), ("inspection", "inspection"),
    ("notice", "notice"), ("vendor", "vendor"), ("webhook_subscription", _("endpoint (tests)")),
)  # fmt: skip
OUTCOMES = (
    ("undelivered", _("not delivered")),
    ("waiting", "waiting"),
    ("succeeded", "arrived"),
    ("no_deliveries", _("no endpoint")),
)
OUTCOME_NUMBERS = {
    "no_deliveries": pb.EVENT_OUTCOME_NO_DELIVERIES,
    "waiting": pb.EVENT_OUTCOME_WAITING,
    "succeeded": pb.EVENT_OUTCOME_SUCCEEDED,
    "undelivered": pb.EVENT_OUTCOME_UNDELIVERED,
}
# The service that makes the events about a kind of record, and has the audit log of what caused them.
MAKERS = {
    "ticket": "svc-tickets", "pm_task": "svc-tickets", "turn": "svc-occupancy", "inspection": "svc-catalog",
    "notice": "svc-catalog", "vendor": "svc-catalog", "webhook_subscription": "svc-webhooks",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuditedChange:
    """An entry of an audit log that a request led to."""

    service: str
    entry: audit_pb2.AuditEntry


@dataclass(frozen=True, slots=True)
class Trace:
    """What a request did: the changes by people and keys in all services. away: the services that did not answer."""

    request_id: str
    changes: Sequence[AuditedChange]
    names: Names
    away: Sequence[str]
    single: pb.GetEventResponse | None = None
    """The event that it caused, if it caused one alone."""


async def list_events(context: PageContext) -> web.StreamResponse:
    """With `request_id`, the trace from the request to what arrived of it."""
    chosen = filters.texts(context.query, FILTERS)
    request, errors = _request(chosen, context)
    request.limit = CSV_ROWS if "csv" in context.query else SHOWN
    wants_trace = bool(request.request_id) and "csv" not in context.query
    services = SERVICES if wants_trace else ()
    page, *audited = await together(context.rpcs.call(LIST, request), *_audit(context, request.request_id, services))
    if "csv" in context.query:
        return _csv(page)
    trace = None
    if wants_trace:
        single = page.events[0] if len(page.events) == 1 and not request.before_event_id else None
        trace = await _trace(context, request.request_id, dict(zip(services, audited, strict=True)), single)
    logged = await include(context, "/requests/panel", request_id=request.request_id) if wants_trace else ""
    has_more = page.HasField("next_before_event_id")
    return context.render(
        "events/list.html", here=HERE, events=page.events, filters=chosen, errors=errors, trace=trace, logged=logged,
        keys=KEYS, kinds=KINDS, outcomes=OUTCOMES, is_filtered=any(chosen.values()),
        older=links.with_query(PATH, {**chosen, "before": page.next_before_event_id}) if has_more else "",
        csv_path=links.with_query(PATH, {**chosen, "csv": 1}), is_later=bool(request.before_event_id),
        newest=links.with_query(PATH, chosen),
    )  # fmt: skip


def _request(chosen: Mapping[str, str], context: PageContext) -> tuple[pb.ListEventsRequest, Sequence[str]]:
    """The filters as a request, and what of them could not be read."""
    period = filters.period(chosen, context.wall.zone)
    request = pb.ListEventsRequest(since=period.since, until=period.until)
    errors = list(period.errors)
    if chosen["event"] in KEYS:
        request.event = chosen["event"]
    elif chosen["event"]:
        errors.append(_("Unknown event “%(event)s”.") % {"event": chosen["event"]})
    if chosen["kind"] in dict(KINDS):
        request.entity_type = chosen["kind"]
    elif chosen["kind"]:
        errors.append(_("Unknown record kind “%(kind)s”.") % {"kind": chosen["kind"]})
    if chosen["id"]:
        record = filters.number(chosen["id"])
        if record and request.entity_type:
            request.entity_id = record
        else:
            errors.append(_("Enter the ID as a number, with its record kind."))
    if chosen["outcome"] in OUTCOME_NUMBERS:
        request.outcome = OUTCOME_NUMBERS[chosen["outcome"]]
    if chosen["request_id"]:
        request.request_id = chosen["request_id"].replace("\0", "")
    before = context.query.get("before", "")
    if filters.is_event_id(before):
        request.before_event_id = before
    return request, errors


def _csv(page: pb.ListEventsResponse) -> web.Response:
    header = (
        "event_id", "event", "about", "entity_type", "entity_id", "occurred_at", "outcome", "waiting", "succeeded",
        "parked", "failed", "request_id", "kept_until",
    )  # fmt: skip
    names = {number: name for name, number in OUTCOME_NUMBERS.items()}
    rows = (
        (event.event_id, event.event, event.about, event.entity_type, event.entity_id, event.occurred_at.ToJsonString(),
         names.get(event.outcome, ""), event.waiting, event.succeeded, event.parked, event.failed, event.request_id,
         event.expires_at.ToJsonString())
        for event in page.events
    )  # fmt: skip
    return csv_files.answer("events", header, rows)


def _audit(
    context: PageContext, request_id: str, services: Sequence[str]
) -> Sequence[Awaitable[Panel[audit_pb2.ListAuditResponse]]]:
    request = audit_pb2.ListAuditRequest(request_id=request_id, limit=AUDIT_ROWS)
    return [context.rpcs.panel(AUDIT, request, service=service) for service in services]


async def _trace(
    context: PageContext,
    request_id: str,
    audited: Mapping[str, Panel[audit_pb2.ListAuditResponse]],
    single: pb.Event | None = None,
) -> Trace:
    changes = [
        AuditedChange(service, entry)
        for service, page in audited.items()
        if page.ok and page.value is not None
        for entry in page.value.entries
    ]
    changes.sort(key=lambda change: (change.entry.recorded_at.seconds, change.entry.recorded_at.nanos))
    names, event = await together(
        names_of(context.rpcs, [change.entry.actor for change in changes]),
        context.rpcs.panel(GET, pb.GetEventRequest(event_id=single.event_id)) if single else _nothing(),
    )
    away = [service for service, page in audited.items() if not page.ok]
    return Trace(request_id, changes, names, away, event.value if event.ok else None)


async def _nothing() -> Panel[pb.GetEventResponse]:
    return Panel(None)


async def show_event(context: PageContext) -> web.StreamResponse:
    """One event with its body, its deliveries, and what caused it; its body alone as a file."""
    event_id = context.request.match_info["event_id"]
    event = await context.rpcs.call(GET, pb.GetEventRequest(event_id=event_id))
    if "body" in context.query:
        disposition = {"Content-Disposition": f'attachment; filename="{event_id}.json"'}
        return web.Response(body=event.body, content_type="application/json", headers=disposition)
    trace = None
    if event.request_id:
        services = [MAKERS[event.entity_type]] if event.entity_type in MAKERS else []
        audited = await together(*_audit(context, event.request_id, services))
        trace = await _trace(context, event.request_id, dict(zip(services, audited, strict=True)))
    body = event.body.decode(errors="replace")
    return context.render(
        "events/event.html", here=HERE, event=event, trace=trace, body=body, indented=body_text.indented(body),
        states=[attempt_words.state_of(delivery) for delivery in event.deliveries],
    )  # fmt: skip


# Parts of other areas' pages


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """An event of a record, with its deliveries."""

    event: pb.Event
    deliveries: Sequence[pb.Delivery]

    @property
    def undelivered(self) -> Sequence[pb.Delivery]:
        return [delivery for delivery in self.deliveries if attempt_words.state_of(delivery) != SUCCEEDED]


async def panel(context: PageContext) -> web.StreamResponse:
    """The events of a record, and which integrations got them. Staff see hosts alone."""
    kind, record = context.query.get("kind", ""), filters.number(context.query.get("id", ""))
    if kind not in dict(KINDS) or record is None:
        return context.render("events/panel.html", record_events=(), kind=kind, record=0, older=False, host_of=host_of)
    events, deliveries = await together(
        context.rpcs.call(LIST, pb.ListEventsRequest(entity_type=kind, entity_id=record, limit=PANEL_EVENTS)),
        context.rpcs.call(
            OF_RECORD, pb.ListDeliveriesOfRequest(entity_type=kind, entity_id=record, limit=PANEL_DELIVERIES)
        ),
    )
    by_event: dict[str, list[pb.Delivery]] = {}
    for delivery in deliveries.deliveries:
        by_event.setdefault(delivery.event_id, []).append(delivery)
    record_events = [RecordEvent(event, by_event.get(event.event_id, ())) for event in events.events]
    return context.render(
        "events/panel.html", record_events=record_events, kind=kind, record=record,
        older=events.HasField("next_before_event_id"), host_of=host_of,
    )  # fmt: skip


async def between(context: PageContext) -> web.StreamResponse:
    """The events from one instant to another, the newest first."""
    request = pb.ListEventsRequest(limit=SHOWN)
    try:
        for name, stamp in (("since", request.since), ("until", request.until)):
            stamp.FromDatetime(datetime.datetime.fromisoformat(context.query.get(name, "")))
    except (ValueError, OverflowError):
        raise web.HTTPNotFound from None
    page = await context.rpcs.call(LIST, request)
    return context.render("events/between.html", events=page.events, has_more=page.HasField("next_before_event_id"))


async def search_hits(context: PageContext) -> web.StreamResponse:
    """What a search finds by an exact id: of an event, which a delivery has too, or of a request."""
    text = context.query.get("q", "").strip()[: filters.TEXT_MAX].replace("\0", "")
    sub_id, _, tail = text.partition("/")
    event_id = (tail if filters.number(sub_id) else text).lower()
    if filters.is_event_id(event_id):
        try:
            await context.rpcs.call(GET, pb.GetEventRequest(event_id=event_id))
        except Refusal as refusal:
            if refusal.status != 404:
                raise
        else:
            at = f"/webhooks/{sub_id}/deliveries/{event_id}" if event_id == tail.lower() else f"{PATH}/{event_id}"
            return context.redirect(at)
    events: Sequence[pb.Event] = ()
    if text and text.isascii() and " " not in text and len(text) >= 8:
        request = pb.ListEventsRequest(request_id=text, limit=HITS)
        events = (await context.rpcs.call(LIST, request)).events
        if events:
            return context.redirect(links.with_query(PATH, {"request_id": text}))
    return context.render("events/found.html")


def host_of(url: str) -> str:
    """The host of an endpoint's address."""
    return urlsplit(url).hostname or url
