"""Creating, listing and deleting subscriptions over gRPC (spec 4.11)."""

import asyncio
import json
import uuid
from typing import Any

import grpc
import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from chassis.writes import idempotency
from svc_webhooks import tables
from testkit.patience import PATIENCE_SECONDS

from ..dispatcher import subscribed
from ..harness import URL, Client, Harness, Producer, caller, operator, until
from ..receivers import answering, receiver
from ..sandboxes import SandboxClient, make_sandbox

KEYS = ["schema_version", "entity_type", "entity_id", "destination_url", "events", "health", "secret_prefix"]
KEYS += ["created_at", "source"]


async def refused(client: Client, body: Any = None, **options: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        await client.create(body, **options)
    assert caught.value.message.endswith(".")
    return caught.value.status, caught.value.code


async def test_the_first_answer_holds_the_secret_as_its_last_key(client: Client) -> None:
    events = ["ticket.status_changed", "ticket.created", "ticket.created"]
    status, body, replayed = await client.create({"destination_url": URL, "events": events})
    assert (status, replayed) == (201, False)
    assert list(body) == [*KEYS, "secret"]
    assert body["entity_type"] == "webhook_subscription"
    assert body["events"] == ["ticket.created", "ticket.status_changed"]
    assert (body["health"], body["source"], body["schema_version"]) == ("healthy", "api", 1)
    assert body["secret"].startswith(body["secret_prefix"])
    assert len(body["created_at"]) == 27


async def test_a_replay_is_the_same_without_the_secret(client: Client) -> None:
    _, first, _ = await client.create(key="one")
    status, second, replayed = await client.create(key="one")
    assert (status, replayed) == (201, True)
    assert "secret" not in second
    assert list(second) == KEYS
    assert second == {key: first[key] for key in KEYS}
    assert len(await client.subscriptions()) == 1


async def test_order_and_repetition_of_events_are_no_difference(client: Client) -> None:
    await client.create({"destination_url": URL, "events": ["vendor.hold", "pm.stale"]}, key="one")
    body = {"events": ["pm.stale", "vendor.hold", "pm.stale"], "destination_url": URL}
    assert (await client.create(body, key="one"))[2]


@pytest.mark.parametrize(
    "body",
    [
        {"destination_url": URL, "events": ["vendor.hold"]},
        {"destination_url": URL + "/", "events": ["ticket.created"]},
        {"destination_url": "http://not.even.https/", "events": ["ticket.created"]},
    ],
    ids=["events", "destination", "bad destination"],
)
async def test_another_destination_or_event_set_under_the_same_key_is_a_mismatch(
    client: Client, body: dict[str, Any]
) -> None:
    await client.create(key="one")
    assert await refused(client, body, key="one") == (409, "idempotency_mismatch")


async def test_a_refused_request_holds_no_key(client: Client) -> None:
    assert await refused(client, {"destination_url": "http://x/", "events": ["vendor.hold"]}, key="one") == (
        422,
        "invalid_destination_url",
    )
    assert (await client.create(key="one"))[0] == 201


async def test_the_same_key_of_another_api_key_or_company_is_another_claim(client: Client) -> None:
    await client.create(key="one")
    assert not (await client.create(key="one", who=caller(client.company_id, api_key_id=2)))[2]
    assert not (await client.of(client.company_id + 500).create(key="one"))[2]


async def test_a_key_without_an_administrator_may_create(client: Client) -> None:
    assert (await client.create(who=caller(client.company_id, administrator_id=None)))[0] == 201


async def test_a_key_in_flight_is_refused(client: Client, database: Database) -> None:
    await client.create(key="warm")
    claim = idempotency.claim(caller(client.company_id), "one", "POST /webhooks", b"")
    async with database.transaction() as connection:
        await connection.raw.execute("SELECT pg_advisory_xact_lock($1)", claim.lock)
        assert await refused(client, key="one") == (409, "idempotency_in_progress")
    assert (await client.create(key="one"))[0] == 201


async def test_one_of_many_simultaneous_requests_creates(client: Client) -> None:
    async def attempt() -> str:
        try:
            _, body, replayed = await client.create(key="one")
        except Refusal as refusal:
            return refusal.code
        assert replayed == ("secret" not in body)
        return "replayed" if replayed else "created"

    outcomes = await asyncio.gather(*(attempt() for _ in range(50)))
    assert outcomes.count("created") == 1
    assert set(outcomes) <= {"created", "replayed", "idempotency_in_progress"}
    assert len(await client.subscriptions()) == 1


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"destination_url": URL}, 422, "events_empty"),
        ({"destination_url": URL, "events": None}, 422, "events_empty"),
        ({"destination_url": URL, "events": []}, 422, "events_empty"),
        ({"destination_url": URL, "events": ["ticket.created", "ticket.deleted"]}, 422, "events_unknown_key"),
        ({"destination_url": URL, "events": [""]}, 422, "events_unknown_key"),
        ({"destination_url": URL, "events": ["ticket.created", 1]}, 400, "invalid_request"),
        ({"destination_url": URL, "events": "ticket.created"}, 400, "invalid_request"),
        ({"destination_url": URL, "events": {}}, 400, "invalid_request"),
        ({"events": ["ticket.created"]}, 400, "invalid_request"),
        ({"destination_url": None, "events": ["ticket.created"]}, 400, "invalid_request"),
        ({"destination_url": 1, "events": ["ticket.created"]}, 400, "invalid_request"),
        ({"destination_url": "https://e.com/" + "a" * 2048, "events": ["pm.stale"]}, 422, "invalid_destination_url"),
        (
            {"destination_url": "https://e.com/" + "\u00e9" * 3000, "events": ["pm.stale"]},
            422,
            "invalid_destination_url",
        ),
        ({"destination_url": "\0" * 3000, "events": ["pm.stale"]}, 422, "invalid_destination_url"),
        ({"destination_url": "https://e.com/" + "a" * 2048}, 422, "events_empty"),
        ({"destination_url": URL, "events": ["ticket.created"], "secret": "mine"}, 400, "invalid_request"),
        ({"destination_url": "", "events": ["ticket.created"]}, 422, "invalid_destination_url"),
        ({"destination_url": "https://127.0.0.1/", "events": ["ticket.created"]}, 422, "invalid_destination_url"),
        ({"destination_url": f"{URL}\0", "events": ["ticket.created"]}, 422, "invalid_destination_url"),
        ({"destination_url": URL, "events": ["ticket.created\0"]}, 400, "invalid_request"),
        ({"destination_url": "https://[::1]/", "events": ["ticket.created"]}, 422, "invalid_destination_url"),
        ({"destination_url": URL.replace("https", "http"), "events": ["pm.stale"]}, 422, "invalid_destination_url"),
        ({"destination_url": "https://receiver.test:8443/", "events": ["pm.stale"]}, 422, "invalid_destination_url"),
        ({"destination_url": "https://u@receiver.test/", "events": ["pm.stale"]}, 422, "invalid_destination_url"),
        ({"destination_url": "https://nobody.invalid/", "events": ["pm.stale"]}, 422, "invalid_destination_url"),
        ({"destination_url": "https://localhost/", "events": ["pm.stale"]}, 422, "invalid_destination_url"),
        (
            {"destination_url": "https://\u0308com.com/", "events": ["pm.stale"]},
            422,
            "invalid_destination_url",
        ),
        ([], 400, "invalid_request"),
    ],
    ids=lambda value: str(value)[:100],
)
async def test_a_bad_body_is_refused(client: Client, body: Any, status: int, code: str) -> None:
    assert await refused(client, body) == (status, code)
    assert await client.subscriptions() == []


@pytest.mark.parametrize("raw", [b"", b"{", b"null", b"\xff", b'{"destination_url":"x","destination_url":"y"}'])
async def test_a_body_that_is_no_json_object_is_refused(client: Client, raw: bytes) -> None:
    assert await refused(client, raw=raw) == (400, "invalid_request")


async def test_a_name_that_does_not_resolve_is_refused_or_a_fault_of_ours(client: Client) -> None:
    """The outcome depends on whether this machine has a working resolver."""
    body = {"destination_url": "https://makeready-no-such-name.com/", "events": ["ticket.created"]}
    try:
        await client.create(body)
    except Refusal as refusal:
        assert (refusal.status, refusal.code) == (422, "invalid_destination_url")
    except grpc.aio.AioRpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE


async def test_a_list_is_paged_by_id_and_never_shows_a_secret(client: Client) -> None:
    created = [(await client.create())[1]["entity_id"] for _ in range(5)]
    first = await client.page(limit=3)
    assert [subscription["entity_id"] for subscription in json.loads(first.data)] == created[:3]
    second = await client.page(first.next_after_id, 3)
    assert [subscription["entity_id"] for subscription in json.loads(second.data)] == created[3:]
    assert not second.HasField("next_after_id")
    for subscription in (*json.loads(first.data), *json.loads(second.data)):
        assert list(subscription) == KEYS


async def test_a_full_last_page_ends(client: Client) -> None:
    for _ in range(2):
        await client.create()
    assert not (await client.page(limit=2)).HasField("next_after_id")


async def test_the_operator_lists_a_company_too(client: Client) -> None:
    await client.create()
    page = await client.page(who=operator(client.company_id))
    assert len(json.loads(page.data)) == 1


async def test_another_company_sees_and_deletes_nothing(client: Client) -> None:
    sub_id = (await client.create())[1]["entity_id"]
    other = client.of(client.company_id + 500)
    assert await other.subscriptions() == []
    sentences = set()
    for unknown in (sub_id, 10**15, 0, -1):
        with pytest.raises(Refusal) as caught:
            await other.delete(unknown)
        assert (caught.value.status, caught.value.code) == (404, "not_found")
        sentences.add(caught.value.message)
    assert sentences == {"No webhook subscription with that id is visible to this key; check the id and the key."}
    assert len(await client.subscriptions()) == 1


async def test_a_delete_takes_the_history_along(client: Client, database: Database, tickets: Producer) -> None:
    sub_id = (await client.create())[1]["entity_id"]
    kept = (await client.create())[1]["entity_id"]
    await tickets.ticket_created(client.company_id)
    await client.sweep()
    await client.delete(sub_id)
    async with database.connection() as connection:
        for table in ("subscription", "delivery", "attempt"):
            column = "id" if table == "subscription" else "subscription_id"
            rows = await connection.raw.fetch(f"SELECT {column} FROM {table}")
            assert [row[0] for row in rows] == [kept], table
    with pytest.raises(Refusal):
        await client.delete(sub_id)


async def test_a_replay_after_the_delete_still_returns_the_created_record(client: Client) -> None:
    sub_id = (await client.create(key="one"))[1]["entity_id"]
    await client.delete(sub_id)
    _, body, replayed = await client.create(key="one")
    assert (body["entity_id"], replayed) == (sub_id, True)
    assert await client.subscriptions() == []


async def test_no_secret_is_in_the_database_or_the_logs(client: Client, database: Database, service: Harness) -> None:
    _, body, _ = await client.create(key=(key := str(uuid.uuid4())))
    await client.create(key=key)
    secret: str = body["secret"]
    async with database.connection() as connection:

        async def rows_with(table: str, text: str) -> Any:
            """The number of rows that contain the text in any column, as text or as bytes."""
            statement = f"SELECT count(*) FROM {table} AS whole WHERE position($1 IN whole::text) > 0"
            hexadecimal = text.encode().hex()
            return await connection.raw.fetchval(statement, text) + await connection.raw.fetchval(
                statement, hexadecimal
            )

        for table in tables.metadata.tables:
            assert await rows_with(table, secret.removeprefix(body["secret_prefix"])) == 0, table
        assert await rows_with("subscription", body["secret_prefix"]) == 1
        assert await rows_with("idempotency", body["secret_prefix"]) == 1
        kept = await connection.raw.fetchval("SELECT reply FROM idempotency WHERE idempotency_key = $1", key)
        assert json.loads(kept) == {name: body[name] for name in KEYS}
    assert secret not in service.webhooks.log.read_text()


async def test_a_replay_does_not_look_at_the_destination(service: Harness, client: Client) -> None:
    """The name may now resolve to nothing, or to an address that is not public."""
    body = {"destination_url": "https://second.test/hook", "events": ["vendor.hold"]}
    _, first, _ = await client.create(body, key="one")
    service.webhooks.stop()
    hosts = service.webhooks.environment.pop("WEBHOOKS_EGRESS_HOSTS")
    try:
        service.webhooks.start()
        await service.webhooks.serving()
        again = await client.create(body, key="one")
        assert again == (201, {name: first[name] for name in KEYS}, True)
        assert await refused(client, body | {"events": ["pm.stale"]}, key="one") == (409, "idempotency_mismatch")
        assert await refused(client, body) == (422, "invalid_destination_url")
    finally:
        service.webhooks.stop()
        service.webhooks.environment["WEBHOOKS_EGRESS_HOSTS"] = hosts
        service.webhooks.start()
        await service.webhooks.serving()


async def test_without_a_vault_nothing_else_is_looked_at(service: Harness, client: Client) -> None:
    await client.create(key="one")
    service.webhooks.stop()
    vault = service.webhooks.environment["WEBHOOKS_VAULT_KEYS"]
    service.webhooks.environment["WEBHOOKS_VAULT_KEYS"] = ""
    try:
        service.webhooks.start()
        await service.webhooks.serving()
        for raw in (None, b"", b"{", b"{}", b'{"events":[],"destination_url":"http://x"}'):
            assert await refused(client, raw=raw, key="one") == (503, "vault_unavailable")
    finally:
        service.webhooks.stop()
        service.webhooks.environment["WEBHOOKS_VAULT_KEYS"] = vault
        service.webhooks.start()
        await service.webhooks.serving()
    assert (await client.create(key="one"))[2]


async def many_subscriptions(client: Client, database: Database, many: int) -> list[int]:
    urls = [f"{URL}/{number}" for number in range(many)]
    return await subscribed(database, client.company_id, urls)


async def test_a_company_has_a_thousand_at_most(client: Client, database: Database) -> None:
    """Before: any number."""
    first, *_ = await many_subscriptions(client, database, 999)
    _, created, _ = await client.create(key="the last one")
    with pytest.raises(Refusal) as caught:
        await client.create(key="one too many")
    assert (caught.value.status, caught.value.code) == (422, "invalid_request")
    assert caught.value.message == "A company has at most 1,000 webhook subscriptions; delete one that is not needed."
    assert (await client.create(key="the last one"))[1]["entity_id"] == created["entity_id"]  # a replay is no new one
    assert (await client.of(client.company_id + 700).create())[0] == 201
    await client.delete(first)
    assert (await client.create(key="one too many"))[0] == 201  # the refusal did not use the key


async def test_many_at_once_are_counted_one_after_another(client: Client, database: Database) -> None:
    await many_subscriptions(client, database, 995)

    async def attempt(key: str) -> int:
        try:
            return (await client.create(key=key))[0]
        except Refusal as refusal:
            return refusal.status

    answers = await asyncio.gather(*(attempt(f"key {number}") for number in range(20)))
    assert (answers.count(201), answers.count(422)) == (5, 15)
    async with database.connection() as connection:
        counted = "SELECT count(*) FROM subscription WHERE company_id = $1"
        assert await connection.raw.fetchval(counted, client.company_id) == 1000


async def test_the_last_one_that_is_requested_many_times_at_once_is_created_and_replayed(
    client: Client, database: Database
) -> None:
    await many_subscriptions(client, database, 999)

    async def attempt() -> str:
        try:
            return "replayed" if (await client.create(key="one"))[2] else "created"
        except Refusal as refusal:
            return refusal.code

    answers = await asyncio.gather(*(attempt() for _ in range(20)))
    assert answers.count("created") == 1
    assert set(answers) <= {"created", "replayed", "idempotency_in_progress"}


async def test_only_sandboxes_have_local_receivers_and_only_where_the_operator_allows_it(
    client: Client, service: Harness, database: Database, tickets: Producer, mended: None
) -> None:
    live = client.of(client.company_id + 500_000)
    await make_sandbox(database, client.company_id)
    sandbox = SandboxClient(client).caller
    async with receiver(None, answering(200)) as listening:
        body = {"destination_url": f"http://127.0.0.1:{listening.port}/hook", "events": ["ticket.created"]}
        for company, who in ((client, sandbox), (live, None)):
            with pytest.raises(Refusal) as refusal:
                await company.create(body, who=who)
            assert (refusal.value.status, refusal.value.code) == (422, "invalid_destination_url")
        await asyncio.to_thread(service.webhooks.stop)
        service.webhooks.start(MAKEREADY_SANDBOX_LOCAL_DESTINATIONS="1", WEBHOOKS_SWEEP_SECONDS="1")
        await service.webhooks.serving()
        with pytest.raises(Refusal):
            await live.create(body)
        assert (await client.create(body, who=sandbox))[0] == 201
        await tickets.ticket_created(client.company_id)
        await until(lambda: len(listening.requests) == 1)
        # Of a live company none is reached, whatever its subscription names.
        async with database.connection() as connection:
            made_live = "UPDATE company SET is_sandbox = false WHERE id = $1"
            await connection.raw.execute(made_live, client.company_id)
        await tickets.ticket_created(client.company_id)
        (sub_id,) = [subscription["entity_id"] for subscription in await client.subscriptions()]
        errors: list[str] = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(errors) < 2:
                await asyncio.sleep(0.1)
                deliveries = await client.deliveries(sub_id)
                errors = [attempt.error for delivery in deliveries for attempt in delivery.attempts]
        assert sorted(errors) == ["", "destination_refused"] and len(listening.requests) == 1
