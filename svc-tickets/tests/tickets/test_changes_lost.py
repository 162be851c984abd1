"""Status changes that lose a claim at the last moment, a connection or a running process. They happen once or not at
all (spec 4.13)."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from sqlalchemy import Text, bindparam, text

from chassis.auth.identity import Identity
from chassis.changes.tracking import ChangeTracking
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.records import bodies
from chassis.refusals import Refusal
from chassis.writes import idempotency
from svc_tickets import tables as t
from svc_tickets.tickets import inputs
from svc_tickets.tickets.queries.read import TICKET_CHANGES
from testkit.databases import service_url
from testkit.patience import PATIENCE_SECONDS, eventually

from .changing import (
    SENT,
    change,
    events_of,
    held,
    history_of,
    kept,
    opened,
    refusal_of,
    served,
    until_it_waits,
)
from .lossy_route import LossyRoute

pytestmark = pytest.mark.usefixtures("places")

# A pooler keeps connections of migrations too. Those of a superuser only a superuser may end.
ENDED = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity JOIN pg_roles ON pg_roles.oid = usesysid
WHERE application_name = 'svc-tickets' AND NOT rolsuper
"""


@pytest.fixture(scope="module")
def strikes(service: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file that names the failpoint at which the next write stops."""
    file = tmp_path_factory.mktemp("strikes") / "strike"
    service.stop()
    service.start(MAKEREADY_STRIKE_FILE=str(file))
    yield file
    service.stop()
    service.start()


def state_of(pid: int) -> str:
    """ "T" while the process is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def strike(strikes: Path, point: str) -> None:
    """The next write stops at the failpoint."""
    strikes.write_text(f"{point} hold")


async def begun_alone(client: Any, database: Database, ticket_id: int, key: str) -> asyncio.Task[Any]:
    """A change that waits for its ticket, which is held: it goes on in a transaction of its own."""
    begun = asyncio.create_task(change(client, ticket_id, SENT["Completed"], key))
    await until_it_waits(database)
    return begun


@asynccontextmanager
async def stopped(service: Any) -> AsyncIterator[None]:
    """Waits until the process is stopped; resumes it afterwards."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while state_of(service.process.pid) != "T":  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.01)
    try:
        yield
    finally:
        os.kill(service.process.pid, signal.SIGCONT)


@pytest.mark.parametrize("same", [True, False], ids=["same", "other"])
async def test_where_the_claim_is_taken_at_the_last_moment_its_keeper_is_right(
    service: Any, client: Any, database: Database, operator: Any, strikes: Path, same: bool
) -> None:
    """The primary key is the guard if a write gets past the lock, for example after a retention that was too early."""
    ticket_id, key = await opened(client), secrets.token_hex(8)
    _, canonical = bodies.decode(inputs.StatusChange, json.dumps(SENT["Completed" if same else "Open"]).encode())
    caller = Identity("caller", "gateway", 7, 1, "write", 3)
    claim = idempotency.claim(caller, key, f"PATCH /tickets/{ticket_id}", canonical)
    strike(strikes, "write-decided")
    first = asyncio.create_task(change(client, ticket_id, SENT["Completed"], key))
    async with stopped(service):
        row = {name.removeprefix("claim_"): value for name, value in claim.whole(200, b'{"kept":1}').items()}
        await database.execute(Statement(t.idempotency.insert().values(row)))
    if same:
        reply = await first
        assert (reply.status, reply.body, reply.replayed) == (200, b'{"kept":1}', True)
    else:
        assert (await refusal_of(first)).code == "idempotency_mismatch"
    assert json.loads(await served(client, ticket_id))["status"] == "Open"
    assert await history_of(client, operator, ticket_id) == [] and len(await events_of(database, ticket_id)) == 1


@pytest.mark.parametrize("point", ["write-locked", "write-decided", "write-before-commit"])
async def test_a_connection_that_ends_before_the_commit_leaves_nothing(
    service: Any, client: Any, database: Database, operator: Any, strikes: Path, point: str
) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    async with held(database, ticket_id):
        first = await begun_alone(client, database, ticket_id, key)
        strike(strikes, point)
    async with stopped(service):
        assert await database.value(Statement(text(ENDED + " AND state = 'idle in transaction'"))) >= 1
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        await first
    assert fault.value.code() is grpc.StatusCode.UNAVAILABLE
    assert await kept(database, key) == 0 and await history_of(client, operator, ticket_id) == []
    assert not (await change(client, ticket_id, SENT["Completed"], key)).replayed
    assert len(await history_of(client, operator, ticket_id)) == 1


async def test_a_connection_that_ends_between_the_two_statements_costs_nothing(
    service: Any, client: Any, database: Database, operator: Any, strikes: Path
) -> None:
    """Nothing is held there, so the change goes on over another connection."""
    ticket_id, key = await opened(client), secrets.token_hex(8)
    strike(strikes, "write-decided")
    first = asyncio.create_task(change(client, ticket_id, SENT["Completed"], key))
    async with stopped(service):
        assert await database.value(Statement(text(ENDED))) >= 1
    try:
        reply = await first
    except grpc.aio.AioRpcError:  # the connections of the pool have all ended
        reply = await change(client, ticket_id, SENT["Completed"], key)
    assert (reply.status, reply.replayed, reply.body) == (200, False, await served(client, ticket_id))
    assert len(await history_of(client, operator, ticket_id)) == 1


async def test_a_name_that_came_and_went_before_the_change_was_written_is_not_stored(
    service: Any, client: Any, database: Database, strikes: Path
) -> None:
    """Nothing has moved the ticket meanwhile: its document had the right name throughout."""
    ticket_id = await opened(client)
    name = json.loads(await served(client, ticket_id))["unit"]["name"]
    for_many = "SET LOCAL makeready.at_once = '0'"
    rename = Statement(text("UPDATE unit SET name = :name WHERE id = 100").bindparams(bindparam("name", type_=Text)))
    async with database.transaction(for_many) as connection:
        await connection.execute(rename, name="Between")
        await connection.execute(Statement(text("DELETE FROM changes_to_touch")))  # as if its turn came later
    strike(strikes, "write-decided")
    first = asyncio.create_task(change(client, ticket_id, SENT["Completed"]))
    async with stopped(service):
        async with database.transaction(for_many) as connection:
            await connection.execute(rename, name=name)
        worker = ChangeTracking(database, [TICKET_CHANGES])
        while await database.value(Statement(text("SELECT count(*) FROM changes_to_touch"))):
            await worker.run_batch()
    try:
        assert json.loads((await first).body)["unit"]["name"] == "Between"
    except grpc.aio.AioRpcError as fault:  # on a slow machine the service stands still for longer than its caller waits
        assert fault.code() is grpc.StatusCode.UNAVAILABLE

    async def is_completed() -> bool:
        return bool(json.loads(await served(client, ticket_id))["status"] == "Completed")

    await eventually(is_completed)
    assert json.loads(await served(client, ticket_id))["unit"]["name"] == name


async def test_a_process_that_stands_still_holds_a_ticket_for_a_moment_only(
    service: Any, client: Any, database: Database, operator: Any, strikes: Path
) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    async with held(database, ticket_id):
        first = await begun_alone(client, database, ticket_id, key)
        strike(strikes, "write-before-commit")
    # With a longer lock timeout than the service has.
    async with stopped(service), database.transaction("SET LOCAL lock_timeout = '15s'") as connection:
        await connection.execute(Statement(text(f"SELECT FROM ticket WHERE id = {ticket_id} FOR UPDATE")))
    with pytest.raises(grpc.aio.AioRpcError):
        await first
    assert not (await change(client, ticket_id, SENT["Completed"], key)).replayed
    assert len(await history_of(client, operator, ticket_id)) == 1


@pytest.fixture(scope="module")
async def lossy(service: Any) -> AsyncIterator[LossyRoute]:
    """The service's route to its database, which loses a commit on request."""
    # With its own role: the owner's has ten connections, and the tests' own pool may have taken most of them.
    with LossyRoute(service_url(service.database_url)).open() as route:
        service.stop()
        await asyncio.to_thread(service.start, MAKEREADY_DATABASE_URL=route.url)
        yield route
        service.stop()
        service.start()


@pytest.mark.parametrize("lost", ["before", "after"])
async def test_a_connection_lost_around_the_commit_reports_the_true_outcome(
    client: Any, database: Database, operator: Any, lossy: LossyRoute, lost: str
) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    async with held(database, ticket_id):
        lossy.of = key.encode()
        sent = await begun_alone(client, database, ticket_id, key)
        lossy.lose = lost
    try:
        first = await sent
    except grpc.aio.AioRpcError as fault:
        assert (lost, fault.code()) == ("before", grpc.StatusCode.UNAVAILABLE)
    except Refusal as refused:
        # The server holds the claim until it notices the loss or has committed.
        assert refused.code == "idempotency_in_progress"
    else:
        assert (lost, first.status, first.body) == ("after", 200, await served(client, ticket_id))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                again = await change(client, ticket_id, SENT["Completed"], key)
                break
            except Refusal as refused:
                assert refused.code == "idempotency_in_progress"
                await asyncio.sleep(0.01)
    assert lossy.lose == "" and again.replayed is (lost == "after")
    assert again.body == await served(client, ticket_id)
    assert len(await history_of(client, operator, ticket_id)) == 1 and len(await events_of(database, ticket_id)) == 2
