"""Lists of events and deliveries with filters, one delivery whole, counts, statistics, and signatures checked."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import time
import uuid
from typing import Any

import pytest
from standardwebhooks import Webhook

from chassis.auth.identity import STAFF, Identity
from chassis.db.database import Database
from chassis.messaging.outbox import uuid7
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration import scan
from svc_webhooks.days import made_at

from ..administrator import key
from ..harness import HOUR, Client, Producer
from ..receivers import Receiver, answering
from .test_acts import Desk, now, refused, sent, subscribed

URL = "https://receiver.test/hook"


@pytest.fixture
def desk(client: Client) -> Desk:
    return Desk(client)


async def story(desk: Desk, tickets: Producer, receivers: dict[str, Receiver]) -> tuple[int, dict[str, str]]:
    """A subscription to tickets, and four events: one delivered, one parked, one waiting, one that no one gets."""
    sub_id = (await subscribed(desk, events=["ticket.created", "ticket.stale"])).subscription.sub_id
    company_id, start, events = desk.client.company_id, now(), {}
    events["parked"] = await tickets.ticket_created(company_id, 11, request_id="req-parked")
    receivers["receiver.test"].answer = answering(503, b"closed")
    await desk.administrator.walk_the_ladder(start)
    receivers["receiver.test"].answer = answering(200, b"thanks")
    events["delivered"] = await tickets.ticket_created(company_id, 12, request_id="req-delivered")
    await desk.client.sweep()
    events["waiting"] = await tickets.ticket_created(company_id, 11, event="ticket.stale", request_id="req-waiting")
    receivers["receiver.test"].answer = answering(503, b"closed")
    await desk.client.sweep()
    events["unheard"] = await tickets.ticket_created(company_id, 11, event="pm.stale", request_id="req-parked")
    await desk.client.sweep(start)
    return sub_id, events


async def test_events_are_found_by_key_record_outcome_request_and_time(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id, events = await story(desk, tickets, receivers)
    names = {event_id: name for name, event_id in events.items()}

    async def found(**fields: Any) -> list[str]:
        return [names[event.event_id] for event in (await desk("ListEvents", **fields)).events]

    everything = ["unheard", "waiting", "delivered", "parked"]
    assert await found() == everything
    assert await found(event="ticket.created") == ["delivered", "parked"]
    assert await found(entity_type="ticket") == ["waiting", "delivered", "parked"]
    assert await found(entity_type="ticket", entity_id=11) == ["waiting", "parked"]
    assert await found(entity_type="pm_task", entity_id=11) == ["unheard"]
    assert await found(entity_type="ticket", entity_id=11, event="ticket.created") == ["parked"]
    assert await found(request_id="req-parked") == ["unheard", "parked"]
    assert await found(request_id="req-parked", entity_type="ticket") == ["parked"]
    assert await found(since=now() - HOUR, until=now() + HOUR) == everything
    assert await found(until=now() - HOUR) == []
    for outcome, name in enumerate(("unheard", "waiting", "delivered", "parked"), start=1):
        assert await found(outcome=outcome) == [name]
    pages, before = [], ""
    while True:
        page = await desk("ListEvents", limit=1, before_event_id=before)
        pages += [names[event.event_id] for event in page.events]
        if not page.HasField("next_before_event_id"):
            break
        before = page.next_before_event_id
    assert pages == everything
    (event,) = (await desk("ListEvents", outcome=pb.EVENT_OUTCOME_UNDELIVERED)).events
    assert (event.entity_type, event.entity_id, event.request_id, event.parked, event.waiting) == (
        "ticket",
        11,
        "req-parked",
        1,
        0,
    )
    for fields, field in (
        ({"event": "ticket.deleted"}, "event"),
        ({"entity_type": "house"}, "entity_type"),
        ({"entity_id": 3}, "entity_id"),
        ({"before_event_id": "x"}, "before_event_id"),
    ):
        assert (await refused(desk("ListEvents", **fields))).field == field
    event = await desk("GetEvent", event_id=events["delivered"])
    assert (event.entity_type, event.deliveries[0].sub_id) == ("ticket", sub_id)
    assert json.loads(event.body)["event_id"] == events["delivered"]


async def test_deliveries_are_found_by_key_record_state_and_time(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id, events = await story(desk, tickets, receivers)
    names = {event_id: name for name, event_id in events.items()}

    async def found(**fields: Any) -> list[str]:
        return [
            names[delivery.event_id] for delivery in (await desk("ListDeliveries", sub_id=sub_id, **fields)).deliveries
        ]

    parked, waiting = pb.DELIVERY_STATE_PARKED, pb.DELIVERY_STATE_WAITING
    assert await found() == ["waiting", "delivered", "parked"]
    assert await found(event="ticket.created") == ["delivered", "parked"]
    assert await found(event="ticket.created", state=parked) == ["parked"]
    assert await found(event="ticket.stale", state=parked) == []
    assert await found(event="ticket.stale", state=waiting) == ["waiting"]
    assert await found(entity_type="ticket", entity_id=11) == ["waiting", "parked"]
    assert await found(entity_type="ticket", entity_id=11, state=parked) == ["parked"]
    assert await found(since=now() + HOUR) == []
    first = await desk("ListDeliveries", sub_id=sub_id, limit=2)
    assert first.next_before_event_id == events["delivered"]
    last = await desk("ListDeliveries", sub_id=sub_id, limit=2, before_event_id=first.next_before_event_id)
    assert [names[delivery.event_id] for delivery in last.deliveries] == ["parked"]
    assert not last.HasField("next_before_event_id")
    assert {attempt.response_excerpt for attempt in last.deliveries[0].attempts} == {"closed"}
    bare = await desk("ListDeliveries", sub_id=sub_id, without_excerpts=True)
    assert {attempt.response_excerpt for delivery in bare.deliveries for attempt in delivery.attempts} == {""}
    assert (await refused(desk("ListDeliveries", sub_id=sub_id, entity_type="ticket"))).field == "entity_id"
    page = await desk("ListDeliveriesOf", entity_type="ticket", entity_id=11, limit=1)
    assert [names[delivery.event_id] for delivery in page.deliveries] == ["waiting"]
    more = {"before_event_id": page.next_before_event_id, "before_sub_id": page.next_before_sub_id}
    page = await desk("ListDeliveriesOf", entity_type="ticket", entity_id=11, limit=1, **more)
    assert [names[delivery.event_id] for delivery in page.deliveries] == ["parked"] and not page.HasField(
        "next_before_event_id"
    )


async def test_what_has_not_arrived_is_counted_by_subscription(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    quiet = (await subscribed(desk, events=["turn.task.stale"])).subscription.sub_id
    sub_id, events = await story(desk, tickets, receivers)
    (counted,) = (await desk("CountUndelivered")).subscriptions
    assert (counted.sub_id, counted.waiting, counted.parked) == (sub_id, 1, 1)
    (delivery,) = [
        delivery for delivery in await desk.administrator.deliveries(sub_id) if delivery.event_id == events["waiting"]
    ]
    assert counted.next_due_at == delivery.due_at
    first = await desk("ListSubscriptionDetails", limit=1)
    assert [subscription.sub_id for subscription in first.subscriptions] == [quiet]
    last = await desk("ListSubscriptionDetails", limit=1, after_id=first.next_after_id)
    assert [subscription.undelivered for subscription in last.subscriptions] == [counted] and not last.HasField(
        "next_after_id"
    )


async def test_deliveries_are_counted_before_they_are_retried_or_deleted(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id, events = await story(desk, tickets, receivers)
    parked, succeeded = pb.DELIVERY_STATE_PARKED, pb.DELIVERY_STATE_SUCCEEDED

    async def count(**fields: Any) -> int:
        return int((await desk("CountDeliveries", sub_id=sub_id, **fields)).deliveries)

    assert await count() == 3
    assert [await count(state=state) for state in (pb.DELIVERY_STATE_WAITING, succeeded, parked)] == [1, 1, 1]
    assert [await count(state=parked, event=event) for event in ("ticket.created", "ticket.stale")] == [1, 0]
    assert await count(event="ticket.stale") == 1
    assert await count(since=now() - HOUR, until=now() + HOUR) == 3
    assert await count(since=now() + HOUR) == await count(until=now() - HOUR) == 0
    counts = await desk("CountDeliveries", sub_id=sub_id)
    expected = [made_at(uuid.UUID(events[name])) for name in ("parked", "waiting")]
    assert [instant.ToDatetime(datetime.UTC) for instant in (counts.first_made_at, counts.last_made_at)] == expected
    (listed,) = (await desk("ListUndelivered", state=parked)).deliveries
    assert counts.first_expires_at == listed.expires_at
    none = await desk("CountDeliveries", sub_id=sub_id, state=pb.DELIVERY_STATE_FAILED)
    assert none == pb.CountDeliveriesResponse()
    assert (await refused(desk("CountDeliveries", sub_id=sub_id, event="ticket.deleted"))).field == "event"


async def test_the_progress_of_a_retry_is_counted(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id, _ = await story(desk, tickets, receivers)
    retried = await desk("RetryParked", sub_id=sub_id, idempotency_key=key())
    since = retried.retried_at

    async def progress() -> tuple[int, int, int]:
        progress = await desk("GetRetryProgress", sub_id=sub_id, since=since)
        assert now() < progress.next_sweep_at.ToDatetime(datetime.UTC) <= now() + 24 * HOUR  # the period of these tests
        return progress.succeeded, progress.failed, progress.waiting

    assert retried.deliveries == 1 and await progress() == (0, 0, 1)  # what waits by the ladder is not of the retry
    await desk.client.sweep()
    assert await progress() == (0, 1, 0)
    receivers["receiver.test"].answer = answering(200, b"thanks")
    again = await desk("RetryParked", sub_id=sub_id, idempotency_key=key())
    assert again.deliveries == 1 and await progress() == (0, 1, 1)
    await desk.client.sweep()
    assert await progress() == (1, 1, 0)
    since.FromDatetime(now() + HOUR)
    assert await progress() == (0, 0, 0)
    assert (await refused(desk("GetRetryProgress", sub_id=sub_id))).field == "since"
    subscription = await desk("GetSubscription", sub_id=sub_id)
    assert subscription.next_sweep_at == (await desk("GetRetryProgress", sub_id=sub_id, since=since)).next_sweep_at


async def test_statistics_have_a_row_for_every_step(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver], database: Database
) -> None:
    sub_id, _ = await story(desk, tickets, receivers)
    day = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    event_id = uuid7()
    async with database.connection() as connection:
        await connection.raw.execute("DELETE FROM attempt")
        await connection.raw.execute(
            "INSERT INTO attempt (event_id, subscription_id, number, started_at, duration_milliseconds,"
            " first_byte_milliseconds, status, error, response_excerpt, state)"
            " SELECT $1, $2, n, $3::timestamptz + n * interval '1 minute', n, n,"
            " CASE WHEN n % 10 = 0 THEN 503 ELSE 200 END, CASE WHEN n % 10 = 0 THEN 'status' ELSE '' END, '',"
            " 'succeeded' FROM generate_series(1, 100) n",
            event_id, sub_id, day,
        )  # fmt: skip
    stats = await desk("GetDeliveryStats", sub_id=sub_id, since=day, until=day + 24 * HOUR)
    assert [(step.succeeded, step.failed) for step in stats.steps] == [(54, 5), (36, 5)] + 22 * [(0, 0)]
    assert (stats.steps[0].median_milliseconds, stats.steps[0].p95_milliseconds) == (30, 57)
    assert not stats.steps[2].HasField("median_milliseconds")
    assert (stats.total.succeeded, stats.total.failed, stats.total.median_milliseconds) == (90, 10, 50)
    assert [(answer.status, answer.error, answer.attempts) for answer in stats.answers] == [
        (200, "", 90),
        (503, "status", 10),
    ]
    days = await desk("GetDeliveryStats", sub_id=sub_id, step=pb.STATS_STEP_DAY, since=day, until=day + 48 * HOUR)
    assert [(step.succeeded, step.failed) for step in days.steps] == [(90, 10), (0, 0)]
    assert len((await desk("GetDeliveryStats", sub_id=sub_id)).steps) in (24, 25)
    late = {"since": day, "until": day + 33 * 24 * HOUR}
    assert (await refused(desk("GetDeliveryStats", sub_id=sub_id, **late))).field == "since"


async def test_a_delivery_shows_each_request_as_it_was_sent(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    created = await subscribed(desk)
    sub_id = created.subscription.sub_id
    event_id = await tickets.ticket_created(desk.client.company_id, request_id="req-of-a-person")
    await desk.client.sweep()
    await desk("Resend", event_id=event_id, sub_id=sub_id, idempotency_key=key())
    answer = await desk("GetDelivery", event_id=event_id, sub_id=sub_id)
    for attempt, request in zip(answer.delivery.attempts, receivers["receiver.test"].requests, strict=True):
        headers = {header.name.lower(): header.value for header in attempt.request_headers}
        assert headers == request.headers
        assert answer.body == request.body
    assert answer.request_id == "req-of-a-person"
    assert signed(created.secret, answer.fresh_signature[2:].split(",")[0], answer.body) == answer.fresh_signature
    fresh = {header.name: header.value for header in answer.fresh_headers}
    assert fresh["Service-Signature"] == answer.fresh_signature
    Webhook(created.secret).verify(answer.body, fresh)
    await desk("RotateSecret", sub_id=sub_id, idempotency_key=key())
    answer = await desk("GetDelivery", event_id=event_id, sub_id=sub_id)
    header_names = {header.name for header in answer.delivery.attempts[0].request_headers}
    assert not header_names & set(fresh) and "Service-Attempt" in header_names


def signed(secret: str, at: object, body: bytes) -> str:
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


async def test_a_signature_gets_its_verdict(desk: Desk, tickets: Producer, receivers: dict[str, Receiver]) -> None:
    created = await subscribed(desk)
    sub_id = created.subscription.sub_id
    event_id = await tickets.ticket_created(desk.client.company_id)
    await desk.client.sweep()
    (request,) = receivers["receiver.test"].requests
    signature, at = request.headers["service-signature"], int(time.time())
    reserialized = json.dumps(json.loads(request.body), indent=1).encode()
    changed = json.dumps(json.loads(request.body) | {"data": {}}).encode()
    stale = signed(created.secret, at - 301, request.body)
    for header, body, verdict in (
        (signature, request.body, "genuine"),
        (stale, request.body, "stale"),
        (signed(created.secret, at + 400, request.body), request.body, "stale"),
        (signature, reserialized, "reserialized"),
        (signature, changed, "other_body"),
        (signed("whsec_other", at, request.body), request.body, "wrong_secret"),
        (signature, b"not JSON", "wrong_secret"),
        (signature.upper(), request.body, "malformed"),
        ("", request.body, "malformed"),
        (f"t=0{at},v1={'0' * 64}", request.body, "malformed"),
    ):
        checked = await desk("CheckSignature", sub_id=sub_id, signature=header, body=body)
        label = pb.SignatureVerdict.Name(checked.verdict).removeprefix("SIGNATURE_VERDICT_").lower()
        assert label == verdict
        assert checked.HasField("signed_at") == (verdict != "malformed")
    checked = await desk("CheckSignature", sub_id=sub_id, signature=stale, body=request.body)
    assert 301 <= checked.age_seconds <= 331 and checked.age_seconds_max == 300
    assert checked.event_id == event_id
    assert (await refused(desk("CheckSignature", sub_id=sub_id, signature="x" * 201))).field == "signature"
    far = await desk("CheckSignature", sub_id=sub_id, signature=signed(created.secret, 999999999999, b""), body=b"")
    assert far.verdict == pb.SIGNATURE_VERDICT_STALE and not far.HasField("signed_at")


async def test_a_page_looks_through_a_bounded_number_of_rows() -> None:
    reads = []

    class Row:
        def __init__(self) -> None:
            self.event_id = uuid7()

    async def read(_before: Any, rows: int) -> list[Row]:
        reads.append(rows)
        return [Row() for _ in range(rows)]

    async def none(_rows: Any) -> list[Row]:
        return []

    page, following = await scan.page(read, none, uuid7(), 50)
    assert (page, following is not None) == ([], True)
    assert sum(reads) == scan.ROWS_AT_ONCE * scan.LOOKS_MAX
    reads.clear()
    page, following = await scan.page(read, None, uuid7(), 50)
    assert (len(page), reads, following) == (50, [51], page[-1].event_id)


async def test_events_and_deliveries_name_their_record_by_what_it_was_called_then(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = (await subscribed(desk, events=["ticket.created"])).subscription.sub_id
    data = {"entity_id": 11, "ticket_number": 28, "title": "卫生间漏水", "description": "x" * 70_000}
    long = await tickets.ticket_created(desk.client.company_id, 11, data=json.dumps(data).encode())
    data["description"] = None
    short = await tickets.ticket_created(desk.client.company_id, 11, data=json.dumps(data).encode())
    await desk.client.sweep()
    about = {delivery.event_id: delivery.about for delivery in (await desk("ListDeliveries", sub_id=sub_id)).deliveries}
    assert about == {short: "#28 卫生间漏水", long: ""}
    assert {event.event_id: event.about for event in (await desk("ListEvents")).events} == about
    for event_id in (short, long):  # the whole body is read for one
        assert (await desk("GetEvent", event_id=event_id)).about == "#28 卫生间漏水"
        assert (await desk("GetDelivery", event_id=event_id, sub_id=sub_id)).delivery.about == "#28 卫生间漏水"


async def test_staff_see_of_a_record_which_hosts_were_told_and_no_more(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    url = "https://receiver.test/hook?token=s3cret"
    sub_id = (await subscribed(desk, destination_url=url)).subscription.sub_id
    receivers["receiver.test"].answer = answering(200, b"thanks")
    event_id = await sent(desk, tickets, sub_id)
    (whole,) = (await desk("ListDeliveriesOf", entity_type="ticket", entity_id=1)).deliveries
    assert whole.destination_url == url and whole.attempts[0].response_excerpt == "thanks"
    desk.administrator.who = Identity(STAFF, "gateway", desk.client.company_id, staff_id=3)
    (seen,) = (await desk("ListDeliveriesOf", entity_type="ticket", entity_id=1)).deliveries
    assert (seen.event_id, seen.state, seen.destination_url) == (event_id, whole.state, "https://receiver.test")
    (attempt,) = seen.attempts
    assert (attempt.status, attempt.response_excerpt, attempt.address) == (200, "", "")
    (event,) = (await desk("ListEvents", entity_type="ticket", entity_id=1)).events
    assert (event.event_id, event.succeeded) == (event_id, 1)
    for rpc in ("GetEvent", "GetDelivery"):
        with pytest.raises(Exception, match="PERMISSION_DENIED"):
            await desk(rpc, event_id=event_id)
    desk.administrator.who = Identity(STAFF, "gateway", desk.client.company_id + 1000, staff_id=3)
    assert not (await desk("ListDeliveriesOf", entity_type="ticket", entity_id=1)).deliveries
