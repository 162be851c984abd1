"""One Idempotency-Key of an API key is one request, whichever service it goes to: notes, claims, several gateways.

`tests/chaos/test_one_key.py` has the real services, races and kills.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator

import grpc
import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal, idempotency_in_progress, invalid_request
from gateway.http.routes import OPERATIONS, OWN_SERVICE
from gateway.http.writes import Writes
from gateway.identity.idempotency import queries
from gateway.identity.idempotency.queries import Taking
from testkit.gateways import Gateway, GatewayHarness, Operator
from testkit.raw_http import Api, Response
from testkit.stub_contexts import Contexts, fail, first_id

TICKET, WEBHOOK = "tickets.TicketsService/CreateTicket", "webhooks.SubscriptionsService/CreateSubscription"
IN_PROGRESS, MISMATCH = "idempotency_in_progress", "idempotency_mismatch"
KEY = "one key"
LATER = datetime.timedelta(seconds=15)


@pytest.fixture(autouse=True)
async def no_notes(database: Database) -> None:
    async with database.connection() as connection:
        await connection.raw.execute("TRUNCATE idempotency_note")


@pytest.fixture(scope="module")
async def other_gateway(harness: GatewayHarness, gateway: Gateway) -> AsyncIterator[Gateway]:
    second = harness.gateway()
    second.start()
    await second.ready()
    yield second


async def ticket(api: Api, key: str, idempotency_key: str = KEY) -> Response:
    return await api.request("POST", "/tickets", key, b"{}", Idempotency_Key=idempotency_key)


async def webhook(api: Api, key: str, idempotency_key: str = KEY) -> Response:
    return await api.request("POST", "/webhooks", key, b"{}", Idempotency_Key=idempotency_key)


async def notes(database: Database) -> list[tuple[str, int]]:
    """Service and number of requests of each note."""
    async with database.connection() as connection:
        rows = await connection.raw.fetch("SELECT service, requests FROM idempotency_note ORDER BY service")
    return [tuple(row) for row in rows]


async def end_leases(database: Database) -> None:
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE idempotency_note SET leased_until = clock_timestamp()")


def sent(contexts: Contexts, rpc: str) -> int:
    return sum(context.operation.route.rpc == rpc for context in contexts.seen)


# What a note says


async def test_a_note_outlives_success_and_holds_neither_the_key_nor_the_body(
    api: Api, key: str, database: Database
) -> None:
    assert (await ticket(api, key)).status == 201
    assert (await webhook(api, key)).code == MISMATCH
    assert (await ticket(api, key)).header("X-Idempotent-Replay") == "1"
    async with database.connection() as connection:
        (row,) = await connection.raw.fetch("SELECT * FROM idempotency_note")
    assert set(row.keys()) == {"digest", "service", "requests", "leased_until"}
    assert len(row["digest"]) == queries.DIGEST_BYTES and row["service"] == "svc-tickets"


async def test_a_refusal_erases_the_note_and_an_unknown_end_does_not(
    api: Api, key: str, contexts: Contexts, database: Database
) -> None:
    async def refuse(_context: object) -> None:
        raise invalid_request("No.")

    async def in_progress(_context: object) -> None:
        raise idempotency_in_progress()

    for behave in (refuse, in_progress):
        contexts.behaviours[TICKET] = behave
        assert (await ticket(api, key)).status in (400, 409)
        assert await notes(database) == []
    contexts.behaviours[TICKET] = fail
    assert (await ticket(api, key)).status == 500
    assert await notes(database) == [("svc-tickets", 1)]
    contexts.behaviours[TICKET] = refuse
    assert (await ticket(api, key)).status == 400
    assert await notes(database) == [("svc-tickets", 1)], "nobody knows how the first one ended"
    assert (await webhook(api, key)).code == IN_PROGRESS
    await end_leases(database)
    assert (await webhook(api, key)).status == 201
    assert await notes(database) == [("svc-webhooks", 1)]
    contexts.behaviours.clear()
    assert (await ticket(api, key)).code == MISMATCH


async def test_a_used_key_stays_used_however_often_requests_with_it_are_refused(
    api: Api, key: str, contexts: Contexts, database: Database
) -> None:
    async def refuse(_context: object) -> None:
        raise invalid_request("No.")

    assert (await ticket(api, key)).status == 201
    contexts.behaviours[TICKET] = refuse
    for _ in range(3):
        assert (await ticket(api, key)).status == 400
    await end_leases(database)
    assert await notes(database) == [("svc-tickets", 1)]
    assert (await webhook(api, key)).code == MISMATCH


async def test_a_mismatch_within_a_service_notes_the_key_that_had_no_note(
    api: Api, key: str, database: Database, no_notes: None
) -> None:
    assert (await ticket(api, key)).status == 201
    async with database.connection() as connection:
        await connection.raw.execute("TRUNCATE idempotency_note")  # as with a key of the release before
    other = await api.request("POST", "/tickets", key, b'{"another": 1}', Idempotency_Key=KEY)
    assert other.code == MISMATCH and await notes(database) == [("svc-tickets", 1)]
    assert (await webhook(api, key)).code == MISMATCH


async def test_what_two_services_had_done_before_there_were_notes_is_replayed_by_both(
    api: Api, key: str, database: Database
) -> None:
    for write in (ticket, webhook):
        assert (await write(api, key)).status == 201
        async with database.connection() as connection:
            await connection.raw.execute("TRUNCATE idempotency_note")
    for write in (ticket, webhook, ticket):
        assert (await write(api, key)).header("X-Idempotent-Replay") == "1"


async def test_a_mismatch_comes_after_the_checks_of_the_service(api: Api, key: str, contexts: Contexts) -> None:
    async def refuse(_context: object) -> None:
        raise invalid_request("No.")

    assert (await ticket(api, key)).status == 201
    contexts.behaviours[WEBHOOK] = refuse
    assert (await webhook(api, key)).code == "invalid_request"


async def test_each_write_of_the_api_is_noted(
    api: Api, operator: Operator, contexts: Contexts, database: Database
) -> None:
    company_id = await operator.sandbox()
    key = await operator.key(company_id)
    # A trigger needs contexts with records.
    writes = [operation for operation in OPERATIONS if operation.kind == "write" and operation.service != OWN_SERVICE]
    for number, operation in enumerate(writes):
        path = operation.route.path.replace("{" + operation.id_field + "}", str(first_id(company_id)))
        answer = await api.request(operation.route.method, path, key, b"{}", Idempotency_Key=f"of {number}")
        assert answer.status == 201
    assert sorted(service for service, _ in await notes(database)) == sorted(operation.service for operation in writes)


# Claims


async def test_a_request_under_way_keeps_its_key_until_its_lease_is_over(
    api: Api, key: str, contexts: Contexts, database: Database
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_context: object) -> None:
        begun.set()
        await go_on.wait()

    contexts.behaviours[TICKET] = slow
    first = asyncio.create_task(ticket(api, key))
    await begun.wait()
    assert (await webhook(api, key)).code == IN_PROGRESS
    go_on.set()
    assert (await first).status == 201
    assert (await webhook(api, key)).code == MISMATCH


async def test_a_lease_is_the_deadline_and_a_margin_by_the_clock_of_the_database(
    api: Api, key: str, company_id: int, database: Database
) -> None:
    paths = {"/tickets": 15, f"/webhooks/{first_id(company_id)}/test": 35}
    for path, seconds in paths.items():
        async with database.connection() as connection:
            await connection.raw.execute("TRUNCATE idempotency_note")
            before = await connection.raw.fetchval("SELECT clock_timestamp()")
            assert (await api.request("POST", path, key, b"{}", Idempotency_Key=path)).status == 201
            until = await connection.raw.fetchval("SELECT leased_until FROM idempotency_note")
            after = await connection.raw.fetchval("SELECT clock_timestamp()")
        assert before <= until - datetime.timedelta(seconds=seconds) <= after


async def test_a_service_that_cannot_be_asked_leaves_the_key_in_progress(
    api: Api, key: str, contexts: Contexts, database: Database
) -> None:
    assert (await ticket(api, key)).status == 201
    await end_leases(database)
    await contexts.stop("svc-tickets")
    try:
        assert (await webhook(api, key)).code == IN_PROGRESS
        assert (await webhook(api, key, "another")).status == 201
        assert (await webhook(api, key, "another")).header("X-Idempotent-Replay") == "1"
    finally:
        await contexts.start("svc-tickets")
    assert (await webhook(api, key)).code == MISMATCH


# Several gateways


async def test_of_operations_at_once_through_two_gateways_exactly_one_has_an_effect(
    api: Api, other_gateway: Gateway, operator: Operator, company_id: int, contexts: Contexts
) -> None:
    key = await operator.key(company_id)
    apis = (api, Api(other_gateway.api_port))
    for number in range(12):
        idempotency_key = f"race {number}"
        sent = [(write, through) for through in apis for write in (ticket, webhook)]
        replies = await asyncio.gather(*(write(through, key, idempotency_key) for write, through in sent))
        winners = {write for (write, _), reply in zip(sent, replies, strict=True) if reply.status == 201}
        assert len(winners) == 1, [(reply.status, reply.body) for reply in replies]
        codes = {reply.code for reply in replies if reply.status != 201}
        assert codes <= {IN_PROGRESS, MISMATCH}
        effects = {rpc for (_, rpc, used) in contexts.bodies if used == idempotency_key and rpc in (TICKET, WEBHOOK)}
        assert len(effects) == 1
    contexts.bodies.clear()


async def test_refusals_at_once_through_two_gateways_leave_no_note(
    api: Api, other_gateway: Gateway, key: str, contexts: Contexts, database: Database
) -> None:
    async def refuse(_context: object) -> None:
        raise invalid_request("No.")

    contexts.behaviours[TICKET] = refuse
    for number in range(10):
        both = (api, Api(other_gateway.api_port))
        replies = await asyncio.gather(*(ticket(through, key, f"{number}") for through in both * 3))
        assert {reply.status for reply in replies} == {400}
    assert await notes(database) == []


# The statements


def taking(service: str, digest: bytes = b"d" * queries.DIGEST_BYTES, seconds: float = 15.0) -> Taking:
    return Taking(digest, service, seconds)


async def test_a_note_is_taken_over_only_as_it_was_found(database: Database) -> None:
    mine, theirs = taking("svc-webhooks"), taking("svc-tickets", seconds=0.0)
    assert await queries.take(database, [theirs])
    old = await queries.note_of(database, mine.digest)
    assert old is not None and not old.is_living
    assert await queries.take(database, [theirs]), "another request prolongs the claim"
    assert await queries.take_over(database, mine, old) is None
    old = await queries.note_of(database, mine.digest)
    assert old is not None
    until = await queries.take_over(database, mine, old)
    assert until is not None and await notes(database) == [("svc-webhooks", 1)]
    assert await queries.take(database, [theirs]) == {}
    assert await queries.take_over(database, theirs, old) is None


async def test_a_lease_of_a_clock_that_was_set_back_is_over(database: Database) -> None:
    """PostgreSQL's clock was a day ahead when the request went to its service, and is right again."""
    theirs = taking("svc-tickets", seconds=86_400.0)
    await queries.take(database, [theirs])
    old = await queries.note_of(database, theirs.digest)
    assert old is not None and not old.is_living
    assert await queries.take_over(database, taking("svc-webhooks"), old) is not None
    now = await queries.note_of(database, theirs.digest)
    assert now is not None and now.is_living and now.service == "svc-webhooks"


async def test_a_request_that_outlived_its_lease_erases_nothing(database: Database) -> None:
    late = taking("svc-tickets", seconds=0.0)
    until = (await queries.take(database, [late]))[late.digest]
    await queries.take(database, [taking("svc-tickets")])
    await queries.release(database, late.digest, late.service, until)
    assert await notes(database) == [("svc-tickets", 2)]


async def test_all_of_many_requests_that_are_refused_at_once_erase_their_note(database: Database) -> None:
    request = taking("svc-tickets")
    for _ in range(20):
        claims = [(await queries.take(database, [request]))[request.digest] for _ in range(8)]
        await asyncio.gather(*(queries.release(database, request.digest, request.service, until) for until in claims))
        assert await notes(database) == []


async def test_notes_are_deleted_when_the_ledgers_forget(database: Database) -> None:
    digests = [bytes([n]) * queries.DIGEST_BYTES for n in range(5)]
    await queries.take(database, [taking("svc-tickets", digest) for digest in digests])
    async with database.connection() as connection:
        now = await connection.raw.fetchval("SELECT clock_timestamp()")
        kept_days = datetime.timedelta(days=30)
        sql = "UPDATE idempotency_note SET leased_until = $1 WHERE digest = any($2)"
        await connection.raw.execute(sql, now - kept_days - datetime.timedelta(seconds=1), digests[:3])
        await connection.raw.execute(sql, now - kept_days + datetime.timedelta(seconds=9), digests[3:])
    assert await queries.delete_old(database, now) == 3
    assert await queries.delete_old(database, now) == 0 and len(await notes(database)) == 2


async def test_two_services_with_one_key_in_one_statement_are_one_note(database: Database) -> None:
    """Requests that arrive together share a statement."""
    writes = Writes(database, None, {})  # type: ignore[arg-type]
    takings = [taking("svc-webhooks"), taking("svc-tickets"), taking("svc-webhooks", seconds=35.0)]
    first, other, second = await asyncio.gather(*map(writes._notes.ask, takings))
    assert first is not None and second is not None and other is None
    assert await notes(database) == [("svc-webhooks", 2)]


# The database away


async def test_without_the_database_a_write_is_refused_before_its_service_is_called(
    api: Api, key: str, contexts: Contexts, database: Database
) -> None:
    """The key is in the gateway's cache; the note cannot be stored."""
    assert (await api.get("/whoami", key)).status == 200
    async with database.transaction() as connection:
        await connection.raw.execute("LOCK idempotency_note IN ACCESS EXCLUSIVE MODE")
        before = sent(contexts, TICKET)
        answer = await ticket(api, key)
        assert (answer.status, answer.code) == (500, "internal_error")
        assert sent(contexts, TICKET) == before
    assert (await ticket(api, key)).status == 201


async def test_a_refusal_is_answered_also_if_its_note_cannot_be_erased(
    api: Api, key: str, contexts: Contexts, database: Database
) -> None:
    async with database.transaction() as connection:

        async def refuse(_context: grpc.aio.ServicerContext[object, object]) -> None:
            await connection.raw.execute("LOCK idempotency_note IN ACCESS EXCLUSIVE MODE")
            raise Refusal(422, "invalid_request", "No.")

        contexts.behaviours[TICKET] = refuse
        assert (await ticket(api, key)).status == 422
    assert await notes(database) == [("svc-tickets", 1)]
    assert (await webhook(api, key)).code == IN_PROGRESS
    await end_leases(database)
    assert (await webhook(api, key)).status == 201
