"""From a committed event to a signed request, through the whole service (spec 6.2 to 6.4)."""

import asyncio
import datetime
import hashlib
import hmac
import json
import time
import uuid
from typing import Any

import grpc
import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.queries.claims import ClaimedDelivery
from svc_webhooks.dispatch.queries.recording import Attempt
from svc_webhooks.dispatch.recorder import Recorder
from svc_webhooks.events.partitions import Partitions
from svc_webhooks.http_client.client import Outcome
from svc_webhooks.rules import deliveries as rules
from testkit.processes import free_port

from ..days_of_events import left
from ..harness import HOUR, Client, Harness, Process, Producer, until
from ..receivers import Received, Receiver, answering, disconnecting, garbage, gigabyte, hanging, trickling

SECOND = datetime.timedelta(seconds=1)
NOTHING = {"attempted": 0, "succeeded": 0, "failed": 0, "parked": 0}
ONE_FAILED = {"attempted": 1, "succeeded": 0, "failed": 1, "parked": 0}
ONE_SUCCEEDED = {"attempted": 1, "succeeded": 1, "failed": 0, "parked": 0}


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


async def subscribe(client: Client, host: str = "receiver.test", *events: str) -> tuple[int, str]:
    """The subscription's id and secret."""
    body = {"destination_url": f"https://{host}/hook?a=b", "events": list(events) or ["ticket.created"]}
    _, subscription, _ = await client.create(body)
    return subscription["entity_id"], subscription["secret"]


async def health(client: Client, sub_id: int) -> str:
    (subscription,) = [each for each in await client.subscriptions() if each["entity_id"] == sub_id]
    text: str = subscription["health"]
    return text


async def test_an_event_is_delivered_signed_with_seven_keys_and_its_data_byte_for_byte(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    _, secret = await subscribe(client)
    data = '{"schema_version":1,"entity_id":5,"title":"Léa\\u2028 \\"x\\"","n":1.50}'.encode()
    occurred_at = datetime.datetime(2026, 5, 1, 10, 0, 0, 123456, datetime.UTC)
    event_id = await tickets.ticket_created(client.company_id, 5, data=data, occurred_at=occurred_at)
    assert await client.sweep() == ONE_SUCCEEDED
    (request,) = receivers["receiver.test"].requests
    assert request.request_line == "POST /hook?a=b HTTP/1.1"
    assert request.body == (
        b'{"schema_version":1,"event_id":"%s","event":"ticket.created","occurred_at":"2026-05-01T10:00:00.123456Z",'
        b'"company_id":%d,"data":%s,"change":null}' % (event_id.encode(), client.company_id, data)
    )
    timestamp, digest = _signature(request)
    assert abs(timestamp - time.time()) < 10
    signed = b"%d." % timestamp + request.body
    assert digest == hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-request-id"] == "req-1"
    assert request.headers["service-attempt"] == "1"
    assert request.headers["user-agent"].startswith("Makeready-Webhooks/")
    assert request.headers["host"] == "receiver.test"


@pytest.mark.parametrize("authority_part", ["receiver.test.", "receiver.test:", "RECEIVER.test.:443"])
async def test_a_destination_with_a_final_dot_or_an_empty_port_is_stored_as_sent_and_delivered(
    client: Client, tickets: Producer, receivers: dict[str, Receiver], authority_part: str
) -> None:
    body = {"destination_url": f"https://{authority_part}/dotted", "events": ["ticket.created"]}
    status, created, _ = await client.create(body, key="one")
    assert (status, created["destination_url"]) == (201, body["destination_url"])
    assert (await client.create(body, key="one"))[2]
    # The fingerprint is the destination as it was sent (spec 4.11).
    with pytest.raises(Refusal) as refused:
        await client.create(body | {"destination_url": "https://receiver.test/dotted"}, key="one")
    assert refused.value.code == "idempotency_mismatch"
    await tickets.ticket_created(client.company_id)
    assert await client.sweep() == ONE_SUCCEEDED
    (request,) = receivers["receiver.test"].requests
    assert (request.request_line, request.headers["host"]) == ("POST /dotted HTTP/1.1", "receiver.test")


async def test_an_event_of_a_record_that_is_dated_into_the_future_does_not_wait_for_that_date(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    await subscribe(client)
    occurred_at = datetime.datetime(2900, 5, 1, tzinfo=datetime.UTC)
    await tickets.ticket_created(client.company_id, occurred_at=occurred_at)
    assert await client.sweep() == ONE_SUCCEEDED
    (request,) = receivers["receiver.test"].requests
    assert b'"occurred_at":"2900-05-01T00:00:00.000000Z"' in request.body


def _signature(request: Received) -> tuple[int, str]:
    timestamp, digest = request.headers["service-signature"].split(",")
    assert timestamp.startswith("t=") and digest.startswith("v1=")
    return int(timestamp[2:]), digest[3:]


async def test_a_success_is_not_sent_again(client: Client, tickets: Producer, receivers: dict[str, Receiver]) -> None:
    sub_id, _ = await subscribe(client)
    await tickets.ticket_created(client.company_id)
    await client.sweep()
    assert await client.sweep(now() + 48 * HOUR) == NOTHING
    assert len(receivers["receiver.test"].requests) == 1
    (delivery,) = await client.deliveries(sub_id)
    assert delivery.state == pb.DELIVERY_STATE_SUCCEEDED
    assert not delivery.HasField("due_at")
    (attempt,) = delivery.attempts
    assert (attempt.number, attempt.status, attempt.error, attempt.response_excerpt) == (1, 200, "", "thanks")


async def test_an_event_goes_to_the_subscriptions_of_its_company_that_name_it(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    await subscribe(client, "receiver.test", "ticket.created", "vendor.hold")
    await subscribe(client, "receiver.test", "vendor.hold")
    await subscribe(client.of(client.company_id + 500))
    await subscribe(client, "second.test")
    await tickets.ticket_created(client.company_id)
    assert (await client.sweep())["succeeded"] == 2
    assert len(receivers["receiver.test"].requests) == len(receivers["second.test"].requests) == 1


async def test_an_event_is_matched_to_the_subscriptions_that_exist_when_it_is_stored(
    client: Client, tickets: Producer, database: Database
) -> None:
    await tickets.ticket_created(client.company_id)
    assert await client.sweep() == NOTHING
    await subscribe(client)
    assert await client.sweep(now() + HOUR) == NOTHING
    async with database.connection() as connection:
        assert await connection.raw.fetchval("SELECT count(*) FROM event WHERE company_id = $1", client.company_id) == 1


async def test_a_failed_attempt_is_retried_up_the_ladder_with_the_same_bytes_and_then_parked(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id, _ = await subscribe(client)
    receivers["receiver.test"].answer = answering(500, b"out of order")
    event_id = await tickets.ticket_created(client.company_id)
    first = now()
    assert await client.sweep(first) == ONE_FAILED
    assert await health(client, sub_id) == "retrying"
    for number, hours in enumerate((1, 2, 4, 8), start=2):
        assert await client.sweep(first + hours * HOUR - SECOND) == NOTHING
        assert await client.sweep(first + hours * HOUR) == ONE_FAILED, number
    (delivery,) = await client.deliveries(sub_id)
    assert delivery.due_at.ToDatetime(datetime.UTC) == first + 24 * HOUR
    assert await client.sweep(first + 24 * HOUR) == ONE_FAILED | {"parked": 1}
    assert await client.sweep(first + 1000 * HOUR) == NOTHING
    assert await health(client, sub_id) == "dead_lettered"

    (delivery,) = await client.deliveries(sub_id)
    assert (delivery.event_id, delivery.state) == (event_id, pb.DELIVERY_STATE_PARKED)
    assert [attempt.number for attempt in delivery.attempts] == [1, 2, 3, 4, 5, 6]
    assert {(a.status, a.error, a.response_excerpt) for a in delivery.attempts} == {(500, "status", "out of order")}
    requests = receivers["receiver.test"].requests
    assert len({request.body for request in requests}) == 1
    assert [request.headers["service-attempt"] for request in requests] == ["1", "2", "3", "4", "5", "6"]
    for request in requests:  # signed with the real clock, not with the sweeps' `now`
        timestamp, _ = _signature(request)
        assert abs(timestamp - time.time()) < 30


async def test_after_an_outage_one_attempt_a_sweep_and_the_later_rungs_keep_their_distance(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id, _ = await subscribe(client)
    receivers["receiver.test"].answer = answering(503)
    await tickets.ticket_created(client.company_id)
    first = now()
    await client.sweep(first)
    late = first + 26 * HOUR
    assert await client.sweep(late) == ONE_FAILED
    assert await client.sweep(late) == NOTHING
    (delivery,) = await client.deliveries(sub_id)
    assert delivery.due_at.ToDatetime(datetime.UTC) == late + HOUR


async def test_a_success_heals(client: Client, tickets: Producer, receivers: dict[str, Receiver]) -> None:
    sub_id, _ = await subscribe(client)
    receivers["receiver.test"].answer = answering(500)
    await tickets.ticket_created(client.company_id)
    first = now()
    await client.sweep(first)
    assert await health(client, sub_id) == "retrying"
    receivers["receiver.test"].answer = answering(204)
    assert await client.sweep(first + HOUR) == ONE_SUCCEEDED
    assert await health(client, sub_id) == "healthy"


async def test_failures_of_five_sweeps_in_a_row_dead_letter_and_deliveries_go_on(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id, _ = await subscribe(client)
    receivers["receiver.test"].answer = answering(500)
    for _ in range(25):
        await tickets.ticket_created(client.company_id)
    first = now()
    assert (await client.sweep(first))["failed"] == 25  # one sweep, however many deliveries
    for hours in (1, 2, 4):
        assert await health(client, sub_id) == "retrying"
        assert (await client.sweep(first + hours * HOUR))["failed"] == 25
    assert await health(client, sub_id) == "retrying"
    assert (await client.sweep(first + 8 * HOUR))["failed"] == 25
    assert await health(client, sub_id) == "dead_lettered"
    receivers["receiver.test"].answer = answering(200)
    assert (await client.sweep(first + 24 * HOUR))["succeeded"] == 25
    assert await health(client, sub_id) == "healthy"


@pytest.mark.parametrize("arrives_first", [True, False])
async def test_a_sweep_in_which_a_delivery_arrives_breaks_the_row(
    client: Client, tickets: Producer, receivers: dict[str, Receiver], arrives_first: bool
) -> None:
    """Also if the others fail after it."""
    sub_id, _ = await subscribe(client)
    receiver = receivers["receiver.test"]
    for _ in range(3):
        await tickets.ticket_created(client.company_id)
    first = now()
    answered: list[int] = []

    async def one_arrives(request: Received, writer: asyncio.StreamWriter) -> None:
        answered.append(200 if len(answered) == (0 if arrives_first else 2) else 500)
        await answering(answered[-1])(request, writer)

    async def sweep(hour: int, failed: int) -> None:
        assert (await client.sweep(first + hour * HOUR))["failed"] == failed

    receiver.answer = answering(500)
    for hour in (0, 1, 2, 4):
        await sweep(hour, 3)
    receiver.answer = one_arrives
    await sweep(8, 2)
    assert sorted(answered) == [200, 500, 500] and await health(client, sub_id) in ("retrying", "healthy")
    receiver.answer = answering(500)
    for hour in (9, 10, 11, 12):
        await tickets.ticket_created(client.company_id)
        await client.sweep(first + hour * HOUR)
        assert await health(client, sub_id) == "retrying"
    await tickets.ticket_created(client.company_id)
    await client.sweep(first + 13 * HOUR)
    assert await health(client, sub_id) == "dead_lettered"


async def test_deliveries_of_a_paused_subscription_wait_and_the_ladder_stands_still(
    client: Client, tickets: Producer, database: Database
) -> None:
    sub_id, _ = await subscribe(client)
    async with database.connection() as connection:
        await connection.raw.execute(
            "UPDATE subscription SET health = 'paused', paused_at = now() WHERE id = $1", sub_id
        )
        await tickets.ticket_created(client.company_id)
        assert await client.sweep(now() + 100 * HOUR) == NOTHING
        await connection.raw.execute(
            "UPDATE subscription SET health = 'healthy', paused_at = NULL WHERE id = $1", sub_id
        )
    assert await client.sweep() == ONE_SUCCEEDED


async def test_deliveries_of_an_inactive_company_wait(client: Client, tickets: Producer, gateway: Producer) -> None:
    await subscribe(client)
    await gateway.company(client.company_id, 2, active=False)
    await gateway.company(client.company_id, 1, active=True)  # older and late: the higher version wins
    await tickets.ticket_created(client.company_id)
    assert await client.sweep() == NOTHING
    await gateway.company(client.company_id, 3, active=True)
    assert await client.sweep() == ONE_SUCCEEDED


async def test_what_happened_after_the_slot_waits_for_the_next(client: Client, tickets: Producer) -> None:
    await subscribe(client)
    await tickets.ticket_created(client.company_id)
    assert await client.sweep(now() - HOUR) == NOTHING
    assert await client.sweep(now().replace(microsecond=0)) == ONE_SUCCEEDED


@pytest.mark.parametrize(
    ("answer", "error", "status"),
    [
        (garbage, "protocol", None),
        (disconnecting, "disconnected", None),
        (answering(301, b"", "Location: https://second.test/"), "redirect", 301),
        (answering(410), "status", 410),
    ],
    ids=["garbage", "disconnect", "redirect", "gone"],
)
async def test_a_misbehaving_receiver_is_on_record(
    client: Client, tickets: Producer, receivers: dict[str, Receiver], answer: Any, error: str, status: int | None
) -> None:
    sub_id, _ = await subscribe(client)
    receivers["receiver.test"].answer = answer
    await tickets.ticket_created(client.company_id)
    assert await client.sweep() == ONE_FAILED
    ((attempt,),) = [delivery.attempts for delivery in await client.deliveries(sub_id)]
    assert (attempt.error, attempt.status if attempt.HasField("status") else None) == (error, status)
    assert receivers["second.test"].requests == []


@pytest.mark.parametrize("host", ["expired.test", "renamed.test", "selfsigned.test"])
async def test_a_bad_certificate_gets_nothing(
    client: Client, tickets: Producer, receivers: dict[str, Receiver], host: str
) -> None:
    sub_id, _ = await subscribe(client, host)
    await tickets.ticket_created(client.company_id)
    assert await client.sweep() == ONE_FAILED
    assert receivers[host].requests == []
    ((attempt,),) = [delivery.attempts for delivery in await client.deliveries(sub_id)]
    assert attempt.error == "certificate"


async def test_slow_receivers_end_at_the_deadline_and_delay_no_other(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    receivers["receiver.test"].answer = _by_path({"/hang": hanging, "/trickle": trickling, "/huge": gigabyte})
    subscribed = {}
    for path in ("/hang", "/trickle", "/huge"):
        body = {"destination_url": f"https://receiver.test{path}", "events": ["ticket.created"]}
        subscribed[path] = (await client.create(body))[1]["entity_id"]
    await subscribe(client, "second.test")
    for _ in range(3):
        await tickets.ticket_created(client.company_id)
    sweep = asyncio.create_task(client.sweep())
    await until(lambda: len(receivers["second.test"].requests) == 3)
    assert not sweep.done()
    assert await sweep == {"attempted": 12, "succeeded": 6, "failed": 6, "parked": 0}
    for path in ("/hang", "/trickle"):
        for delivery in await client.deliveries(subscribed[path]):
            (attempt,) = delivery.attempts
            assert attempt.error == "timeout"
            assert attempt.duration_milliseconds >= 9_900
    for delivery in await client.deliveries(subscribed["/huge"]):
        assert [(a.status, a.error, len(a.response_excerpt)) for a in delivery.attempts] == [(200, "", 4096)]


def _by_path(answers: dict[str, Any]) -> Any:
    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await answers[request.request_line.split()[1]](request, writer)

    return answer


async def test_a_backlog_larger_than_a_turn_is_emptied_in_one_sweep(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    await subscribe(client)
    await subscribe(client, "second.test")
    before = {host: receiver.connections for host, receiver in receivers.items()}
    ids = await asyncio.gather(*(tickets.ticket_created(client.company_id, n) for n in range(100)))
    assert await client.sweep() == {"attempted": 200, "succeeded": 200, "failed": 0, "parked": 0}
    for host in ("receiver.test", "second.test"):
        assert sorted(json.loads(request.body)["event_id"] for request in receivers[host].requests) == sorted(ids)
        assert receivers[host].connections - before[host] <= 32  # reused connections, not one for each request


async def test_two_sweeps_at_once_send_each_delivery_once(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    await subscribe(client)
    for number in range(40):
        await tickets.ticket_created(client.company_id, number)
    at = now()
    counts = await asyncio.gather(*(client.sweep(at) for _ in range(3)))
    assert sum(count["succeeded"] for count in counts) == 40
    assert len(receivers["receiver.test"].requests) == 40


async def test_an_event_taken_in_twice_is_one_event(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    """NATS and the outbox both deliver the event, and each sweep reconciles again."""
    await subscribe(client)
    await tickets.ticket_created(client.company_id)
    await asyncio.gather(client.sweep(), client.sweep(), client.sweep())
    await asyncio.sleep(0.5)
    await client.sweep(now() + HOUR)
    assert len(receivers["receiver.test"].requests) == 1


async def test_an_event_of_a_day_that_is_over_is_dropped_and_counted(
    client: Client, tickets: Producer, database: Database, service: Harness
) -> None:
    await subscribe(client)
    long_ago = now() - 31 * 24 * HOUR
    await tickets.ticket_created(client.company_id, made_at=long_ago)
    recent = now() - 20 * 24 * HOUR
    kept = await tickets.ticket_created(client.company_id, made_at=recent)
    assert await client.sweep() == ONE_SUCCEEDED
    async with database.connection() as connection:
        rows = await connection.raw.fetch("SELECT event_id FROM event WHERE company_id = $1", client.company_id)
    assert [row["event_id"] for row in rows] == [uuid.UUID(kept)]
    assert "event_too_old" in service.webhooks.log.read_text()


async def test_after_the_days_were_dropped_events_are_stored_as_before(
    client: Client, tickets: Producer, database: Database
) -> None:
    """The process has cached that today's partitions exist; another process, or this one, drops them."""
    sub_id, _ = await subscribe(client)
    await tickets.ticket_created(client.company_id)
    assert await client.sweep() == ONE_SUCCEEDED
    assert await client.forget(now()) == 0
    assert len(await client.deliveries(sub_id)) == 1
    ahead = now() + 40 * 24 * HOUR
    for drop in (client.forget, Partitions(database, now).drop):
        assert await drop(ahead) > 0
        assert await client.deliveries(sub_id) == []
        await tickets.ticket_created(client.company_id)
        assert await client.sweep() == ONE_SUCCEEDED
        assert len(await client.deliveries(sub_id)) == 1


async def test_an_operator_sees_that_a_long_statement_delays_the_drop_of_a_day(
    client: Client, tickets: Producer, database: Database
) -> None:
    await subscribe(client)
    made_at = now() - 20 * 24 * HOUR
    day = f"{made_at:%Y%m%d}"
    await tickets.ticket_created(client.company_id, made_at=made_at)
    await client.sweep()
    as_of = made_at + 31 * 24 * HOUR
    async with database.transaction() as connection:
        await connection.raw.execute("SELECT FROM delivery")
        with pytest.raises(Refusal) as refused:
            await client.forget(as_of)
    assert refused.value.code == "days_held_up"
    assert day in (await left(database))["delivery"]
    await client.forget(as_of)  # at a full hour the service may have finished the drop before
    assert day not in (await left(database))["delivery"]


async def test_a_request_id_that_is_no_header_is_left_out(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    await subscribe(client)
    await tickets.ticket_created(client.company_id, request_id="a\r\nX-Injected: 1")
    assert await client.sweep() == ONE_SUCCEEDED
    (request,) = receivers["receiver.test"].requests
    assert not {"x-request-id", "x-injected"} & request.headers.keys()


async def test_a_change_is_laid_into_the_envelope(
    client: Client, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    await subscribe(client, "receiver.test", "ticket.status_changed")
    change = b'{"field":"status","from":"Open","to":"Completed"}'
    await tickets.ticket_created(client.company_id, event="ticket.status_changed", change=change)
    await client.sweep()
    (request,) = receivers["receiver.test"].requests
    assert request.body.endswith(b',"change":' + change + b"}")


async def test_deliveries_are_listed_newest_first_and_an_unknown_subscription_is_not_found(
    client: Client, tickets: Producer
) -> None:
    sub_id, _ = await subscribe(client)
    ids = []
    for number in range(3):
        ids.append(await tickets.ticket_created(client.company_id, number))
        await asyncio.sleep(0.002)
    await client.sweep()
    assert [delivery.event_id for delivery in await client.deliveries(sub_id)] == ids[::-1]
    assert len(await client.deliveries(sub_id, limit=2)) == 2
    with pytest.raises(Refusal) as refused:
        await client.deliveries(10**12)
    assert refused.value.code == "not_found"


async def test_a_delete_during_an_attempt_leaves_nothing(
    client: Client, tickets: Producer, receivers: dict[str, Receiver], database: Database
) -> None:
    sub_id, _ = await subscribe(client)
    under_way, go_on = asyncio.Event(), asyncio.Event()

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        under_way.set()
        await go_on.wait()
        await answering(200)(request, writer)

    receivers["receiver.test"].answer = answer
    await tickets.ticket_created(client.company_id)
    sweep = asyncio.create_task(client.sweep())
    await under_way.wait()
    await client.delete(sub_id)
    go_on.set()
    assert await sweep == NOTHING
    async with database.connection() as connection:
        for table in ("delivery", "attempt"):
            assert await connection.raw.fetchval(f"SELECT count(*) FROM {table}") == 0


async def test_two_dispatchers_side_by_side_send_each_delivery_once(
    client: Client, tickets: Producer, receivers: dict[str, Receiver], service: Harness
) -> None:
    listens = ("MAKEREADY_GRPC_LISTEN", "MAKEREADY_METRICS_LISTEN")
    ports = {listen: f"127.0.0.1:{free_port()}" for listen in listens}
    usual = service.webhooks
    beside = Process(usual.command, usual.environment, ports["MAKEREADY_GRPC_LISTEN"], usual.log)
    beside.start(**ports)
    try:
        await beside.serving()
        async with grpc.aio.insecure_channel(beside.target) as channel:
            other = Client(service, channel, client.company_id)
            for host in ("receiver.test", "second.test"):
                await subscribe(client, host)
            for number in range(60):
                await tickets.ticket_created(client.company_id, number)
            at = now()
            counts = await asyncio.gather(client.sweep(at), other.sweep(at))
    finally:
        await asyncio.to_thread(beside.stop)
    assert sum(count["succeeded"] for count in counts) == 120
    for host in ("receiver.test", "second.test"):
        assert len({request.body for request in receivers[host].requests}) == 60
        assert len(receivers[host].requests) == 60


async def test_a_sender_whose_claim_ran_out_records_nothing_over_the_next_one(
    client: Client, tickets: Producer, database: Database
) -> None:
    sub_id, _ = await subscribe(client)
    await tickets.ticket_created(client.company_id)
    await client.sweep(now() - HOUR)  # stores the event; nothing is due
    (late,) = (await queries.claimed_deliveries(database, {sub_id: 16}, now(), claim_seconds=0)).rows
    (holder,) = (await queries.claimed_deliveries(database, {sub_id: 16}, now(), claim_seconds=60)).rows
    assert (await queries.claimed_deliveries(database, {sub_id: 16}, now(), claim_seconds=60)).rows == []
    assert holder.fence == late.fence + 1
    recorder = Recorder(database)
    assert not await recorder.record(_failed(late), client.company_id)
    assert await client.deliveries(sub_id) != []
    assert (await client.deliveries(sub_id))[0].attempts == []
    assert await health(client, sub_id) == "healthy"
    assert await recorder.record(_failed(holder), client.company_id)
    assert await health(client, sub_id) == "retrying"
    assert not await recorder.record(_failed(holder), client.company_id)  # the same attempt again


def _failed(claimed: ClaimedDelivery) -> Attempt:
    after = rules.AfterAttempt(claimed.rung + 1, rules.WAITING, now() + HOUR)
    return Attempt(claimed, rules.BY_SWEEP, "", now(), Outcome(500, "status", b"", 1), after)


async def test_a_sweep_that_no_ladder_could_follow_is_refused(client: Client) -> None:
    with pytest.raises(Refusal) as refused:
        await client.sweep(datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC))
    assert (refused.value.status, refused.value.code) == (400, "invalid_request")
