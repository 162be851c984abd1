"""Fetches of records that come together share a statement, and each gets its own answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from chassis.changes.documents import Key
from chassis.changes.reads import RecordReads
from chassis.db import coalescing
from chassis.db.database import Database
from chassis.refusals import Refusal
from testkit.patience import PATIENCE_SECONDS, eventually
from testkit.plans import statement_plan

from .boats import CHANGES, DOCUMENTS, FLEET, OTHERS, RENDERER, boat, filled, run, sail
from .test_documents import PAGES


@pytest.fixture
async def boats(database: Database) -> RecordReads[Any]:
    """Boats 1 to 40 of a fleet and boat 50 of another one, all with their documents."""
    await run(database, sail(*range(1, 41)), sail(50, company_id=OTHERS))
    await filled(database)
    return RecordReads("boat", database, RENDERER, PAGES, CHANGES)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Key]]:
    """The keys of each statement that fetched boats since."""
    fetched_keys: list[Sequence[Key]] = []
    fetch = DOCUMENTS.fetch

    async def recorded(database: Database, renderer: Any, keys: Sequence[Key]) -> Any:
        fetched_keys.append(keys)
        return await fetch(database, renderer, keys)

    monkeypatch.setattr(DOCUMENTS, "fetch", recorded)
    return fetched_keys


async def fetched(boats: RecordReads[Any], *keys: Key) -> list[Any]:
    """By key, in their order: the record's id, or what the fetch raised."""
    answers = await asyncio.gather(*(boats.fetch(*key) for key in keys), return_exceptions=True)
    return [answer if isinstance(answer, BaseException) else json.loads(answer.json)["entity_id"] for answer in answers]


async def test_a_lone_fetch_has_a_statement_of_its_own(
    boats: RecordReads[Any], statements: list[Sequence[Key]]
) -> None:
    assert await fetched(boats, (FLEET, 1)) == [1]
    assert await fetched(boats, (FLEET, 2)) == [2]
    assert statements == [[(FLEET, 1)], [(FLEET, 2)]]


async def test_fetches_that_come_together_share_a_statement(
    boats: RecordReads[Any], statements: list[Sequence[Key]]
) -> None:
    keys = [(FLEET, number) for number in (7, 3, 40, 3, 1, 3)]
    assert await fetched(boats, *keys) == [7, 3, 40, 3, 1, 3]
    assert statements == [keys]


async def test_what_comes_while_a_statement_runs_shares_the_next(
    database: Database,
    boats: RecordReads[Any],
    statements: list[Sequence[Key]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coalescing, "PATIENCE_SECONDS", 3600)
    async with database.transaction("LOCK TABLE boat IN ACCESS EXCLUSIVE MODE"):
        first = asyncio.create_task(boats.fetch(FLEET, 1))

        async def is_asked() -> bool:
            return statements == [[(FLEET, 1)]]

        await eventually(is_asked)
        others = [asyncio.create_task(boats.fetch(FLEET, number)) for number in (2, 3)]
        await asyncio.sleep(0)
    answers = await asyncio.gather(first, *others)
    assert [json.loads(document.json)["entity_id"] for document in answers] == [1, 2, 3]
    assert statements == [[(FLEET, 1)], [(FLEET, 2), (FLEET, 3)]]


async def test_each_company_sees_its_own_records_alone(
    database: Database, boats: RecordReads[Any], statements: list[Sequence[Key]]
) -> None:
    await run(database, "UPDATE boat SET is_public = false WHERE id = 4")
    keys = [(FLEET, 1), (FLEET, 50), (OTHERS, 50), (OTHERS, 1), (FLEET, 4), (FLEET, 99)]
    answers = await fetched(boats, *keys)
    assert statements == [keys]  # what is not there is not asked for again
    assert answers[0] == 1 and answers[2] == 50
    refused = [answer for place, answer in enumerate(answers) if place not in (0, 2)]
    assert all(isinstance(answer, Refusal) and (answer.status, answer.code) == (404, "not_found") for answer in refused)
    assert len({answer.message for answer in refused}) == 1


async def test_a_record_without_a_document_is_rendered_among_others(
    database: Database, boats: RecordReads[Any], statements: list[Sequence[Key]]
) -> None:
    await run(database, "UPDATE boat SET name = 'Renamed', version = version + 1 WHERE id IN (2, 3)")
    answers = await asyncio.gather(*(boats.fetch(FLEET, number) for number in (1, 2, 3, 2)))
    names = [json.loads(document.json)["name"] for document in answers]
    assert names[1:] == ["Renamed"] * 3 != names[:1] * 3
    assert [document.version for document in answers] == [1, 2, 2, 2]
    assert len(statements) == 1


async def test_a_statement_that_fails_is_repeated_one_by_one(
    boats: RecordReads[Any], statements: list[Sequence[Key]]
) -> None:
    too_large = (FLEET, 2**63)
    first, failed, last = await fetched(boats, (FLEET, 1), too_large, (FLEET, 2))
    assert (first, last) == (1, 2) and isinstance(failed, Exception) and not isinstance(failed, Refusal)
    assert statements == [[(FLEET, 1), too_large, (FLEET, 2)], [(FLEET, 1)], [too_large], [(FLEET, 2)]]


async def test_a_caller_that_leaves_leaves_the_others_their_records(boats: RecordReads[Any]) -> None:
    leaving, staying = (asyncio.create_task(boats.fetch(FLEET, number)) for number in (1, 2))
    await asyncio.sleep(0)
    leaving.cancel()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert json.loads((await staying).json)["entity_id"] == 2
        assert await fetched(boats, (FLEET, 1)) == [1]
    assert leaving.cancelled()


async def test_a_slow_statement_does_not_hold_up_the_next(
    database: Database, boats: RecordReads[Any], statements: list[Sequence[Key]]
) -> None:
    await run(database, "UPDATE boat SET document = NULL WHERE id = 1")
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with database.transaction("LOCK TABLE harbour IN ACCESS EXCLUSIVE MODE") as holder:
        slow = asyncio.create_task(boats.fetch(FLEET, 1))  # shows its harbour's name

        async def is_waiting() -> bool:
            return bool(await holder.raw.fetchval(waits))

        await eventually(is_waiting)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await fetched(boats, (FLEET, 2)) == [2]
        assert not slow.done()
    assert json.loads((await slow).json)["entity_id"] == 1
    assert statements == [[(FLEET, 1)], [(FLEET, 2)]]


async def test_a_shared_statement_meets_its_own_rows_alone(database: Database, boats: RecordReads[Any]) -> None:
    await run(database, sail(*range(1000, 6000)), "ANALYZE boat")
    ids = [1, 5, 5, 17, 3000, 5999, 50, 7000]
    plan = await statement_plan(database, DOCUMENTS._fetched, company_ids=[FLEET] * len(ids), ids=ids)
    assert plan.returned == 6
    assert plan.rows_met <= 4 * len(ids), plan
    assert boat.name not in plan.whole_tables
