"""The deliveries of an endpoint: the table, the page of one, and the actions on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.refusals import Refusal
from console.kit import attempt_words, body_text, csv_files, filters, links
from console.kit.attempt_words import PARKED, STATES, SUCCEEDED, WAITING
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.names import RPC as NAMES
from console.kit.names import Names, names_of
from console.kit.texts import _, ngettext
from console.kit.times import apart, count
from makeready.webhooks.v1 import webhooks_pb2 as pb

HERE = "Webhooks"
LIST = "webhooks.DeliveriesService/ListDeliveries"
GET = "webhooks.DeliveriesService/GetDelivery"
SUBSCRIPTION = "webhooks.AdministrationService/GetSubscription"
RETRY = "webhooks.AdministrationService/RetryDelivery"
RETRY_PARKED = "webhooks.AdministrationService/RetryParked"
ATTEMPT_NOW = "webhooks.AdministrationService/AttemptNow"
RESEND = "webhooks.AdministrationService/Resend"
TABLE = (LIST,)
SHOWS = (GET, SUBSCRIPTION, NAMES)

SHOWN, CSV_ROWS = 50, 200
SHOWN_STATES = (WAITING, PARKED, SUCCEEDED)
FILTERS = ("event", "kind", "id", "from", "to")
TEST_EVENT = "webhook.test"
SELECTED_MAX = 200


@dataclass(frozen=True, slots=True)
class Table:
    """The deliveries that a page shows. state: one of SHOWN_STATES, or empty for all."""

    sub_id: int
    state: str
    filters: Mapping[str, str]
    errors: Sequence[str]
    page: Panel[pb.ListDeliveriesResponse]
    undelivered: pb.Undelivered | None
    here: str
    """The address of this page, to come back to after an action."""
    older: str
    csv_path: str
    is_later: bool

    def tab(self, state: str) -> str:
        """The address of the same list in another state."""
        return links.with_query(self.here.partition("?")[0], {**self.filters, "state": state})

    @property
    def path(self) -> str:
        return f"/webhooks/{self.sub_id}/deliveries"

    @property
    def is_filtered(self) -> bool:
        return any(self.filters.values())

    @property
    def can_retry(self) -> bool:
        """Whether a row is parked, so that it can be selected."""
        return self.page.ok and any(attempt_words.state_of(delivery) == PARKED for delivery in self.page.deliveries)


def state_in(text: str) -> str:
    """The state that an address names; empty for any other text: all."""
    return text if text in SHOWN_STATES else ""


async def first_page(context: PageContext, sub_id: int, state: str, undelivered: pb.Undelivered | None = None) -> Table:
    """The `table` of `webhooks/deliveries_table.html`: the newest deliveries of an endpoint, as a part of its page.

    The page's line in pages.py lists TABLE. undelivered: the counts beside the states, if the page has them.
    """
    request = pb.ListDeliveriesRequest(sub_id=sub_id, limit=SHOWN, without_excerpts=True)
    request.state = _number_of(state_in(state))
    page = await context.rpcs.panel(LIST, request)
    here = links.with_query(f"/webhooks/{sub_id}", {"state": state_in(state)})
    return _table(sub_id, state_in(state), dict.fromkeys(FILTERS, ""), (), page, here, undelivered)


def _number_of(state: str) -> pb.DeliveryState.ValueType:
    return pb.DeliveryState.ValueType(STATES.index(state) + 1 if state else 0)


def _table(
    sub_id: int,
    state: str,
    chosen: Mapping[str, str],
    errors: Sequence[str],
    page: Panel[pb.ListDeliveriesResponse],
    here: str,
    undelivered: pb.Undelivered | None,
    *,
    is_later: bool = False,
) -> Table:
    path, values = f"/webhooks/{sub_id}/deliveries", {**chosen, "state": state}
    has_more = page.ok and page.value is not None and page.value.HasField("next_before_event_id")
    older = links.with_query(path, {**values, "before": page.next_before_event_id}) if has_more else ""
    return Table(
        sub_id, state, chosen, errors, page, undelivered, here, older,
        links.with_query(path, {**values, "csv": 1}), is_later,
    )  # fmt: skip


async def list_deliveries(context: PageContext) -> web.StreamResponse:
    """The table with its filters, as a page of its own."""
    sub_id, state = context.number("sub_id"), state_in(context.query.get("state", ""))
    chosen = filters.texts(context.query, FILTERS)
    request, errors = _request(sub_id, state, chosen, context)
    request.limit = CSV_ROWS if "csv" in context.query else SHOWN
    page, subscription = await together(
        context.rpcs.call(LIST, request), context.rpcs.call(SUBSCRIPTION, pb.GetSubscriptionRequest(sub_id=sub_id))
    )
    if "csv" in context.query:
        return _csv(sub_id, page)
    details = subscription.subscription
    table = _table(
        sub_id, state, chosen, errors, Panel(page), context.request.rel_url.raw_path_qs, details.undelivered,
        is_later=bool(request.before_event_id),
    )  # fmt: skip
    return context.render("webhooks/deliveries.html", here=HERE, subscription=details, table=table)


def _request(
    sub_id: int, state: str, chosen: Mapping[str, str], context: PageContext
) -> tuple[pb.ListDeliveriesRequest, Sequence[str]]:
    """The filters as a request, and what of them could not be read."""
    period = filters.period(chosen, context.wall.zone)
    request = pb.ListDeliveriesRequest(
        sub_id=sub_id, state=_number_of(state), without_excerpts=True, since=period.since, until=period.until
    )
    errors = list(period.errors)
    if chosen["event"]:
        request.event = chosen["event"]
    record = filters.number(chosen["id"])
    if chosen["kind"] and record:
        request.entity_type, request.entity_id = chosen["kind"], record
    elif chosen["kind"] or chosen["id"]:
        errors.append(_("Enter a record's kind and ID, for example ticket and 41."))
    before = context.query.get("before", "")
    if filters.is_event_id(before):
        request.before_event_id = before
    return request, errors


def _csv(sub_id: int, page: pb.ListDeliveriesResponse) -> web.Response:
    header = (
        "event_id", "event", "about", "entity_type", "entity_id", "occurred_at", "state", "attempts", "last_attempt_at",
        "last_answer", "due_at", "kept_until",
    )  # fmt: skip
    return csv_files.answer(f"deliveries-{sub_id}", header, (_csv_row(delivery) for delivery in page.deliveries))


def _csv_row(delivery: pb.Delivery) -> Sequence[object]:
    last = delivery.attempts[-1] if delivery.attempts else None
    return (
        delivery.event_id, delivery.event, delivery.about, delivery.entity_type, delivery.entity_id,
        delivery.occurred_at.ToJsonString(), attempt_words.state_of(delivery), len(delivery.attempts),
        last.started_at.ToJsonString() if last else "", attempt_words.answer(last) if last else "",
        delivery.due_at.ToJsonString() if delivery.HasField("due_at") else "", delivery.expires_at.ToJsonString(),
    )  # fmt: skip


# One delivery


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the ladder. tone: "ok", "no", "next" or empty for one that is not reached; number: of its attempt."""

    tone: str
    title: str
    lines: Sequence[str]
    number: int = 0
    due_at: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class Extra:
    """An attempt beside the ladder, at a person's request or after a fault of Makeready's own."""

    attempt: pb.Attempt
    words: str


EXTRA_WORDS = {
    "retry": _("retried"),
    "manual": _("attempted now"),
    "resend": _("resent"),
    "test": _("sent a test"),
    "replay": _("replayed"),
}


def ladder(delivery: pb.Delivery) -> Sequence[Step]:
    """The steps that were made, the next one, and those that are left."""
    attempts = [attempt for attempt in delivery.attempts if is_step(attempt)]
    steps = []
    for attempt in attempts:
        after = "" if attempt is attempts[0] else _after(attempt, attempts[0])
        title = attempt_words.answer(attempt)
        if attempt_words.state_of(attempt) == PARKED:
            title += ", " + _("needs retry")
        tone = "ok" if attempt_words.is_success(attempt) else "no"
        steps.append(Step(tone, title, (after, attempt_words.seconds(attempt.duration_milliseconds)), attempt.number))
    state = attempt_words.state_of(delivery)
    remaining = max(0, delivery.rungs - len(attempts)) if state == WAITING else 0
    for index in range(remaining):
        if index == 0:
            held = attempt_words.HELD.get(delivery.held_by, "")
            steps.append(Step("next", _("Next") if not held else _("On hold"), (held,), due_at=delivery.due_at))
        else:
            steps.append(Step("", _("Later"), (_("if that fails"),)))
    return steps


def is_step(attempt: pb.Attempt) -> bool:
    return attempt_words.cause_of(attempt) == "sweep" and attempt.error not in attempt_words.OWN_FAULTS


def _after(attempt: pb.Attempt, first: pb.Attempt) -> str:
    """ "after 4 hours", to the nearest hour where it is one."""
    lasted = attempt.started_at.seconds - first.started_at.seconds
    if lasted >= 3600:
        return _("after %(time)s") % {"time": count(round(lasted / 3600), "hour")}
    return _("after %(time)s") % {"time": apart(lasted)}


def extras(delivery: pb.Delivery) -> Sequence[Extra]:
    return [
        Extra(attempt, EXTRA_WORDS.get(attempt_words.cause_of(attempt), _("could not send")))
        for attempt in delivery.attempts
        if not is_step(attempt)
    ]


def spans(attempt: pb.Attempt) -> Sequence[tuple[str, float, float]]:
    """Where an attempt's time went, as rows of `charts.spans`; none if nothing was connected."""
    rows: list[tuple[str, float, float]] = []
    at = 0
    for name, length in (
        ("connect", attempt.connect_milliseconds if attempt.HasField("connect_milliseconds") else None),
        ("TLS", attempt.tls_milliseconds if attempt.HasField("tls_milliseconds") else None),
    ):
        if length is not None:
            rows.append((name, at, length))
            at += length
    if attempt.HasField("first_byte_milliseconds"):
        rows.append(("first byte", at, max(0, attempt.first_byte_milliseconds - at)))
        at = max(at, attempt.first_byte_milliseconds)
        rows.append(("rest", at, max(0, attempt.duration_milliseconds - at)))
    elif rows:
        rows.append((_("no response"), at, max(0, attempt.duration_milliseconds - at)))
    return rows


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """A delivery with one of its attempts laid open."""

    delivery: pb.Delivery
    attempt: pb.Attempt | None
    steps: Sequence[Step]
    extras: Sequence[Extra]
    names: Names
    body: str
    size: int
    indented: str
    request_line: str
    request_id: str
    curl: str
    subscription: Panel[pb.SubscriptionDetails]
    can_act: str
    """"retry", "attempt", "resend" or empty."""
    held: str

    @property
    def path(self) -> str:
        return path_of(self.delivery.sub_id, self.delivery.event_id)

    @property
    def key(self) -> str:
        """Of the ids within a page."""
        return f"d-{self.delivery.event_id}"

    @property
    def spans(self) -> Sequence[tuple[str, float, float]]:
        return spans(self.attempt) if self.attempt else ()


def path_of(sub_id: int, event_id: str) -> str:
    return f"/webhooks/{sub_id}/deliveries/{event_id}"


async def show_delivery(context: PageContext) -> web.StreamResponse:
    """The page of a delivery; a row of the table for htmx; its body alone as a file."""
    response, subscription = await together(context.rpcs.call(GET, _get_request(context)), _subscription(context))
    if "body" in context.query:
        name = f"{response.delivery.event_id}.json"
        return web.Response(
            body=response.body,
            content_type="application/json",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )
    view = _view(
        context,
        response,
        subscription,
        await names_of(context.rpcs, [attempt.actor for attempt in response.delivery.attempts]),
    )
    if context.is_part:
        return context.render("webhooks/delivery_row.html", view=view)
    return context.render("webhooks/delivery.html", here=HERE, view=view)


def _get_request(context: PageContext) -> pb.GetDeliveryRequest:
    return pb.GetDeliveryRequest(sub_id=context.number("sub_id"), event_id=context.request.match_info["event_id"])


async def _subscription(context: PageContext) -> Panel[pb.SubscriptionDetails]:
    response = await context.rpcs.panel(SUBSCRIPTION, pb.GetSubscriptionRequest(sub_id=context.number("sub_id")))
    return Panel(response.subscription) if response.ok else response


def _view(
    context: PageContext, response: pb.GetDeliveryResponse, subscription: Panel[pb.SubscriptionDetails], names: Names
) -> DeliveryView:
    delivery, body = response.delivery, response.body.decode(errors="replace")
    number = filters.number(context.query.get("attempt", ""))
    last = delivery.attempts[-1] if delivery.attempts else None
    attempt = next((attempt for attempt in delivery.attempts if attempt.number == number), last)
    headers = [(header.name, header.value) for header in attempt.request_headers] if attempt else []
    # A service of the release before names one header alone.
    signatures = {header.name: header.value for header in response.fresh_headers} or {
        "Service-Signature": response.fresh_signature
    }
    fresh = [*((name, value) for name, value in headers if name not in signatures), *signatures.items()]
    state = attempt_words.state_of(delivery)
    actions = {PARKED: "retry", WAITING: "attempt", SUCCEEDED: "resend"}
    path = delivery.destination_url.partition("://")[2].partition("/")[2]
    return DeliveryView(
        delivery=delivery,
        attempt=attempt,
        steps=ladder(delivery),
        extras=extras(delivery),
        names=names,
        body=body,
        size=len(response.body),
        indented=body_text.indented(body),
        request_line="\n".join([f"POST /{path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]),
        request_id=response.request_id,
        curl=body_text.curl(delivery.destination_url, fresh, body) if response.fresh_signature and headers else "",
        subscription=subscription,
        can_act="" if delivery.event == TEST_EVENT else actions.get(state, ""),
        held=attempt_words.HELD.get(delivery.held_by, ""),
    )


# Actions


async def retry(context: PageContext) -> web.StreamResponse:
    return await _attempt(context, RETRY, pb.RetryDeliveryRequest)


async def attempt_now(context: PageContext) -> web.StreamResponse:
    return await _attempt(context, ATTEMPT_NOW, pb.AttemptNowRequest)


async def resend(context: PageContext) -> web.StreamResponse:
    return await _attempt(context, RESEND, pb.ResendRequest)


async def _attempt(context: PageContext, rpc: str, request: Any) -> web.StreamResponse:
    """Makes one attempt, and leads back with the receiver's answer."""
    delivery = _get_request(context)
    back = context.form.get("next", "")
    path = links.own_path(back) if back else path_of(delivery.sub_id, delivery.event_id)
    try:
        done = await context.rpcs.call(
            rpc, request(sub_id=delivery.sub_id, event_id=delivery.event_id, idempotency_key=context.form_token)
        )
    except Refusal as refusal:
        if refusal.status == 404:
            raise
        return context.redirect(path, _(_("Nothing was sent.")) + f" {refusal.message}")
    return context.redirect(path, attempt_sentence(done.delivery))


def attempt_sentence(delivery: pb.Delivery) -> str:
    """One sentence about the attempt that was just made."""
    if not delivery.attempts:
        return _("Nothing was sent.")
    last = delivery.attempts[-1]
    name = delivery.event
    words = f"{attempt_words.answer(last)} after {attempt_words.seconds(last.duration_milliseconds)}"
    if attempt_words.is_success(last):
        return _("%(event)s delivered: %(answer)s.") % {"event": name, "answer": words}
    consequence = {
        PARKED: _("It still needs a retry."),
        WAITING: _("Its next scheduled attempt has not changed."),
        SUCCEEDED: _("It was delivered before and still counts as delivered."),
    }.get(attempt_words.state_of(delivery), "")
    return _("%(event)s failed: %(answer)s.") % {"event": name, "answer": words} + f" {consequence}".strip()


async def retry_selected(context: PageContext) -> web.StreamResponse:
    """Makes the selected parked deliveries due; the next sweep attempts them."""
    sub_id = context.number("sub_id")
    back = links.own_path(context.form.get("next", "") or f"/webhooks/{sub_id}/deliveries?state={PARKED}")
    event_ids = [event_id for event_id in context.form.getall("event_id", []) if filters.is_event_id(event_id)][
        :SELECTED_MAX
    ]
    if not event_ids:
        return context.redirect(back, _("Nothing was retried. Select deliveries first."))
    request = pb.RetryParkedRequest(sub_id=sub_id, idempotency_key=context.form_token, event_ids=event_ids)
    try:
        done = await context.rpcs.call(RETRY_PARKED, request)
    except Refusal as refusal:
        if refusal.status == 404:
            raise
        return context.redirect(back, _("Nothing was retried.") + f" {refusal.message}")
    return context.redirect(
        back,
        ngettext(
            "%(num)s delivery queued for the next sweep.",
            "%(num)s deliveries queued for the next sweep.",
            done.deliveries,
        )
        % {"num": f"{done.deliveries:,}"}
        if done.deliveries
        else _("None of them needs a retry any more."),
    )
