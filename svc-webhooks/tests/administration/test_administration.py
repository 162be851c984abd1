"""Pause, resume, rotate and retry, through the whole service (spec 2.12, 3.2, 6.3)."""

import asyncio
import contextlib
import datetime
import hashlib
import hmac
import itertools
import json
import uuid
from collections import Counter
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.days import made_at

from ..administrator import Administrator
from ..harness import HOUR, Client, Harness, Producer, operator, until
from ..receivers import Received, Receiver, answering, disconnecting

WAITING, SUCCEEDED, PARKED = pb.DELIVERY_STATE_WAITING, pb.DELIVERY_STATE_SUCCEEDED, pb.DELIVERY_STATE_PARKED
UNKNOWN = 10**12
SHOWN = ["schema_version", "entity_type", "entity_id", "destination_url", "events", "health", "secret_prefix"]
SHOWN += ["created_at", "source", "paused_at", "failures_in_a_row"]
SECOND = datetime.timedelta(seconds=1)


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@pytest.fixture
def administrator(client: Client) -> Administrator:
    return Administrator(client)


async def refused(call: Any) -> tuple[int, str, str]:
    with pytest.raises(Refusal) as caught:
        await call
    assert caught.value.message.endswith(".") and "key" not in caught.value.message
    return caught.value.status, caught.value.code, caught.value.message


def signs(request: Received, secret: str) -> bool:
    parts = dict(part.split("=", 1) for part in request.headers["service-signature"].split(","))
    signed = parts["t"].encode() + b"." + request.body
    return hmac.compare_digest(hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest(), parts["v1"])


async def parked(administrator: Administrator, tickets: Producer, receiver: Receiver) -> tuple[str, int]:
    """The event and subscription of a delivery whose ladder is used up; the receiver responds with 500."""
    sub_id = await administrator.subscribe()
    event_id = await tickets.ticket_created(administrator.client.company_id)
    receiver.answer = answering(500, b"out of order")
    await administrator.walk_the_ladder(now())
    return event_id, sub_id


# Pause and resume


async def test_a_paused_subscription_is_sent_nothing_until_it_is_resumed(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = await administrator.subscribe()
    before = now()
    subscription = await administrator.pause(sub_id)
    assert list(subscription) == SHOWN
    assert (subscription["entity_id"], subscription["health"]) == (sub_id, "paused")
    assert before <= datetime.datetime.fromisoformat(subscription["paused_at"]) <= now()
    await tickets.ticket_created(client.company_id)
    assert (await client.sweep())["attempted"] == 0
    (delivery,) = await client.deliveries(sub_id)
    assert (delivery.state, delivery.held_by, delivery.attempts[:]) == (WAITING, "paused", [])
    resumed = await administrator.resume(sub_id)
    assert (resumed["health"], resumed["paused_at"], resumed["failures_in_a_row"]) == ("healthy", None, 0)
    assert (await client.deliveries(sub_id))[0].held_by == ""
    assert (await client.sweep())["succeeded"] == 1
    assert len(receivers["receiver.test"].requests) == 1


async def test_the_ladder_stands_still_while_paused(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = await administrator.subscribe()
    await tickets.ticket_created(client.company_id)
    receivers["receiver.test"].answer = answering(500)
    start = now()
    await client.sweep(start)
    await administrator.pause(sub_id)
    for hours in (1, 2, 50, 100):
        assert (await client.sweep(start + hours * HOUR))["attempted"] == 0
    (delivery,) = await client.deliveries(sub_id)
    assert len(delivery.attempts) == 1
    assert delivery.due_at.ToDatetime(datetime.UTC) == start + HOUR
    await administrator.resume(sub_id)
    late = start + 200 * HOUR
    assert (await client.sweep(late))["failed"] == 1
    (delivery,) = await client.deliveries(sub_id)
    assert [attempt.number for attempt in delivery.attempts] == [1, 2]
    assert delivery.due_at.ToDatetime(datetime.UTC) == late + HOUR  # the distance from rung 1 to rung 2


async def test_pausing_and_resuming_twice_is_doing_it_once(administrator: Administrator) -> None:
    sub_id = await administrator.subscribe()
    first = await administrator.pause(sub_id)
    assert await administrator.pause(sub_id) == first
    resumed = await administrator.resume(sub_id)
    assert await administrator.resume(sub_id) == resumed
    assert resumed["health"] == "healthy"


async def test_an_attempt_under_way_at_the_pause_ends_on_record_and_resumes_nothing(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = await administrator.subscribe()
    go_on = asyncio.Event()

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await answering(200)(request, writer)

    receivers["receiver.test"].answer = answer
    await tickets.ticket_created(client.company_id)
    sweep = asyncio.create_task(client.sweep())
    await until(lambda: len(receivers["receiver.test"].requests) == 1)
    await administrator.pause(sub_id)
    go_on.set()
    assert (await sweep)["succeeded"] == 1
    assert await administrator.health(sub_id) == "paused"
    (delivery,) = await client.deliveries(sub_id)
    assert delivery.state == SUCCEEDED


async def test_a_resume_makes_healthy_whatever_was_before_and_counts_from_nothing(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    event_id, sub_id = await parked(administrator, tickets, receivers["receiver.test"])
    assert await administrator.health(sub_id) == "dead_lettered"
    resumed = await administrator.resume(sub_id)
    assert (resumed["health"], resumed["failures_in_a_row"]) == ("healthy", 0)
    await tickets.ticket_created(client.company_id)
    await client.sweep()
    assert await administrator.health(sub_id) == "retrying"
    await administrator.pause(sub_id)
    assert (await administrator.resume(sub_id))["failures_in_a_row"] == 0
    (delivery,) = await administrator.deliveries(sub_id, state=PARKED)
    assert delivery.event_id == event_id  # a resume retries nothing by itself


async def test_an_inactive_company_holds_its_deliveries_back(
    administrator: Administrator,
    client: Client,
    tickets: Producer,
    gateway: Producer,
    receivers: dict[str, Receiver],
) -> None:
    event_id, sub_id = await parked(administrator, tickets, receivers["receiver.test"])
    waiting = await tickets.ticket_created(client.company_id)
    await gateway.company(client.company_id, 1, active=False)
    assert (await client.sweep())["attempted"] == 0
    held_by = {delivery.event_id: delivery.held_by for delivery in await client.deliveries(sub_id)}
    assert held_by == {event_id: "", waiting: "company_inactive"}
    for call in (administrator.retry(event_id, sub_id), administrator.retry_parked(sub_id)):
        status, code, message = await refused(call)
        assert (status, code) == (422, "invalid_request") and "inactive" in message
    await administrator.pause(sub_id)
    assert {delivery.event_id: delivery.held_by for delivery in await client.deliveries(sub_id)}[waiting] == "paused"


@pytest.mark.parametrize("sub_id", [UNKNOWN, 0, -1])
async def test_what_is_not_there_is_not_found_and_the_sentence_fits_an_operator(
    administrator: Administrator, sub_id: int
) -> None:
    event_id = str(uuid.uuid4())
    for call in (
        administrator.pause(sub_id),
        administrator.resume(sub_id),
        administrator.rotate(sub_id),
        administrator.retry_parked(sub_id),
        administrator.deliveries(sub_id),
        administrator.retry(event_id, sub_id),
        administrator.event(event_id),
    ):
        assert (await refused(call))[:2] == (404, "not_found")


@pytest.mark.parametrize("event_id", ["", "x", "019AB0C0-0000-7000-8000-000000000000", "{" + str(uuid.uuid4()) + "}"])
async def test_an_event_id_that_is_none_is_not_found(administrator: Administrator, event_id: str) -> None:
    status, code, message = await refused(administrator.event(event_id))
    assert (status, code) == (404, "not_found") and message.startswith("No event with that id is kept")
    assert (await refused(administrator.retry(event_id, 1)))[:2] == (404, "not_found")


# Rotation


async def test_a_rotated_secret_signs_at_once_and_the_old_one_nothing_more(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    _, created, _ = await client.create()
    sub_id, old = created["entity_id"], created["secret"]
    await tickets.ticket_created(client.company_id)
    receivers["receiver.test"].answer = answering(500)
    start = now()
    await client.sweep(start)
    subscription, new = await administrator.rotate(sub_id)
    assert list(subscription) == SHOWN
    assert new != old and new.startswith("whsec_") and new.startswith(subscription["secret_prefix"])
    (listed,) = await client.subscriptions()
    assert listed == {**{key: created[key] for key in listed}, "health": "retrying", "secret_prefix": new[:12]}
    await client.sweep(start + HOUR)
    first, second = receivers["receiver.test"].requests
    assert first.body == second.body
    assert signs(first, old) and not signs(first, new)
    assert signs(second, new) and not signs(second, old)
    # One signature of each scheme: a rotation is a hard cut, so the old secret signs none beside it (spec 6.3).
    assert first.is_standard(old) and second.is_standard(new)
    assert [request.headers["webhook-signature"].count("v1,") for request in (first, second)] == [1, 1]
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == json.loads(first.body)["event_id"]


async def test_the_new_secret_is_in_no_log_and_in_no_row(
    administrator: Administrator, client: Client, database: Database, service: Harness
) -> None:
    sub_id = await administrator.subscribe()
    subscription, secret = await administrator.rotate(sub_id)
    async with database.connection() as connection:
        row = await connection.raw.fetchval("SELECT whole::text FROM subscription AS whole WHERE id = $1", sub_id)
    assert subscription["secret_prefix"] in row
    hidden_part = secret.removeprefix(subscription["secret_prefix"])
    assert hidden_part not in row and hidden_part.encode().hex() not in row
    assert hidden_part not in service.webhooks.log.read_text()


async def test_of_many_rotations_at_once_each_returned_secret_signed_and_the_last_one_does(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = await administrator.subscribe()
    answers = await asyncio.gather(*(administrator.rotate(sub_id) for _ in range(12)), return_exceptions=True)
    answered = [answer for answer in answers if isinstance(answer, tuple)]
    assert answered
    for answer in answers:
        if isinstance(answer, BaseException):
            assert isinstance(answer, Refusal) and answer.status == 422 and "rotate again" in answer.message
    (listed,) = await client.subscriptions()
    await tickets.ticket_created(client.company_id)
    await client.sweep()
    (request,) = receivers["receiver.test"].requests
    signing = [secret for _, secret in answered if signs(request, secret)]
    assert [secret[:12] for secret in signing] == [listed["secret_prefix"]]


async def test_without_a_vault_no_secret_is_rotated(
    service: Harness, administrator: Administrator, client: Client
) -> None:
    sub_id = await administrator.subscribe()
    (before,) = await client.subscriptions()
    service.webhooks.stop()
    vault = service.webhooks.environment["WEBHOOKS_VAULT_KEYS"]
    service.webhooks.environment["WEBHOOKS_VAULT_KEYS"] = ""
    try:
        service.webhooks.start()
        await service.webhooks.serving()
        for number in (sub_id, UNKNOWN):
            status, code, message = await refused(administrator.rotate(number))
            assert (status, code) == (503, "vault_unavailable") and "nothing was changed" in message
    finally:
        service.webhooks.stop()
        service.webhooks.environment["WEBHOOKS_VAULT_KEYS"] = vault
        service.webhooks.start()
        await service.webhooks.serving()
    assert await client.subscriptions() == [before]


# Retry


async def test_a_retry_is_a_recorded_attempt_of_its_own_and_parks_again_where_it_fails(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    event_id, sub_id = await parked(administrator, tickets, receivers["receiver.test"])
    delivery = await administrator.retry(event_id, sub_id)
    assert (delivery.state, delivery.HasField("due_at")) == (PARKED, False)
    assert [attempt.number for attempt in delivery.attempts] == [1, 2, 3, 4, 5, 6, 7]
    causes = [attempt.cause for attempt in delivery.attempts]
    assert causes == [pb.ATTEMPT_CAUSE_SWEEP] * 6 + [pb.ATTEMPT_CAUSE_RETRY]
    assert [attempt.state for attempt in delivery.attempts] == [WAITING] * 5 + [PARKED] * 2
    assert [attempt.HasField("due_at") for attempt in delivery.attempts] == [True] * 5 + [False] * 2
    assert {(attempt.status, attempt.response_excerpt) for attempt in delivery.attempts} == {(500, "out of order")}
    assert (await client.sweep(now() + 100 * HOUR))["attempted"] == 0
    assert await administrator.health(sub_id) == "dead_lettered"

    receivers["receiver.test"].answer = answering(204)
    delivery = await administrator.retry(event_id, sub_id)
    assert (delivery.state, delivery.attempts[-1].number, delivery.attempts[-1].status) == (SUCCEEDED, 8, 204)
    assert await administrator.health(sub_id) == "healthy"
    assert len({request.body for request in receivers["receiver.test"].requests}) == 1


async def test_a_retry_is_refused_of_what_is_not_parked_and_while_paused(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    event_id, sub_id = await parked(administrator, tickets, receivers["receiver.test"])
    other = await tickets.ticket_created(client.company_id)
    await client.sweep(now() - HOUR)  # stores the event; nothing is due
    await administrator.pause(sub_id)
    for call in (administrator.retry(event_id, sub_id), administrator.retry_parked(sub_id)):
        status, code, message = await refused(call)
        assert (status, code) == (422, "invalid_request") and "resume" in message
    assert [delivery.state for delivery in await client.deliveries(sub_id)] == [WAITING, PARKED]
    await administrator.resume(sub_id)
    status, code, message = await refused(administrator.retry(other, sub_id))
    assert (status, code) == (422, "invalid_request") and "parked" in message
    receivers["receiver.test"].answer = answering(200)
    await administrator.retry(event_id, sub_id)
    assert (await refused(administrator.retry(event_id, sub_id)))[0] == 422  # the retry succeeded
    assert (await refused(administrator.retry(event_id, UNKNOWN)))[0] == 404


async def test_two_retries_at_once_are_one_attempt(
    administrator: Administrator, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    event_id, sub_id = await parked(administrator, tickets, receivers["receiver.test"])
    go_on = asyncio.Event()

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await answering(500)(request, writer)

    receivers["receiver.test"].answer = answer
    receivers["receiver.test"].requests.clear()
    retries = [asyncio.create_task(administrator.retry(event_id, sub_id)) for _ in range(6)]
    # One that comes after the attempt's end would be a retry of its own.
    await until(lambda: sum(retry.done() for retry in retries) == len(retries) - 1)
    await until(lambda: len(receivers["receiver.test"].requests) == 1)
    go_on.set()
    outcomes = await asyncio.gather(*retries, return_exceptions=True)
    (delivery,) = (outcome for outcome in outcomes if isinstance(outcome, pb.Delivery))
    assert [outcome.status for outcome in outcomes if isinstance(outcome, Refusal)] == [422] * 5
    assert len(receivers["receiver.test"].requests) == 1
    assert delivery.attempts[-1].number == 7


async def test_a_retry_that_a_sweep_takes_first_is_answered_after_that_attempt(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    """The delivery is attempted once, whichever process claims it, and the response includes that attempt."""
    event_id, sub_id = await parked(administrator, tickets, receivers["receiver.test"])
    receivers["receiver.test"].answer = answering(200)
    receivers["receiver.test"].requests.clear()
    sweeps = [asyncio.create_task(client.sweep()) for _ in range(3)]
    delivery = await administrator.retry(event_id, sub_id)
    await asyncio.gather(*sweeps)
    assert (delivery.state, len(delivery.attempts)) == (SUCCEEDED, 7)
    assert len(receivers["receiver.test"].requests) == 1


async def test_all_that_is_parked_gets_one_attempt_each_by_the_next_sweep(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id, other = await administrator.subscribe("/broken"), await administrator.subscribe("/as-broken")
    for number in range(5):
        await tickets.ticket_created(client.company_id, number)
    receivers["receiver.test"].answer = answering(500)
    await administrator.walk_the_ladder(now())
    late = now() + 30 * HOUR
    assert await administrator.retry_parked(sub_id) == 5
    assert await administrator.retry_parked(sub_id) == 0
    assert [delivery.state for delivery in await client.deliveries(sub_id)] == [WAITING] * 5
    assert await client.sweep(late) == {"attempted": 5, "succeeded": 0, "failed": 5, "parked": 5}
    assert await client.sweep(late + 100 * HOUR) == {"attempted": 0, "succeeded": 0, "failed": 0, "parked": 0}
    for delivery in await client.deliveries(sub_id):
        causes = [attempt.cause for attempt in delivery.attempts]
        assert causes == [pb.ATTEMPT_CAUSE_SWEEP] * 6 + [pb.ATTEMPT_CAUSE_RETRY]
    assert {len(delivery.attempts) for delivery in await client.deliveries(other)} == {6}
    receivers["receiver.test"].answer = answering(200)
    assert await administrator.retry_parked(sub_id) == 5
    assert (await client.sweep())["succeeded"] == 5
    assert (await administrator.health(sub_id), await administrator.health(other)) == ("healthy", "dead_lettered")


async def test_more_parked_deliveries_than_one_statement_takes_become_due(
    administrator: Administrator, client: Client, tickets: Producer, database: Database
) -> None:
    sub_id, other = await administrator.subscribe(), await administrator.subscribe("/other")
    await client.sweep()  # makes the partitions
    async with database.connection() as connection:
        for subscription_id in (sub_id, other):
            await connection.raw.execute(MANY_PARKED, subscription_id, 2500)
    assert await administrator.retry_parked(sub_id) == 2500
    async with database.connection() as connection:
        states = await connection.raw.fetch("SELECT subscription_id, state, count(*) FROM delivery GROUP BY 1, 2")
    assert {tuple(row) for row in states} == {(sub_id, "waiting", 2500), (other, "parked", 2500)}


MANY_PARKED = """
INSERT INTO delivery (event_id, subscription_id, state, attempts, rung, settled_at)
SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n), 19, '0'))::uuid, $1,
       'parked', 6, 6, now()
FROM generate_series(1, $2::int) n
"""


# The audit log


async def test_each_change_is_on_record_before_and_after_without_a_secret_or_a_url(
    administrator: Administrator, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    event_id, sub_id = await parked(administrator, tickets, receivers["receiver.test"])
    (subscription,) = [listed for listed in await administrator.client.subscriptions() if listed["entity_id"] == sub_id]
    desk = administrator.of(administrator.client.company_id)
    await administrator.retry(event_id, sub_id)
    await desk.retry_parked(sub_id)
    await desk.pause(sub_id)
    await desk.pause(sub_id)
    await desk.resume(sub_id)
    await desk.resume(sub_id)
    rotated, secret = await desk.rotate(sub_id)
    entries = await administrator.audit(sub_id)
    assert entries == [
        (
            "operator",
            "delivery.retried",
            {"state": "parked"},
            {"state": "waiting", "event_id": event_id},
        ),
        ("administrator:7", "deliveries.retried", {"state": "parked"}, {"state": "waiting", "deliveries": 1}),
        (
            "administrator:7",
            "subscription.paused",
            {"health": "dead_lettered", "failures_in_a_row": 7},
            {"health": "paused", "failures_in_a_row": 0},
        ),
        ("administrator:7", "subscription.resumed", {"health": "paused"}, {"health": "healthy"}),
        (
            "administrator:7",
            "subscription.secret_rotated",
            {"secret_prefix": subscription["secret_prefix"]},
            {"secret_prefix": rotated["secret_prefix"]},
        ),
    ]
    assert secret not in str(entries) and "https" not in str(entries)
    assert await desk.audit(sub_id) == entries


async def test_an_administrator_finds_nothing_of_another_company(
    administrator: Administrator, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    event_id, sub_id = await parked(administrator, tickets, receivers["receiver.test"])
    stranger = administrator.of(administrator.client.company_id + 1)
    for call, unknown in (
        (stranger.pause(sub_id), stranger.pause(UNKNOWN)),
        (stranger.resume(sub_id), stranger.resume(UNKNOWN)),
        (stranger.rotate(sub_id), stranger.rotate(UNKNOWN)),
        (stranger.retry_parked(sub_id), stranger.retry_parked(UNKNOWN)),
        (stranger.deliveries(sub_id), stranger.deliveries(UNKNOWN)),
        (stranger.retry(event_id, sub_id), stranger.retry(event_id, UNKNOWN)),
        (stranger.event(event_id), stranger.event(str(uuid.uuid4()))),
    ):
        answered = await refused(call)
        assert answered[:2] == (404, "not_found")
        assert answered == await refused(unknown)
    assert list((await stranger.undelivered()).deliveries) == []
    assert await stranger.audit(sub_id) == await administrator.audit(sub_id) == []
    assert await administrator.health(sub_id) == "dead_lettered"

    desk = administrator.of(administrator.client.company_id)
    assert (await desk.event(event_id)).company_id == administrator.client.company_id
    assert [delivery.event_id for delivery in await desk.deliveries(sub_id)] == [event_id]
    assert [delivery.event_id for delivery in (await desk.undelivered()).deliveries] == [event_id]


async def test_an_event_is_shown_with_its_bytes_and_each_subscriptions_attempts(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    good, bad = await administrator.subscribe("/hook", "second.test"), await administrator.subscribe()
    receivers["receiver.test"].answer = disconnecting
    occurred_at = now() - SECOND
    event_id = await tickets.ticket_created(client.company_id, 17, occurred_at=occurred_at, request_id="req-9")
    at = now()
    await client.sweep(at)
    event = await administrator.event(event_id)
    assert (event.event_id, event.event, event.company_id) == (event_id, "ticket.created", client.company_id)
    assert (event.entity_id, event.request_id) == (17, "req-9")
    assert event.occurred_at.ToDatetime(datetime.UTC) == occurred_at
    assert occurred_at < event.stored_at.ToDatetime(datetime.UTC) < now() + SECOND
    assert event.body == receivers["second.test"].requests[0].body
    first, second = event.deliveries
    assert (first.sub_id, first.destination_url, first.state) == (good, "https://second.test/hook", SUCCEEDED)
    assert (second.sub_id, second.state, second.held_by) == (bad, WAITING, "")
    (attempt,) = second.attempts
    assert (attempt.number, attempt.error, attempt.state, attempt.cause) == (
        1,
        "disconnected",
        WAITING,
        pb.ATTEMPT_CAUSE_SWEEP,
    )
    assert not attempt.HasField("status")
    assert attempt.due_at.ToDatetime(datetime.UTC) == at + HOUR == second.due_at.ToDatetime(datetime.UTC)
    midnight = made_at(uuid.UUID(event_id)).replace(hour=0, minute=0, second=0, microsecond=0)
    assert first.expires_at.ToDatetime(datetime.UTC) == midnight + datetime.timedelta(days=31)
    assert await client.deliveries(bad) == [second]


async def test_an_event_without_subscribers_has_no_deliveries(
    administrator: Administrator, client: Client, tickets: Producer
) -> None:
    event_id = await tickets.ticket_created(client.company_id)
    await client.sweep()
    event = await administrator.event(event_id)
    assert (event.event_id, event.deliveries[:]) == (event_id, [])


async def test_an_excerpt_that_is_no_text_is_shown_as_far_as_it_can_be(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = await administrator.subscribe()
    receivers["receiver.test"].answer = answering(500, b"\xff\x00\x1b[31mred" + b"\xc3" * 5000)
    await tickets.ticket_created(client.company_id)
    await client.sweep()
    (delivery,) = await client.deliveries(sub_id)
    assert delivery.attempts[0].response_excerpt == "\ufffd\x00\x1b[31mred" + "\ufffd" * (4096 - 10)
    (listed,) = (await administrator.undelivered()).deliveries
    assert listed.attempts[0].response_excerpt == "\ufffd\x00\x1b[31mred" + "\ufffd" * (512 - 10)


# Lists


async def test_deliveries_are_listed_by_state_and_page_by_page(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = await administrator.subscribe()
    receivers["receiver.test"].answer = answering(500)
    broken = [await tickets.ticket_created(client.company_id, number) for number in range(3)]
    start = now()
    await administrator.walk_the_ladder(start)
    receivers["receiver.test"].answer = answering(200)
    good = [await tickets.ticket_created(client.company_id, number) for number in range(3)]
    await client.sweep()
    await administrator.pause(sub_id)
    waiting = [await tickets.ticket_created(client.company_id, number) for number in range(2)]
    await client.sweep()

    async def ids(**fields: Any) -> list[str]:
        return [delivery.event_id for delivery in await administrator.deliveries(sub_id, **fields)]

    newest = sorted([*broken, *good, *waiting], reverse=True)
    assert await ids() == newest
    assert await ids(state=PARKED) == sorted(broken, reverse=True)
    assert await ids(state=SUCCEEDED) == sorted(good, reverse=True)
    assert await ids(state=WAITING) == sorted(waiting, reverse=True)
    both: dict[Any, list[str]] = {0: newest, SUCCEEDED: sorted(good, reverse=True)}
    for state, expected in both.items():
        paged: list[str] = []
        while page := await ids(state=state, limit=2, before_event_id=paged[-1] if paged else ""):
            paged += page
        assert paged == expected
    assert (await refused(administrator.deliveries(sub_id, before_event_id="x")))[:2] == (400, "invalid_request")
    assert (await refused(administrator.deliveries(sub_id, state=9)))[:2] == (422, "invalid_request")


async def test_what_was_not_delivered_is_listed_for_a_company_oldest_first(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    early, late = await administrator.subscribe("/one"), await administrator.subscribe("/two")
    stranger = Administrator(client.of(client.company_id + 700))
    await stranger.subscribe()
    receivers["receiver.test"].answer = answering(500)
    day = datetime.timedelta(days=1)
    event_ids = [await tickets.ticket_created(client.company_id, made_at=now() - days * day) for days in (29, 20, 1)]
    await tickets.ticket_created(stranger.client.company_id)
    await administrator.walk_the_ladder(now())
    event_ids.append(await tickets.ticket_created(client.company_id))
    await administrator.pause(late)
    await client.sweep()
    expected = [(event_id, sub_id) for event_id in event_ids for sub_id in (early, late)]

    async def keys(**fields: Any) -> list[tuple[str, int]]:
        """All pages of three rows each."""
        listed_keys: list[tuple[str, int]] = []
        while True:
            event_id, sub_id = listed_keys[-1] if listed_keys else ("", 0)
            page = await administrator.undelivered(limit=3, after_event_id=event_id, after_sub_id=sub_id, **fields)
            listed_keys += [(delivery.event_id, delivery.sub_id) for delivery in page.deliveries]
            if not page.more:
                return listed_keys
            assert len(page.deliveries) == 3

    assert await keys() == expected
    assert await keys(state=PARKED) == expected[:6]
    assert await keys(state=WAITING) == expected[6:]
    assert await keys(expires_before=now() + 3 * day) == expected[:2]
    assert await keys(expires_before=now()) == []
    assert await keys(expires_before=datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)) == []
    assert await keys(expires_before=datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)) == expected
    (*_, last) = (await administrator.undelivered()).deliveries
    assert (last.sub_id, last.held_by, last.attempts[:]) == (late, "paused", [])
    (first, *_) = (await administrator.undelivered()).deliveries
    assert [attempt.number for attempt in first.attempts] == [6]
    goes = first.expires_at.ToDatetime(datetime.UTC)
    assert goes == made_at(uuid.UUID(event_ids[0])).replace(hour=0, minute=0, second=0, microsecond=0) + 31 * day
    assert (await refused(administrator.undelivered(state=SUCCEEDED)))[:2] == (422, "invalid_request")
    assert (await refused(administrator.undelivered(after_event_id="x")))[:2] == (400, "invalid_request")


async def test_an_administrator_at_work_beside_sweeps_neither_doubles_nor_loses_an_attempt(
    administrator: Administrator, client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = await administrator.subscribe()
    events = [await tickets.ticket_created(client.company_id, number) for number in range(30)]
    turn = itertools.count()

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await answering(200 if next(turn) % 5 == 0 else 500)(request, writer)

    receivers["receiver.test"].answer = answer
    start = now()

    async def sweeping() -> None:
        for hours in range(0, 30, 2):
            await client.sweep(start + hours * HOUR)

    async def administering() -> None:
        for number in range(12):
            await (administrator.pause(sub_id) if number % 3 == 0 else administrator.resume(sub_id))
            with contextlib.suppress(Refusal):
                await (administrator.rotate(sub_id) if number % 4 else administrator.retry_parked(sub_id))
            for delivery in await administrator.deliveries(sub_id, state=PARKED, limit=3):
                with contextlib.suppress(Refusal):
                    await administrator.retry(delivery.event_id, sub_id)

    await asyncio.gather(sweeping(), sweeping(), administering(), administering())
    receivers["receiver.test"].answer = answering(200)
    await administrator.resume(sub_id)
    await administrator.retry_parked(sub_id)
    await client.sweep(start + 100 * HOUR)
    deliveries = {delivery.event_id: delivery for delivery in await administrator.deliveries(sub_id, limit=200)}
    assert deliveries.keys() == set(events)
    requests = Counter(json.loads(request.body)["event_id"] for request in receivers["receiver.test"].requests)
    for event_id, swept in deliveries.items():
        assert swept.state == SUCCEEDED
        assert [attempt.number for attempt in swept.attempts] == list(range(1, requests[event_id] + 1))
        assert [attempt.error for attempt in swept.attempts if attempt.state == SUCCEEDED] == [""]
    assert await administrator.health(sub_id) == "healthy"


async def test_an_instant_that_no_calendar_has_is_refused(administrator: Administrator, client: Client) -> None:
    seconds = 10**15
    undelivered = pb.ListUndeliveredRequest(state=PARKED)
    undelivered.expires_before.seconds = seconds
    sweep = pb.SweepDeliveriesRequest()
    sweep.now.seconds = seconds
    assert (await refused(client.call(undelivered, administrator.who)))[0] == 400
    assert (await refused(client.call(sweep, operator())))[0] == 400
