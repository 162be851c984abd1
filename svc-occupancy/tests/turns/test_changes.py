"""Turns in the order of their last change: what a turn shows, when it appears again, and to whom."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import func, select, update

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.common.v1.documents_pb2 import Feed
from makeready.occupancy.v1 import turns_pb2 as pb
from svc_occupancy import tables as t

from ..harness import Company, until

WAITING = Statement(select(func.count()).select_from(t.changes_to_touch))


async def page(company: Company, **request: Any) -> Feed:
    """A page of the company's changes; default: of ten documents."""
    message = pb.ListTurnChangesRequest(**{"limit": 10, **request})
    feed: Feed = (await company.house("ListTurnChanges", message, company.caller)).feed
    return feed


async def page_of(documents: int, company: Company, position: bytes = b"") -> Feed:
    """Waits for a page of so many documents: any other transaction of the server may delay it."""

    async def found() -> int:
        return len((await page(company, position=position)).documents)

    await until(found, documents)
    return await page(company, position=position)


def items(feed: Feed) -> list[dict[str, Any]]:
    return [json.loads(document) for document in feed.documents]


async def all_touched(served: Database) -> None:
    """Waits until no record is left to move."""

    async def left() -> Any:
        return await served.value(WAITING)

    await until(left, 0)


@pytest.fixture
async def moved_in(company: Company) -> tuple[int, int]:
    """The ids of a unit and its turn."""
    await company.make_units("U1", "U2")
    ids = await company.unit_ids()
    return ids["U1"], (await company.move_in(ids["U1"]))["entity_id"]


async def test_a_turn_appears_once_as_its_fetch_serves_it(company: Company, moved_in: tuple[int, int]) -> None:
    unit_id, turn_id = moved_in
    await company.notice(unit_id)
    feed = await page_of(1, company)
    head = f'{{"schema_version":1,"entity_type":"turn","entity_id":{turn_id},"gone":false,"record":'.encode()
    assert list(feed.documents) == [head + await company.served_turn(turn_id) + b"}"]
    assert not feed.more and not (await page(company, position=feed.position)).documents

    await company.command("ScheduleTurn", turn_id=turn_id, projected_ready_on="2999-02-10")
    (item,) = items(await page_of(1, company, feed.position))
    assert item["record"]["projected_ready_on"] == "2999-02-10"


async def test_each_way_of_writing_moves_the_turn(company: Company, moved_in: tuple[int, int]) -> None:
    """The end of the turn before is a change, too; so is a file that says that it changed last year."""
    unit_id, first = moved_in
    position = (await page_of(1, company)).position
    await company.notice(unit_id, "2026-01-31")
    await company.move_in(unit_id, external_id="R2")
    feed = await page_of(2, company, position)
    ended, begun = items(feed)
    assert (ended["entity_id"], ended["record"]["status"]) == (first, "Completed")
    assert (begun["record"]["external_id"], begun["record"]["status"]) == ("R2", "Active")

    old = {"external_id": "T-1", "unit": "U2", "created_at": "2024-01-01", "updated_at": "2024-02-01T00:00:00Z"}
    assert await company.put("turns", old) == ["created"]
    feed = await page_of(1, company, feed.position)
    assert [change["record"]["updated_at"] for change in items(feed)] == ["2024-02-01T00:00:00.000000Z"]
    assert await company.put("turns", old) == ["unchanged"]
    assert not (await page(company, position=feed.position)).documents


async def test_a_rename_of_the_place_moves_its_turns_and_nothing_else_of_them(
    company: Company, moved_in: tuple[int, int], served: Database
) -> None:
    turn_id = moved_in[1]
    feed = await page_of(1, company)
    (before,) = items(feed)
    rows = {
        "property": {"external_id": "P1", "name": "Oak Court", "address": "1 Elm St"},
        "unit": {"external_id": "U1", "property": "P1", "name": "Oak 1"},
    }
    for kind, row in rows.items():
        assert await company.put({"property": "properties", "unit": "units"}[kind], row) == ["changed"]

        async def shown(kind: str = kind) -> Any:
            return json.loads(await company.served_turn(turn_id))[kind]["name"]

        await until(shown, row["name"])
        await all_touched(served)
        feed = await page_of(1, company, feed.position)
        before["record"][kind]["name"] = row["name"]
        assert items(feed) == [before], "neither updated_at nor anything else"

    # An address is no part of a turn.
    await company.put("properties", rows["property"] | {"address": "2 Elm St"})
    await all_touched(served)
    assert not (await page(company, position=feed.position)).documents


async def test_a_company_follows_its_own_turns_alone(
    company: Company, moved_in: tuple[int, int], new_company: Callable[[], Awaitable[Company]], served: Database
) -> None:
    stranger = await new_company()
    read_to = (await page_of(1, company)).position
    assert not (await page(stranger, limit=200)).documents
    now = await page(company, from_now=True)
    assert (list(now.documents), now.more, now.position) == ([], False, read_to)

    # After a restore every position ends.
    async with served.transaction() as connection:
        await connection.execute(Statement(update(t.changes_epoch).values(epoch=func.gen_random_uuid())))
    for position in (read_to, now.position, b"x"):
        with pytest.raises(Refusal) as refused:
            await page(company, position=position)
        assert (refused.value.status, refused.value.code) == (410, "cursor_expired")
    assert items(await page(company))[0]["entity_id"] == moved_in[1]
