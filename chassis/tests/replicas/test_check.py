"""Rows of events checked with their owner, and replicas compared with it, over real gRPC and PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import TokenSigner, make_keys
from chassis.db.database import Database
from chassis.messaging.consumer import Produced
from chassis.messaging.outbox import uuid7
from chassis.refusals import Refusal
from chassis.replicas import check
from chassis.replicas.check import ReplicaCheck
from chassis.replicas.resync import ROWS, ReplicaSource
from chassis.replicas.tables import Replica, Replicas
from makeready.events.v1 import events_pb2
from makeready.events.v1 import replicas_pb2 as pb
from testkit.grpc_servers import serve
from testkit.plugin import PostgresServer
from testkit.processes import free_port

from ..databases import database_with
from ..parcels import service
from .directory import OWNED, company, metadata, staff

OWNER = "svc-directory"
Row = tuple[int, int, int, str]  # id, version, company, name


class Pair:
    """An owner, a replica of its rows, and the check between them."""

    def __init__(self, owner: Database, replica: Database) -> None:
        self.owner, self.replica = owner, replica
        self.asked = 0
        self.before_answer: Callable[[], Awaitable[Any]] | None = None
        self.replicas = Replicas({"companies": Replica(company), "staff": Replica(staff)}, dict.fromkeys(OWNED, OWNER))
        self._source = ReplicaSource(owner, OWNED)
        self.check: ReplicaCheck

    async def ListReferences(self, request: pb.ListReferencesRequest, _context: Any) -> pb.ListReferencesResponse:
        self.asked += 1
        answer = await self._source.ListReferences(request, service())
        if self.before_answer is not None:
            await self.before_answer()
        return answer

    async def has(self, *rows: Row) -> None:
        await put(self.owner, *rows)

    async def stores(self, *rows: Row) -> None:
        await put(self.replica, *rows)

    async def stored(self) -> list[Row]:
        async with self.replica.connection() as connection:
            rows = await connection.raw.fetch("SELECT id, version, company_id, name FROM staff ORDER BY id")
        return [tuple(row) for row in rows]

    async def arrives(self, *rows: Row, producer: str = OWNER) -> set[str]:
        """An event with these rows is examined and stored. Returns the ids that wait."""
        references = [
            events_pb2.StaffReference(id=row_id, version=version, company_id=company_id, name=name)
            for row_id, version, company_id, name in rows
        ]
        event = events_pb2.Event(event_id=str(uuid7()), references=events_pb2.References(staff=references))
        waiting = await self.check.examine([Produced(producer, event)])
        if not waiting:
            async with self.replica.transaction() as connection:
                await self.replicas.put(connection, [event.references])
        return waiting


async def put(database: Database, *rows: Row) -> None:
    async with database.connection() as connection:
        for row in rows:
            await connection.raw.execute(
                "INSERT INTO staff (id, version, company_id, name) VALUES ($1, $2, $3, $4) ON CONFLICT (id)"
                " DO UPDATE SET version = $2, company_id = $3, name = $4",
                *row,
            )


@pytest.fixture(scope="module")
async def databases(postgres_server: PostgresServer) -> AsyncIterator[tuple[Database, Database]]:
    async with (
        database_with(postgres_server, "chassis_check_owner", metadata) as owner,
        database_with(postgres_server, "chassis_check", metadata) as replica,
    ):
        yield owner, replica


@pytest.fixture
async def pair(databases: tuple[Database, Database], tmp_path: Path) -> AsyncIterator[Pair]:
    for database in databases:
        async with database.connection() as connection:
            await connection.raw.execute("TRUNCATE company, staff")
    joined = Pair(*databases)
    server = grpc.aio.server()
    serve(server, pb.DESCRIPTOR.services_by_name["ReplicaSourceService"], joined)
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    make_keys(tmp_path, ["svc-parcels"])
    client = ServiceClient(OWNER, target, TokenSigner(tmp_path / "svc-parcels.jwk"))
    joined.check = ReplicaCheck(joined.replica, joined.replicas, dict.fromkeys(OWNED, client), 3600)
    yield joined
    await client.close()
    await server.stop(None)


async def test_rows_that_follow_each_other_are_stored_without_a_question(pair: Pair) -> None:
    await pair.arrives((1, 1, 7, "a"), (2, 1, 8, "b"))
    await pair.arrives((1, 2, 7, "a2"))
    await pair.arrives((1, 4, 7, "a4"), (1, 3, 7, "a3"))
    await pair.arrives((1, 4, 7, "a4"))  # again
    assert await pair.stored() == [(1, 4, 7, "a4"), (2, 1, 8, "b")] and pair.asked == 0


async def test_a_row_that_changes_company_is_the_owners(pair: Pair) -> None:
    await pair.has((1, 1, 7, "a"), (2, 2, 9, "moved"))
    await pair.arrives((1, 1, 7, "a"), (2, 1, 8, "b"))
    await pair.arrives((1, 2, 8, "forged"), (2, 2, 9, "moved"))
    assert await pair.stored() == [(1, 1, 7, "a"), (2, 2, 9, "moved")]
    assert pair.asked == 1


async def test_a_row_that_skips_versions_is_the_owners(pair: Pair) -> None:
    await pair.has((1, 1, 7, "a"), (2, 9, 8, "b9"), (3, 6, 8, "c6"))
    await pair.arrives((1, 1, 7, "a"), (2, 1, 8, "b"))
    await pair.arrives((1, 2**62, 7, "forged"), (2, 7, 8, "b7"), (3, 5, 8, "c5"), (4, 2, 8, "nobody's"))
    assert await pair.stored() == [(1, 1, 7, "a"), (2, 9, 8, "b9"), (3, 6, 8, "c6")]


async def test_a_row_that_contradicts_the_stored_one_corrects_it(pair: Pair) -> None:
    await pair.has((1, 2, 7, "a2"), (2, 2, 7, "b2"))
    await pair.stores((1, 2**62, 9, "frozen"), (2, 2, 7, "forged"))
    await pair.arrives((1, 2, 7, "a2"), (2, 2, 7, "b2"))
    assert await pair.stored() == [(1, 2, 7, "a2"), (2, 2, 7, "b2")]


async def test_a_late_event_of_an_old_version_changes_nothing(pair: Pair) -> None:
    await pair.has((1, 5, 7, "a5"))
    await pair.stores((1, 5, 7, "a5"))
    await pair.arrives((1, 3, 7, "a3"))
    assert await pair.stored() == [(1, 5, 7, "a5")]


async def test_rows_of_a_producer_that_does_not_own_them_are_left_out(pair: Pair) -> None:
    await pair.stores((1, 1, 7, "a"))
    assert await pair.arrives((1, 2, 7, "forged"), (2, 1, 7, "forged"), producer="svc-elsewhere") == set()
    assert await pair.stored() == [(1, 1, 7, "a")] and pair.asked == 0


async def test_an_event_in_doubt_waits_while_its_owner_is_away_and_others_do_not(pair: Pair, tmp_path: Path) -> None:
    client = ServiceClient(OWNER, f"127.0.0.1:{free_port()}", TokenSigner(tmp_path / "svc-parcels.jwk"))
    pair.check = ReplicaCheck(pair.replica, pair.replicas, dict.fromkeys(OWNED, client), 3600)
    assert await pair.arrives((1, 1, 7, "a")) == set()
    assert len(await pair.arrives((1, 5, 7, "a5"))) == 1
    assert await pair.arrives((1, 2, 7, "a2")) == set()
    assert await pair.stored() == [(1, 2, 7, "a2")]
    assert await pair.check.compare_all() == 0
    await client.close()


async def test_a_row_that_changes_while_the_owner_answers_keeps_the_later_version(pair: Pair) -> None:
    await pair.has((1, 4, 7, "a4"))
    await pair.stores((1, 2**62, 9, "frozen"))

    async def a_later_event() -> None:
        await pair.stores((1, 5, 7, "a5"))

    pair.before_answer = a_later_event
    assert await pair.check.compare_all() == 0
    assert await pair.stored() == [(1, 5, 7, "a5")]


async def test_the_comparison_corrects_every_row_and_hides_those_that_the_owner_lacks(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "PAGE_ROWS", 10)
    monkeypatch.setattr(check, "PAUSE_SECONDS", 0.0)
    true: list[Row] = [(number, 3, 7 + number % 2, f"n{number}") for number in range(1, 36)]
    await pair.has(*true)
    await pair.stores(*true)
    assert await pair.check.compare_all() == 0
    await pair.stores((3, 2**62, 9, "frozen"), (14, 3, 8, "forged"), (25, 3, 9, "n25"), (33, 1, 8, "old"))
    await pair.stores((99, 4, 7, "nobody's"))
    assert await pair.check.compare_all() == 4  # the old row was not wrong
    assert await pair.stored() == [*true, (99, 0, 7, "nobody's")]
    assert await pair.check.compare_all() == 0


async def test_an_owner_that_has_lost_its_rows_hides_none(pair: Pair) -> None:
    await pair.stores((1, 1, 7, "a"), (2, 1, 7, "b"))
    assert await pair.check.compare_all() == 0
    assert await pair.stored() == [(1, 1, 7, "a"), (2, 1, 7, "b")]


async def test_an_owner_refuses_kinds_that_it_has_not_and_too_many_places(pair: Pair) -> None:
    source = ReplicaSource(pair.owner, OWNED)
    for request in (
        pb.ListReferencesRequest(kind="units"),
        pb.ListReferencesRequest(kind="staff", places=[pb.Place(id=1)] * (ROWS + 1)),
    ):
        with pytest.raises(Refusal):
            await source.ListReferences(request, service())
