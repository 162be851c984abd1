"""Acts of administrators on subscriptions and deliveries, once for each key, with the actor on record."""

from __future__ import annotations

import asyncio
import datetime
import json
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.webhooks.v1 import webhooks_pb2 as pb

from ..administrator import Administrator, key
from ..harness import HOUR, Client, Producer
from ..receivers import Receiver, answering

WAITING, SUCCEEDED, PARKED, FAILED = (
    pb.DELIVERY_STATE_WAITING,
    pb.DELIVERY_STATE_SUCCEEDED,
    pb.DELIVERY_STATE_PARKED,
    pb.DELIVERY_STATE_FAILED,
)
URL = "https://receiver.test/hook"
ACTOR = "administrator:7"


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class Desk:
    """An administrator of the client's company."""

    def __init__(self, client: Client, company_id: int | None = None) -> None:
        self.administrator = Administrator(client).of(company_id or client.company_id)
        self.client = client

    async def __call__(self, rpc: str, **fields: Any) -> Any:
        return await self.client.call(getattr(pb, f"{rpc}Request")(**fields), self.administrator.who)


@pytest.fixture
def desk(client: Client) -> Desk:
    return Desk(client)


async def refused(call: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await call
    return caught.value


async def subscribed(desk: Desk, **fields: Any) -> Any:
    fields_sent = {"destination_url": URL, "events": ["ticket.created"], "idempotency_key": key()} | fields
    return await desk("AddSubscription", **fields_sent)


async def sent(desk: Desk, tickets: Producer, sub_id: int) -> str:
    """The event of a delivery that the receiver answered."""
    event_id = await tickets.ticket_created(desk.client.company_id)
    await desk.client.sweep()
    return event_id


# Creating, changing, deleting


async def test_an_administrator_creates_a_subscription_that_signs_with_the_secret(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    answer = await subscribed(desk, events=["ticket.created", "pm.stale", "ticket.created"])
    subscription = answer.subscription
    assert (subscription.source, subscription.created_by, subscription.health) == ("administrator", ACTOR, "healthy")
    assert list(subscription.events) == ["pm.stale", "ticket.created"]
    assert answer.secret.startswith(subscription.secret_prefix) and len(answer.secret) > len(subscription.secret_prefix)
    assert abs(subscription.secret_since.ToDatetime(datetime.UTC) - now()) < HOUR
    assert (await desk("GetSubscription", sub_id=subscription.sub_id)).subscription == subscription
    (listed,) = await desk.client.subscriptions()
    assert (listed["entity_id"], listed["source"]) == (subscription.sub_id, "administrator")
    await sent(desk, tickets, subscription.sub_id)
    (request,) = receivers["receiver.test"].requests
    assert request.is_signed_with(answer.secret) and request.is_standard(answer.secret)
    ((actor, action, before, after),) = await desk.administrator.audit(subscription.sub_id)
    assert (actor, action, before) == (ACTOR, "subscription.created", {})
    assert after["destination_url"] == URL and answer.secret not in json.dumps(after)


async def test_a_form_sent_twice_creates_one_subscription_and_shows_its_secret_twice(desk: Desk) -> None:
    one_key = key()
    first = await subscribed(desk, idempotency_key=one_key)
    assert await subscribed(desk, idempotency_key=one_key) == first
    assert len((await desk("ListSubscriptionDetails")).subscriptions) == 1
    assert (
        await refused(subscribed(desk, idempotency_key=one_key, events=["pm.stale"]))
    ).code == "idempotency_mismatch"
    assert (await refused(subscribed(desk, idempotency_key=""))).code == "idempotency_key_required"


async def test_a_secret_is_not_repeated_after_a_minute(desk: Desk, database: Database) -> None:
    one_key = key()
    first = await subscribed(desk, idempotency_key=one_key)
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE subscription SET secret_since = now() - interval '61 seconds'")
    again = await subscribed(desk, idempotency_key=one_key)
    assert (again.subscription.sub_id, again.secret) == (first.subscription.sub_id, "")
    async with database.connection() as connection:
        stored = await connection.raw.fetchval(
            "SELECT reply FROM idempotency WHERE idempotency_key LIKE $1", f"%{one_key}"
        )
    assert first.secret.encode() not in stored


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"destination_url": "http://receiver.test/"}, "invalid_destination_url", "destination_url"),
        ({"destination_url": "https://127.0.0.1/"}, "invalid_destination_url", "destination_url"),
        ({"events": []}, "events_empty", "events"),
        ({"events": ["webhook.test"]}, "events_unknown_key", "events"),
    ],
)
async def test_the_checks_of_the_api_hold_and_name_the_field(
    desk: Desk, fields: dict[str, Any], code: str, field: str
) -> None:
    fault = await refused(subscribed(desk, **fields))
    assert (fault.status, fault.code, fault.field) == (422, code, field)
    assert not (await desk("ListSubscriptionDetails")).subscriptions


async def test_a_company_has_so_many_subscriptions_whoever_creates_them(desk: Desk, database: Database) -> None:
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO subscription (id, company_id, destination_url, events, secret_prefix, secret_key_id,"
            " secret_sealed, created_at, source) SELECT -n, $1, 'u', '{pm.stale}', '', '', '', now(), 'api'"
            " FROM generate_series(1, 1000) n",
            desk.client.company_id,
        )
    assert "at most 1,000" in (await refused(subscribed(desk))).message


async def test_a_new_destination_gets_what_waits_and_new_events_what_happens_from_now_on(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = (await subscribed(desk)).subscription.sub_id
    receivers["receiver.test"].answer = answering(500)
    await sent(desk, tickets, sub_id)
    url = "https://second.test/new"
    changed = await desk(
        "UpdateSubscription", sub_id=sub_id, destination_url=url, events=["pm.stale"], idempotency_key=key()
    )
    assert (changed.subscription.destination_url, list(changed.subscription.events)) == (url, ["pm.stale"])
    await desk.client.sweep(now() + HOUR)
    assert [request.headers["service-attempt"] for request in receivers["second.test"].requests] == ["2"]
    await tickets.ticket_created(desk.client.company_id)
    assert (await desk.client.sweep(now() + HOUR))["attempted"] == 0
    _, (actor, action, before, after) = await desk.administrator.audit(sub_id)
    assert (actor, action) == (ACTOR, "subscription.changed")
    assert before == {"destination_url": URL, "events": ["ticket.created"]}
    assert after == {"destination_url": url, "events": ["pm.stale"]}
    fault = await refused(desk("UpdateSubscription", sub_id=sub_id, destination_url="ftp://a", idempotency_key=key()))
    assert (fault.code, fault.field) == ("invalid_destination_url", "destination_url")
    assert (await refused(desk("UpdateSubscription", sub_id=sub_id, idempotency_key=key()))).status == 422


async def test_deleting_says_what_goes_and_can_be_sent_twice(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = (await subscribed(desk)).subscription.sub_id
    await sent(desk, tickets, sub_id)
    receivers["receiver.test"].answer = answering(500)
    await sent(desk, tickets, sub_id)
    other = Desk(desk.client, desk.client.company_id + 10**6)
    assert (await refused(other("RemoveSubscription", sub_id=sub_id, idempotency_key=key()))).status == 404
    one_key = key()
    for _ in range(2):
        gone = await desk("RemoveSubscription", sub_id=sub_id, idempotency_key=one_key)
        assert (gone.deliveries, gone.undelivered) == (2, 1)
    assert (await refused(desk("GetSubscription", sub_id=sub_id))).status == 404
    assert [entry[1] for entry in await desk.administrator.audit(sub_id)][-1] == "subscription.deleted"


# Pause and rotate


async def test_a_pause_has_a_person_an_instant_and_a_reason(desk: Desk) -> None:
    sub_id = (await subscribed(desk)).subscription.sub_id
    await desk("PauseSubscription", sub_id=sub_id, reason=" Receiver moves. ", idempotency_key=key())
    subscription = (await desk("GetSubscription", sub_id=sub_id)).subscription
    assert (subscription.health, subscription.paused_by, subscription.pause_reason) == (
        "paused",
        ACTOR,
        "Receiver moves.",
    )
    assert subscription.HasField("paused_at") and subscription.undelivered.held_by == "paused"
    await desk.administrator.pause(sub_id)
    assert (await desk("GetSubscription", sub_id=sub_id)).subscription == subscription
    await desk("ResumeSubscription", sub_id=sub_id, idempotency_key=key())
    subscription = (await desk("GetSubscription", sub_id=sub_id)).subscription
    assert (
        subscription.health,
        subscription.paused_by,
        subscription.pause_reason,
        subscription.HasField("paused_at"),
    ) == (
        "healthy",
        "",
        "",
        False,
    )
    reasons = [entry[3].get("pause_reason") for entry in await desk.administrator.audit(sub_id)]
    assert reasons == [None, "Receiver moves.", ""]
    fault = await refused(desk("PauseSubscription", sub_id=sub_id, reason="x" * 501, idempotency_key=key()))
    assert (fault.status, fault.field) == (422, "reason")


async def test_a_double_click_rotates_once(desk: Desk) -> None:
    answer = await subscribed(desk)
    sub_id, one_key = answer.subscription.sub_id, key()
    first = await desk("RotateSecret", sub_id=sub_id, idempotency_key=one_key)
    again = await desk("RotateSecret", sub_id=sub_id, idempotency_key=one_key)
    assert again == first and first.secret not in ("", answer.secret)
    assert [entry[1] for entry in await desk.administrator.audit(sub_id)].count("subscription.secret_rotated") == 1
    await desk("RotateSecret", sub_id=sub_id, idempotency_key=key())
    assert (await desk("RotateSecret", sub_id=sub_id, idempotency_key=one_key)).secret == ""  # it signs nothing now


# Attempt now, resend, retry


async def test_an_attempt_now_leaves_the_ladder_as_it_stands(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = (await subscribed(desk)).subscription.sub_id
    receivers["receiver.test"].answer = answering(500)
    event_id = await tickets.ticket_created(desk.client.company_id)
    start = now()  # a sweep as of an earlier second would not find it due
    await desk.client.sweep(start)
    ids = {"event_id": event_id, "sub_id": sub_id}
    one_key = key()
    for _ in range(2):
        tried = (await desk("AttemptNow", **ids, idempotency_key=one_key)).delivery
        assert [attempt.number for attempt in tried.attempts] == [1, 2]
    assert (tried.state, tried.due_at.ToDatetime(datetime.UTC), tried.rungs_used) == (WAITING, start + HOUR, 1)
    assert (tried.attempts[1].cause, tried.attempts[1].actor) == (pb.ATTEMPT_CAUSE_MANUAL, ACTOR)
    assert len(receivers["receiver.test"].requests) == 2
    await desk.client.sweep(start + HOUR)
    third = (await desk("GetDelivery", **ids)).delivery
    assert (third.rungs_used, third.rungs) == (2, 6)
    assert third.due_at.ToDatetime(datetime.UTC) == start + 2 * HOUR
    assert (third.attempts[2].cause, third.attempts[2].actor) == (pb.ATTEMPT_CAUSE_SWEEP, "")
    receivers["receiver.test"].answer = answering(200)
    ended = (await desk("AttemptNow", **ids, idempotency_key=key())).delivery
    assert (ended.state, ended.HasField("due_at"), ended.rungs_used) == (SUCCEEDED, False, 2)
    assert await desk.administrator.health(sub_id) == "healthy"
    fault = await refused(desk("AttemptNow", **ids, idempotency_key=key()))
    assert (fault.status, fault.code) == (422, "invalid_request")


async def test_a_resent_delivery_stays_delivered_whatever_the_receiver_answers(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = (await subscribed(desk)).subscription.sub_id
    event_id = await sent(desk, tickets, sub_id)
    ids = {"event_id": event_id, "sub_id": sub_id}
    one_key = key()
    for _ in range(2):
        again = (await desk("Resend", **ids, idempotency_key=one_key)).delivery
        assert (again.state, len(again.attempts)) == (SUCCEEDED, 2)
    first, second = receivers["receiver.test"].requests
    assert first.body == second.body and json.loads(second.body)["event_id"] == event_id
    assert (again.attempts[1].cause, again.attempts[1].actor) == (pb.ATTEMPT_CAUSE_RESEND, ACTOR)
    receivers["receiver.test"].answer = answering(503)
    failed = (await desk("Resend", **ids, idempotency_key=key())).delivery
    assert (failed.state, failed.HasField("due_at"), failed.attempts[2].status) == (SUCCEEDED, False, 503)
    assert (await desk.client.sweep(now() + 100 * HOUR))["attempted"] == 0
    subscription = (await desk("GetSubscription", sub_id=sub_id)).subscription
    assert (subscription.health, subscription.failures_in_a_row, subscription.HasField("failing_since")) == (
        "retrying",
        1,
        True,
    )
    assert [entry[1] for entry in await desk.administrator.audit(sub_id)] == [
        "subscription.created", "delivery.resent", "delivery.resent",
    ]  # fmt: skip
    await desk.administrator.pause(sub_id)
    assert "paused" in (await refused(desk("Resend", **ids, idempotency_key=key()))).message


async def test_two_resends_at_once_are_two_attempts_with_their_own_numbers(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = (await subscribed(desk)).subscription.sub_id
    event_id = await sent(desk, tickets, sub_id)
    await desk("Resend", event_id=event_id, sub_id=sub_id, idempotency_key=key())
    await desk("Resend", event_id=event_id, sub_id=sub_id, idempotency_key=key())
    numbers = [request.headers["service-attempt"] for request in receivers["receiver.test"].requests]
    assert numbers == ["1", "2", "3"]


async def parked(desk: Desk, tickets: Producer, many: int) -> tuple[int, list[str]]:
    """A subscription and its parked events, oldest first; the receiver answers 200 after that."""
    sub_id = (await subscribed(desk, events=["ticket.created", "pm.stale"])).subscription.sub_id
    events = [
        await tickets.ticket_created(desk.client.company_id, event="pm.stale" if number % 2 else "ticket.created")
        for number in range(many)
    ]
    # From an instant after the last event: an event of a later second than the ladder's begin would miss its first
    # sweep, and not be parked at the end.
    await desk.administrator.walk_the_ladder(now())
    return sub_id, events


async def test_parked_deliveries_are_retried_by_key_by_period_and_by_selection(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    receivers["receiver.test"].answer = answering(500)
    sub_id, events = await parked(desk, tickets, 4)
    receivers["receiver.test"].answer = answering(200)
    one_key = key()

    async def due(**fields: Any) -> int:
        count: int = (await desk("RetryParked", **{"sub_id": sub_id, "idempotency_key": key()} | fields)).deliveries
        return count

    assert await due(event="pm.stale", until=now() - HOUR) == 0
    assert await due(event="vendor.hold") == 0
    for _ in range(2):
        assert await due(event_ids=[events[0]], idempotency_key=one_key) == 1
    assert await due(event="pm.stale", since=now() - HOUR) == 2
    assert (await refused(due(event_ids=["x"]))).field == "event_ids"
    assert (await refused(due(event_ids=[events[2]], event="pm.stale"))).field == "event_ids"
    await desk.client.sweep(now() + 50 * HOUR)
    states = {delivery.event_id: delivery for delivery in await desk.administrator.deliveries(sub_id)}
    assert [states[event_id].state for event_id in events] == [SUCCEEDED, SUCCEEDED, PARKED, SUCCEEDED]
    last = states[events[0]].attempts[-1]
    assert (last.cause, last.actor) == (pb.ATTEMPT_CAUSE_RETRY, ACTOR)
    assert await due() == 1


# Tests


async def test_a_test_is_sent_once_and_changes_no_health(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    answer = await subscribed(desk)
    sub_id, one_key = answer.subscription.sub_id, key()
    receivers["receiver.test"].answer = answering(503, b"later")
    for _ in range(2):
        test = (await desk("SendTest", sub_id=sub_id, idempotency_key=one_key)).delivery
        assert (test.event, test.state, len(test.attempts)) == ("webhook.test", FAILED, 1)
    (attempt,) = test.attempts
    assert (attempt.cause, attempt.actor, attempt.status) == (pb.ATTEMPT_CAUSE_TEST, ACTOR, 503)
    (request,) = receivers["receiver.test"].requests
    assert request.is_signed_with(answer.secret) and request.is_standard(answer.secret)
    body = json.loads(request.body)
    assert list(body) == ["schema_version", "event_id", "event", "occurred_at", "company_id", "data", "change"]
    assert (body["event"], body["data"], body["change"]) == ("webhook.test", {}, None)
    assert body["event_id"] == test.event_id and body["company_id"] == desk.client.company_id
    subscription = (await desk("GetSubscription", sub_id=sub_id)).subscription
    assert (subscription.health, subscription.failures_in_a_row, subscription.undelivered.parked) == ("healthy", 0, 0)
    assert (await desk.client.sweep(now() + 100 * HOUR))["attempted"] == 0
    assert not (await desk.administrator.undelivered()).deliveries
    stats = await desk("GetDeliveryStats", sub_id=sub_id)
    assert (stats.total.succeeded, stats.total.failed) == (0, 0)
    for rpc in ("Resend", "AttemptNow", "RetryDelivery"):
        ids = {"event_id": test.event_id, "sub_id": sub_id, "idempotency_key": key()}
        assert (await refused(desk(rpc, **ids))).status == 422


async def test_a_paused_subscription_gets_a_test_and_nothing_else(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = (await subscribed(desk)).subscription.sub_id
    await desk.administrator.pause(sub_id)
    await tickets.ticket_created(desk.client.company_id)
    test = (await desk("SendTest", sub_id=sub_id, idempotency_key=key())).delivery
    assert test.state == SUCCEEDED
    assert [json.loads(request.body)["event"] for request in receivers["receiver.test"].requests] == ["webhook.test"]
    assert (await desk("GetSubscription", sub_id=sub_id)).subscription.health == "paused"


async def test_a_test_of_an_unhealthy_subscription_heals_nothing(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = (await subscribed(desk)).subscription.sub_id
    receivers["receiver.test"].answer = answering(500)
    await sent(desk, tickets, sub_id)
    receivers["receiver.test"].answer = answering(200)
    assert (await desk("SendTest", sub_id=sub_id, idempotency_key=key())).delivery.state == SUCCEEDED
    subscription = (await desk("GetSubscription", sub_id=sub_id)).subscription
    assert (subscription.health, subscription.failures_in_a_row) == ("retrying", 1)


async def test_nothing_of_another_company_can_be_acted_on(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = (await subscribed(desk)).subscription.sub_id
    event_id = await sent(desk, tickets, sub_id)
    other = Desk(desk.client, desk.client.company_id + 10**6)
    entries = await desk.administrator.audit(sub_id)
    by_delivery = ("Resend", "AttemptNow", "RetryDelivery", "GetDelivery")
    by_subscription = (
        "SendTest", "GetSubscription", "UpdateSubscription", "RemoveSubscription", "CheckSignature", "RotateSecret",
        "PauseSubscription", "ResumeSubscription", "RetryParked", "GetDeliveryStats", "CountDeliveries",
        "GetRetryProgress", "ListDeliveries",
    )  # fmt: skip
    for rpc in (*by_delivery, *by_subscription):
        request_fields = getattr(pb, f"{rpc}Request").DESCRIPTOR.fields_by_name
        fields: dict[str, Any] = {"sub_id": sub_id, "event_id": event_id, "idempotency_key": key()}
        hidden = await refused(other(rpc, **{name: value for name, value in fields.items() if name in request_fields}))
        fields |= {"sub_id": 10**12}
        missing = await refused(other(rpc, **{name: value for name, value in fields.items() if name in request_fields}))
        assert (hidden.status, hidden.code, hidden.message) == (404, missing.code, missing.message), rpc
    assert not (await other("ListEvents")).events
    assert not (await other("ListDeliveriesOf", entity_type="ticket", entity_id=1)).deliveries
    assert not (await other("CountUndelivered")).subscriptions
    assert await desk.administrator.audit(sub_id) == entries
    assert len(receivers["receiver.test"].requests) == 1


async def test_a_repeat_while_the_first_is_under_way_is_refused_or_gets_the_same_attempt(
    desk: Desk, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = (await subscribed(desk)).subscription.sub_id
    event_id = await sent(desk, tickets, sub_id)
    ids = {"event_id": event_id, "sub_id": sub_id, "idempotency_key": key()}
    answers = await asyncio.gather(*(desk("Resend", **ids) for _ in range(3)), return_exceptions=True)
    codes = {answer.code for answer in answers if isinstance(answer, Refusal)}
    assert codes <= {"idempotency_in_progress"}
    assert len(receivers["receiver.test"].requests) == 2
