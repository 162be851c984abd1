"""The deliveries of an endpoint: the table, the page of one, and the acts on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from chassis.refusals import Refusal
from console.kit import attempt_words, body_text, csv_files, filters, links
from console.kit.attempt_words import PARKED, STATES, SUCCEEDED, WAITING
from console.kit.calls import Panel, together
from console.kit.names import RPC as NAMES
from console.kit.names import Names, names_of
from console.kit.times import apart, count
from console.kit.visit import Visit
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
    """The address of this page, to come back to after an act."""
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
        return self.page.ok and any(attempt_words.state_of(one) == PARKED for one in self.page.deliveries)


def state_in(text: str) -> str:
    """The state that an address names; empty for any other text: all."""
    return text if text in SHOWN_STATES else ""


async def first_page(
    visit: Visit, sub_id: int, state: str, undelivered: pb.Undelivered | None = None
) -> Mapping[str, Any]:
    """The values of `webhooks/deliveries_table.html`: the newest deliveries of an endpoint, as a part of its page.

    The page's line in pages.py lists TABLE. undelivered: the counts beside the states, if the page has them.
    """
    request = pb.ListDeliveriesRequest(sub_id=sub_id, limit=SHOWN, without_excerpts=True)
    request.state = _number_of(state_in(state))
    found = await visit.panel(LIST, request)
    here = links.with_query(f"/webhooks/{sub_id}", {"state": state_in(state)})
    return {"table": _table(sub_id, state_in(state), dict.fromkeys(FILTERS, ""), (), found, here, undelivered)}


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


async def list_deliveries(visit: Visit) -> web.StreamResponse:
    """The table with its filters, as a page of its own."""
    sub_id, state = visit.number("sub_id"), state_in(visit.query.get("state", ""))
    chosen = filters.texts(visit.query, FILTERS)
    request, errors = _request(sub_id, state, chosen, visit)
    request.limit = CSV_ROWS if "csv" in visit.query else SHOWN
    found, subscription = await together(
        visit.call(LIST, request), visit.call(SUBSCRIPTION, pb.GetSubscriptionRequest(sub_id=sub_id))
    )
    if "csv" in visit.query:
        return _csv(sub_id, found)
    details = subscription.subscription
    table = _table(
        sub_id, state, chosen, errors, Panel(found), visit.request.rel_url.raw_path_qs, details.undelivered,
        is_later=bool(request.before_event_id),
    )  # fmt: skip
    return visit.render("webhooks/deliveries.html", here=HERE, subscription=details, table=table)


def _request(
    sub_id: int, state: str, chosen: Mapping[str, str], visit: Visit
) -> tuple[pb.ListDeliveriesRequest, Sequence[str]]:
    """The filters as a request, and what of them could not be read."""
    request = pb.ListDeliveriesRequest(sub_id=sub_id, state=_number_of(state), without_excerpts=True)
    errors = list(filters.period(chosen, visit.wall.zone, request.since, request.until))
    if chosen["event"]:
        request.event = chosen["event"]
    record = filters.number(chosen["id"])
    if chosen["kind"] and record:
        request.entity_type, request.entity_id = chosen["kind"], record
    elif chosen["kind"] or chosen["id"]:
        errors.append("A record is its kind and its id, for example ticket and 41.")
    before = visit.query.get("before", "")
    if filters.is_event_id(before):
        request.before_event_id = before
    return request, errors


def _csv(sub_id: int, found: pb.ListDeliveriesResponse) -> web.Response:
    header = (
        "event_id", "event", "about", "entity_type", "entity_id", "occurred_at", "state", "attempts", "last_attempt_at",
        "last_answer", "due_at", "kept_until",
    )  # fmt: skip
    return csv_files.answer(f"deliveries-{sub_id}", header, (_csv_row(one) for one in found.deliveries))


def _csv_row(one: pb.Delivery) -> Sequence[object]:
    last = one.attempts[-1] if one.attempts else None
    return (
        one.event_id, one.event, one.about, one.entity_type, one.entity_id, one.occurred_at.ToJsonString(),
        attempt_words.state_of(one), len(one.attempts), last.started_at.ToJsonString() if last else "",
        attempt_words.answer(last) if last else "", one.due_at.ToJsonString() if one.HasField("due_at") else "",
        one.expires_at.ToJsonString(),
    )  # fmt: skip


# One delivery


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the ladder. tone: "ok", "no", "next" or empty for one that is not reached; number: of its attempt."""

    tone: str
    title: str
    lines: Sequence[str]
    number: int = 0
    due_at: Any = None


@dataclass(frozen=True, slots=True)
class Extra:
    """An attempt beside the ladder, at a person's request or after a fault of Makeready's own."""

    attempt: pb.Attempt
    words: str


EXTRA_WORDS = {
    "retry": "retried it",
    "manual": "attempted it now",
    "resend": "sent it again",
    "test": "sent a test",
    "replay": "replayed it",
}


def ladder(delivery: pb.Delivery) -> Sequence[Step]:
    """The steps that were made, the next one, and those that are left."""
    made = [one for one in delivery.attempts if is_step(one)]
    steps = []
    for one in made:
        after = "" if one is made[0] else _after(one, made[0])
        title = attempt_words.answer(one) + (", parked" if attempt_words.state_of(one) == PARKED else "")
        tone = "ok" if attempt_words.is_success(one) else "no"
        steps.append(Step(tone, title, (after, attempt_words.seconds(one.duration_milliseconds)), one.number))
    state = attempt_words.state_of(delivery)
    left = max(0, delivery.rungs - len(made)) if state == WAITING else 0
    for place in range(left):
        if place == 0:
            held = attempt_words.HELD.get(delivery.held_by, "")
            steps.append(Step("next", "Next" if not held else "Held", (held,), due_at=delivery.due_at))
        else:
            steps.append(Step("", "Later", ("if that one fails",)))
    return steps


def is_step(attempt: pb.Attempt) -> bool:
    return attempt_words.cause_of(attempt) == "sweep" and attempt.error not in attempt_words.OWN_FAULTS


def _after(attempt: pb.Attempt, first: pb.Attempt) -> str:
    """ "after 4 hours", to the nearest hour where it is one."""
    lasted = attempt.started_at.seconds - first.started_at.seconds
    if lasted >= 3600:
        return f"after {count(round(lasted / 3600), 'hour')}"
    return f"after {apart(lasted)}"


def extras(delivery: pb.Delivery) -> Sequence[Extra]:
    return [
        Extra(one, EXTRA_WORDS.get(attempt_words.cause_of(one), "tried it, and could not send"))
        for one in delivery.attempts
        if not is_step(one)
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
        rows.append(("no answer", at, max(0, attempt.duration_milliseconds - at)))
    return rows


@dataclass(frozen=True, slots=True)
class Shown:
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


async def show_delivery(visit: Visit) -> web.StreamResponse:
    """The page of a delivery; a row of the table for htmx; its body alone as a file."""
    found, subscription = await together(visit.call(GET, _wanted(visit)), _subscription(visit))
    if "body" in visit.query:
        name = f"{found.delivery.event_id}.json"
        return web.Response(
            body=found.body,
            content_type="application/json",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )
    shown = _shown(visit, found, subscription, await names_of(visit, [one.actor for one in found.delivery.attempts]))
    if visit.is_part:
        return visit.render("webhooks/delivery_row.html", shown=shown)
    return visit.render("webhooks/delivery.html", here=HERE, shown=shown)


def _wanted(visit: Visit) -> pb.GetDeliveryRequest:
    return pb.GetDeliveryRequest(sub_id=visit.number("sub_id"), event_id=visit.request.match_info["event_id"])


async def _subscription(visit: Visit) -> Panel[pb.SubscriptionDetails]:
    found = await visit.panel(SUBSCRIPTION, pb.GetSubscriptionRequest(sub_id=visit.number("sub_id")))
    return Panel(found.subscription) if found.ok else found


def _shown(
    visit: Visit, found: pb.GetDeliveryResponse, subscription: Panel[pb.SubscriptionDetails], names: Names
) -> Shown:
    delivery, body = found.delivery, found.body.decode(errors="replace")
    number = filters.number(visit.query.get("attempt", ""))
    last = delivery.attempts[-1] if delivery.attempts else None
    attempt = next((one for one in delivery.attempts if one.number == number), last)
    headers = [(one.name, one.value) for one in attempt.request_headers] if attempt else []
    # A service of the release before names one header alone.
    signatures = {one.name: one.value for one in found.fresh_headers} or {"Service-Signature": found.fresh_signature}
    fresh = [*((name, value) for name, value in headers if name not in signatures), *signatures.items()]
    state = attempt_words.state_of(delivery)
    acts = {PARKED: "retry", WAITING: "attempt", SUCCEEDED: "resend"}
    path = delivery.destination_url.partition("://")[2].partition("/")[2]
    return Shown(
        delivery=delivery,
        attempt=attempt,
        steps=ladder(delivery),
        extras=extras(delivery),
        names=names,
        body=body,
        size=len(found.body),
        indented=body_text.indented(body),
        request_line="\n".join([f"POST /{path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]),
        request_id=found.request_id,
        curl=body_text.curl(delivery.destination_url, fresh, body) if found.fresh_signature and headers else "",
        subscription=subscription,
        can_act="" if delivery.event == TEST_EVENT else acts.get(state, ""),
        held=attempt_words.HELD.get(delivery.held_by, ""),
    )


# Acts


async def retry(visit: Visit) -> web.StreamResponse:
    return await _act(visit, RETRY, pb.RetryDeliveryRequest)


async def attempt_now(visit: Visit) -> web.StreamResponse:
    return await _act(visit, ATTEMPT_NOW, pb.AttemptNowRequest)


async def resend(visit: Visit) -> web.StreamResponse:
    return await _act(visit, RESEND, pb.ResendRequest)


async def _act(visit: Visit, rpc: str, request: Any) -> web.StreamResponse:
    """Makes one attempt, and leads back with the receiver's answer."""
    wanted = _wanted(visit)
    back = visit.form.get("next", "")
    path = links.own_path(back) if back else path_of(wanted.sub_id, wanted.event_id)
    try:
        done = await visit.call(rpc, request(sub_id=wanted.sub_id, event_id=wanted.event_id, idempotency_key=visit.act))
    except Refusal as refusal:
        if refusal.status == 404:
            raise
        return visit.redirect(path, f"Nothing was sent. {refusal.message}")
    return visit.redirect(path, said(done.delivery))


def said(delivery: pb.Delivery) -> str:
    """One sentence about the attempt that was just made."""
    if not delivery.attempts:
        return "Nothing was sent."
    last = delivery.attempts[-1]
    name = delivery.event
    words = f"{attempt_words.answer(last)} after {attempt_words.seconds(last.duration_milliseconds)}"
    if attempt_words.is_success(last):
        return f"{name} has arrived: {words}."
    left = {
        PARKED: "It stays parked.",
        WAITING: "It waits for its next date as before.",
        SUCCEEDED: "It had arrived before, and counts as delivered.",
    }.get(attempt_words.state_of(delivery), "")
    return f"{name} did not arrive: {words}. {left}".strip()


async def retry_selected(visit: Visit) -> web.StreamResponse:
    """Makes the selected parked deliveries due; the next sweep attempts them."""
    sub_id = visit.number("sub_id")
    back = links.own_path(visit.form.get("next", "") or f"/webhooks/{sub_id}/deliveries?state={PARKED}")
    wanted = [one for one in visit.form.getall("event_id", []) if filters.is_event_id(one)][:SELECTED_MAX]
    if not wanted:
        return visit.redirect(back, "Nothing was retried: select deliveries first.")
    request = pb.RetryParkedRequest(sub_id=sub_id, idempotency_key=visit.act, event_ids=wanted)
    try:
        done = await visit.call(RETRY_PARKED, request)
    except Refusal as refusal:
        if refusal.status == 404:
            raise
        return visit.redirect(back, f"Nothing was retried. {refusal.message}")
    return visit.redirect(
        back,
        f"{count(done.deliveries, 'delivery')} {'is' if done.deliveries == 1 else 'are'} due: the next sweep sends"
        f" {'it' if done.deliveries == 1 else 'them'}."
        if done.deliveries
        else "None of them is parked any more.",
    )
