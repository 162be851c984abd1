"""Replaces a key of the vault while deliveries continue: adds the new key, reseals all secrets, removes the old key."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import select

from chassis.auth.identity import Call
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from chassis.writes.audit import Audit
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks import tables
from svc_webhooks.dispatch.signature import service_signature
from svc_webhooks.vault import queries
from svc_webhooks.vault.keyring import Vault, new_secret
from svc_webhooks.vault.service import VaultService

from ..harness import Client, Harness, Producer, operator, until
from ..receivers import Receiver

OLD, NEW = b"v" * 32, b"n" * 32
OLD_KEY, NEW_KEY = ("k1:" + base64.b64encode(OLD).decode(), "k2:" + base64.b64encode(NEW).decode())
CALL = Call(operator(), "")


def vault_service(database: Database, vault: Vault | None) -> VaultService:
    return VaultService(database, Audit(tables.audit, database), vault)


@pytest.fixture
async def mended(service: Harness) -> AsyncIterator[None]:
    yield
    if not service.webhooks.as_always:
        await with_ring(service)


async def with_ring(service: Harness, *keys: str) -> None:
    """Restarts the service with these keys, or with the usual ones."""
    await asyncio.to_thread(service.webhooks.stop)
    service.webhooks.start(**({"WEBHOOKS_VAULT_KEYS": ",".join(keys)} if keys else {}))
    await service.webhooks.serving()


async def reseal(client: Client) -> dict[str, Any]:
    done = await client.call(pb.ResealSecretsRequest(), operator())
    return {
        "key_id": done.key_id,
        "resealed": done.resealed,
        "unopened": done.unopened,
        "keys_needed": list(done.keys_needed),
    }


def seals(service: Harness) -> set[tuple[str, str, float]]:
    """Key id, whether it opens, and number of secrets, from the metrics."""
    key_ids = set()
    for line in service.webhooks.metrics().splitlines():
        if line.startswith("makeready_webhooks_secrets{"):
            labels, _, value = line.partition(" ")
            words = labels.split('"')
            key_ids.add((words[1], words[3], float(value)))
    return key_ids


async def test_a_key_is_replaced_without_a_delivery_that_is_not_verified(
    client: Client, tickets: Producer, service: Harness, receivers: dict[str, Receiver], mended: None
) -> None:
    secrets: dict[str, str] = {}
    requests = receivers["receiver.test"].requests

    async def subscribed() -> None:
        body = (
            await client.create(
                {"destination_url": f"https://receiver.test/{len(secrets)}", "events": ["ticket.created"]}
            )
        )[1]
        secrets[f"/{len(secrets)}"] = body["secret"]

    async def delivers(errors: int = 0) -> None:
        """An event reaches every subscription whose secret opens, each signed with its own secret."""
        before = len(requests)
        await tickets.ticket_created(client.company_id)
        swept = await client.sweep()
        assert (swept["succeeded"], swept["failed"]) == (len(secrets) - errors, errors)
        for request in requests[before:]:
            header = request.headers["service-signature"]
            at = int(header.removeprefix("t=").partition(",")[0])
            assert header == service_signature(secrets[request.request_line.split()[1]], at, request.body)

    for _ in range(3):
        await subscribed()
    await delivers()
    await with_ring(service, NEW_KEY)  # too early: no secret has been resealed yet
    await until(lambda: seals(service) == {("k1", "no", 3)})  # it looks beside its start
    await until(lambda: "secrets_not_opened" in service.webhooks.log.read_text())
    await subscribed()
    await delivers(errors=3)
    assert await reseal(client) == {"key_id": "k2", "resealed": 0, "unopened": 3, "keys_needed": ["k1"]}

    await with_ring(service, NEW_KEY, OLD_KEY)
    await until(lambda: seals(service) == {("k1", "yes", 3), ("k2", "yes", 1)})
    before = len(requests)
    assert (await client.sweep())["succeeded"] == 3  # the deliveries that had to wait
    assert len(requests) == before + 3
    await delivers()
    assert await reseal(client) == {"key_id": "k2", "resealed": 3, "unopened": 0, "keys_needed": []}
    assert await reseal(client) == {"key_id": "k2", "resealed": 0, "unopened": 0, "keys_needed": []}
    assert seals(service) == {("k2", "yes", 4)}
    await delivers()
    await with_ring(service, NEW_KEY)
    await delivers()
    for subscription in await client.subscriptions():
        assert subscription["health"] == "healthy"
    deliveries = await client.deliveries((await client.subscriptions())[0]["entity_id"])
    errors = [[attempt.error for attempt in delivery.attempts] for delivery in deliveries]
    assert sorted(errors) == [[""], [""], [""], [""], ["vault", ""]]


async def test_a_rotation_beside_it_wins(client: Client, database: Database) -> None:
    sub_id = (await client.create())[1]["entity_id"]
    other = (await client.create())[1]["entity_id"]
    newer = Vault({"k2": NEW, "k1": OLD})
    rotated = newer.seal(sub_id, new_secret())
    async with database.transaction() as connection:
        await connection.raw.execute(
            "UPDATE subscription SET secret_key_id = $2, secret_sealed = $3 WHERE id = $1",
            sub_id, rotated.key_id, rotated.sealed,
        )  # fmt: skip
        resealing = asyncio.create_task(vault_service(database, newer).ResealSecrets(pb.ResealSecretsRequest(), CALL))
        await asyncio.wait({resealing}, timeout=0.5)  # short: it waits for the lock
        assert not resealing.done()
    assert (await resealing).resealed == 1
    sealed = {row.id: row for row in await queries.secrets_sealed(database, 0, 10)}
    assert sealed[sub_id].secret_sealed == rotated.sealed
    assert sealed[other].secret_key_id == "k2"


async def test_several_at_once_leave_each_secret_sealed_once(client: Client, database: Database) -> None:
    for _ in range(20):
        await client.create()
    newer = Vault({"k2": NEW, "k1": OLD})
    services = [vault_service(database, newer) for _ in range(4)]
    done = await asyncio.gather(*(service.ResealSecrets(pb.ResealSecretsRequest(), CALL) for service in services))
    assert sum(answer.resealed for answer in done) == 20
    log = await database.rows(Statement(select(tables.audit).where(tables.audit.c.company_id == client.company_id)))
    assert len(log) == len({row["subject_id"] for row in log}) == 20
    assert {(row["actor"], row["action"], row["before"], row["after"]) for row in log} == {
        ("operator", "subscription.secret_resealed", '{"secret_key_id": "k1"}', '{"secret_key_id": "k2"}')
    }
    assert {tuple(answer.keys_needed) for answer in done} == {()}


async def test_another_key_under_the_same_id_is_reported(client: Client, database: Database) -> None:
    await client.create()
    done = await vault_service(database, Vault({"k1": NEW})).ResealSecrets(pb.ResealSecretsRequest(), CALL)
    assert (done.resealed, done.unopened, list(done.keys_needed)) == (0, 1, [])


async def test_without_a_keyring_nothing_is_encrypted_anew(client: Client, database: Database) -> None:
    await client.create()
    before = await queries.secrets_sealed(database, 0, 10)
    with pytest.raises(Refusal) as refused:
        await vault_service(database, None).ResealSecrets(pb.ResealSecretsRequest(), CALL)
    assert (refused.value.status, refused.value.code) == (503, "vault_unavailable")
    assert await queries.secrets_sealed(database, 0, 10) == before
