"""Feeds of changes on a database: every record once, at its latest state, whatever is under way; renames; restores."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from chassis.changes import feed
from chassis.changes.documents import Documents
from chassis.changes.feed import Changes
from chassis.changes.positions import unpacked
from chassis.changes.tables import Follow, make_followable
from chassis.changes.tracking import ChangeTracking, HorizonAge
from chassis.db.database import Database
from chassis.refusals import Refusal, Unavailable

from .boats import (
    CHANGES,
    CRATE,
    CRATES,
    FLEET,
    OTHERS,
    RENDERER,
    Ask,
    boat,
    captain,
    crate,
    filled,
    gone,
    harbour,
    ids,
    others_ended,
    page,
    present,
    records,
    run,
    sail,
    waiting,
    walk,
)


async def test_a_record_appears_once_at_its_latest_state(database: Database) -> None:
    await run(database, sail(1, 2, 3), sail(9, company_id=OTHERS), sail(4))
    first = await page(database, limit=3)
    assert (ids(first), first.more) == ([1, 2, 3], True)
    second = await page(database, first.position)
    assert (ids(second), second.more) == ([4], False)
    assert not (await page(database, second.position)).documents

    await run(database, "UPDATE boat SET name = 'Again' WHERE id = 2", "UPDATE boat SET name = 'New' WHERE id = 2")
    again = await page(database, second.position)
    assert again.documents == [
        b'{"schema_version":1,"entity_type":"boat","entity_id":2,"gone":false,"record":'
        b'{"schema_version":1,"entity_type":"boat","entity_id":2,"name":"New",'
        b'"harbour":{"id":1,"name":"Hull"},"captain":null,"url":"https://boats.example/boats/2"}}'
    ]
    assert ids(await page(database)) == [1, 3, 4, 2]  # from the beginning: each once


async def test_a_record_that_is_not_served_is_gone_until_it_is_served_again(database: Database) -> None:
    await run(database, sail(1))
    before = await page(database)
    await run(database, "UPDATE boat SET is_public = false")
    gone = await page(database, before.position)
    assert gone.documents == [
        b'{"schema_version":1,"entity_type":"boat","entity_id":1,"gone":true,"record":null}',
    ]
    await run(database, "UPDATE boat SET is_public = true")
    assert records(await page(database, gone.position))[0]["name"] == "Boat 1"


async def test_a_reader_does_not_hear_of_what_was_gone_before_it_began(database: Database) -> None:
    await run(
        database,
        sail(*range(1, 31)),
        "UPDATE boat SET is_public = false WHERE id % 3 > 0",
        "UPDATE boat SET is_public = true WHERE id = 1",
    )
    first = await page(database, limit=2)
    assert (ids(first), first.more) == ([3, 6], True)
    snapshot = await present(database)
    # What changes once it has begun: records that it has, that it does not have yet, and that are gone.
    await run(
        database,
        "UPDATE boat SET is_public = false WHERE id IN (3, 1, 30)",
        "UPDATE boat SET name = 'Again' WHERE id IN (2, 6)",
    )
    walked = [first, *await walk(database, first.position)]
    assert [boat_id for feed_page in walked for boat_id in ids(feed_page)] == [3, 6, *range(9, 30, 3), 1, 3, 30, 2, 6]
    assert {boat_id for feed_page in walked for boat_id in gone(feed_page)} == {1, 3, 30, 2}
    assert [(ids(feed_page), gone(feed_page)) for feed_page in await walk(database, snapshot.position)] == [
        ([1, 3], [1, 3]), ([30, 2], [30, 2]), ([6], [])
    ]  # fmt: skip
    later = [boat_id for feed_page in await walk(database) for boat_id in ids(feed_page)]
    assert later == [*range(9, 30, 3), 6]


async def test_a_page_passes_many_records_that_are_of_no_use_to_its_reader(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(database, sail(*range(1, 1501)), "UPDATE boat SET is_public = false WHERE id < 1500", sail(1501))
    assert [(ids(feed_page), feed_page.more) for feed_page in await walk(database)] == [([1500, 1501], False)]
    monkeypatch.setattr(feed, "PASSES_MAX", 2)
    pages = await walk(database)
    assert [feed_page.more for feed_page in pages] == [True] * (len(pages) - 1) + [False]
    assert [boat_id for feed_page in pages for boat_id in ids(feed_page)] == [1500, 1501] and len(pages) > 5


async def test_what_an_open_transaction_may_change_is_not_passed(database: Database) -> None:
    """The transaction that began first commits last: a reader by time or by a counter would miss its record."""
    async with database.transaction() as early:
        await early.raw.execute(sail(1))
        await run(database, sail(2))
        waiting = await page(database)
        assert (ids(waiting), waiting.more) == ([], False)
        now = await present(database)
    assert ids(await page(database, waiting.position)) == [1, 2]
    # Both ended after that position was taken: they are after it, whoever has seen them meanwhile.
    assert ids(await page(database, now.position)) == [1, 2]
    after = await present(database)
    assert not after.documents
    assert not (await page(database, after.position)).documents


async def test_the_present_position_is_that_of_a_record(database: Database) -> None:
    """A crash takes back the numbers of transactions that left nothing on disk; others get them anew."""
    assert (await present(database)).position == (await page(database)).position
    await run(database, sail(1, 2))
    last = await page(database)
    assert ids(last) == [1, 2]
    await run(database, "BEGIN; SELECT pg_current_xact_id(); ROLLBACK", sail(9, company_id=OTHERS))
    now = await present(database)
    assert (now.position, list(now.documents)) == (last.position, [])


async def test_readers_miss_nothing_of_many_writers(database: Database) -> None:
    writers, each = 6, 40
    ended = asyncio.Event()

    async def write(writer: int) -> None:
        for number in range(each):
            async with database.transaction() as connection:
                await connection.raw.execute(sail(writer * each + number + 1))
                await asyncio.sleep(0.001 * (number % 3))
                await connection.raw.execute("UPDATE boat SET version = version + 1 WHERE id = $1", writer * each + 1)

    async def read() -> dict[int, Any]:
        copy: dict[int, Any] = {}
        position = b""
        while True:
            is_last = ended.is_set()
            feed = await page(database, position, limit=7)
            position = feed.position
            copy.update(zip(ids(feed), feed.documents, strict=True))
            if is_last and not feed.more:
                return copy

    reader = asyncio.create_task(read())
    await asyncio.gather(*(write(number) for number in range(writers)))
    ended.set()
    assert sorted(await reader) == list(range(1, writers * each + 1))


async def test_renames_move_the_records_that_show_them(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await run(
        database,
        sail(*range(1, 2501)),
        sail(3001, harbour_id=2),
    )
    await filled(database)
    worker = ChangeTracking(database, [CHANGES])
    heard: list[Any] = []
    monkeypatch.setattr(database, "committed", heard.extend)
    after = (await present(database)).position
    await run(database, "UPDATE harbour SET depth = 8", "UPDATE harbour SET name = name")
    assert await worker.run_batch() == 0, "nothing that a boat shows has changed"

    await run(database, "UPDATE harbour SET name = 'Kingston' WHERE id = 1")
    await run(database, "UPDATE harbour SET name = 'Burntisland' WHERE id = 2")
    moved = [(await worker.run_batch(), waiting())]
    # A process that dies here leaves the rest to another one.
    moved += [(await ChangeTracking(database, [CHANGES]).run_batch(), waiting()) for _ in range(5)]
    # The one boat in the other harbour moved at once; here it is rendered, and compared. While a transaction of another
    # test is under way on the server, that comes later.
    assert moved[0] in ((501, 2501), (500, 2501))
    assert moved[1:] == [(500, 2001), (500, 1501), (500, 1001), (500, 501), (1, 1)]
    assert heard == [(FLEET, "boat", 0)] * 5

    met: list[Any] = []
    while (feed := await page(database, after, limit=200)).documents:
        met += records(feed)
        after = feed.position
    assert sorted(record["entity_id"] for record in met) == [*range(1, 2501), 3001]
    assert {record["harbour"]["name"] for record in met} == {"Kingston", "Burntisland"}
    async with database.connection() as connection:
        assert await connection.raw.fetchval("SELECT max(version) FROM boat") == 1, "only its place has changed"


async def test_rows_that_come_and_go_move_the_record(database: Database) -> None:
    await run(database, sail(1, 2))
    await filled(database)
    position = (await page(database)).position
    for change, captain_name in (
        (f"INSERT INTO captain VALUES ({FLEET}, 1, 'Ada')", "Ada"),
        ("UPDATE captain SET name = 'Grace'", "Grace"),
        ("DELETE FROM captain", None),
    ):
        await run(database, change)
        await filled(database)
        feed = await page(database, position)
        assert [(record["entity_id"], record["captain"]) for record in records(feed)] == [(1, captain_name)]
        position = feed.position


async def test_positions_end_with_their_history(database: Database) -> None:
    await run(database, sail(1))
    position = (await page(database)).position
    at = unpacked(position)
    for other in (
        at._replace(epoch=at.epoch + 1).packed(),
        at._replace(xid=at.xid + 10**6).packed(),  # from the future: the server has forgotten it
        position[:-1],
    ):
        with pytest.raises(Refusal) as refused:
            await page(database, other)
        assert (refused.value.status, refused.value.code) == (410, "cursor_expired")
    async with database.transaction() as connection:
        await ChangeTracking(database, [CHANGES]).end_positions(connection)
    with pytest.raises(Refusal):
        await page(database, position)
    assert ids(await page(database)) == [1]


async def test_records_of_another_servers_backup_are_served_once_they_are_in_order(database: Database) -> None:
    await run(database, sail(1, 3), sail(4, company_id=OTHERS))
    position = (await page(database)).position
    unknown = 10**15  # a transaction that this server will not begin for long
    copied = ", ".join(
        f"({company_id}, {n}, 'Copied', 1, '{unknown + n}')" for company_id, n in ((FLEET, 2), (FLEET, 5), (OTHERS, 6))
    )
    await run(
        database,
        f"INSERT INTO boat (company_id, id, name, harbour_id, changed_xid) VALUES {copied}",
        "UPDATE changes_epoch SET system = 1",
    )
    worker = ChangeTracking(database, [CHANGES])
    with pytest.raises(Unavailable):
        await page(database)
    await worker.take_over()
    with pytest.raises(Refusal):
        await page(database, position)
    assert ids(await page(database)) == [1, 3, 2, 5]
    await others_ended(database)
    assert ids(await CHANGES.feed(database, OTHERS, Ask(), RENDERER)) == [4, 6]


def test_the_age_of_the_horizon() -> None:
    horizon = HorizonAge()
    assert horizon.age(xmin=5, xmax=5, now=100.0) == 0.0
    assert horizon.age(xmin=5, xmax=6, now=102.0) == 2.0  # 5 is under way since 100 at the latest
    assert horizon.age(xmin=5, xmax=9, now=104.0) == 4.0
    assert horizon.age(xmin=6, xmax=9, now=106.0) == 4.0
    assert horizon.age(xmin=9, xmax=9, now=108.0) == 0.0


async def test_a_column_beside_the_record_moves_none_and_a_record_that_is_not_served_does_not_follow(
    database: Database,
) -> None:
    tracking = ChangeTracking(database, [Changes("crate", Documents(CRATE, CRATES, crate))])
    await run(
        database,
        f"INSERT INTO crate (company_id, id, weight, harbour_id, is_public) VALUES ({FLEET}, 1, 0, 1, true),"
        f" ({FLEET}, 2, 0, 1, false)",
    )

    async def moved(change: str) -> list[int]:
        async with database.connection() as connection:
            before = await connection.raw.fetchval("SELECT max(changed_xid) FROM crate")
            await connection.raw.execute(change)
            while await tracking.run_batch():
                pass
            rows = await connection.raw.fetch("SELECT id FROM crate WHERE changed_xid > $1 ORDER BY id", before)
        return [row["id"] for row in rows]

    assert await moved("UPDATE crate SET counted = counted + 1") == []
    assert await moved("UPDATE crate SET counted = 7, weight = 3 WHERE id = 1") == [1]
    assert await moved("UPDATE crate SET weight = '-0' WHERE id = 2") == [2], "JSON has -0.0 for it"
    assert await moved("UPDATE harbour SET name = 'Moved'") == [1]
    assert await moved("UPDATE crate SET is_public = true WHERE id = 2") == [2]


def test_a_feed_that_shows_what_nothing_follows_is_refused() -> None:
    joined = boat.join(harbour, harbour.c.id == boat.c.harbour_id)
    with pytest.raises(TypeError, match=r"show harbour\.depth by harbour_id, and nothing follows it"):
        Changes("boat", sa.select(boat.c.id, harbour.c.depth).select_from(joined), boat)
    # By a column that the follow does not name.
    by_other = boat.join(harbour, harbour.c.id == boat.c.version)
    with pytest.raises(TypeError, match=r"harbour\.name by version"):
        Changes("boat", sa.select(boat.c.id, harbour.c.name).select_from(by_other), boat)
    counted = sa.select(sa.func.count(captain.c.name)).where(captain.c.name == boat.c.name).scalar_subquery()
    with pytest.raises(TypeError, match=r"show captain\.name by name"):
        Changes("boat", sa.select(boat.c.id, counted), boat)
    with pytest.raises(TypeError, match="show counted, whose changes move no record"):
        Changes("crate", sa.select(crate.c.id, crate.c.counted), crate)
    with pytest.raises(TypeError, match="see `make_followable`"):
        Changes("harbour", sa.select(harbour.c.id), harbour)
    with pytest.raises(TypeError, match=r"harbour\.length, which does not exist"):
        make_followable(
            sa.Table("raft", sa.MetaData(), *(sa.Column(n, sa.BigInteger) for n in ("company_id", "id"))),
            Follow("id", harbour, "length"),
        )
    with pytest.raises(TypeError, match="raft follows other tables and has no documents"):
        make_followable(
            sa.Table("raft", sa.MetaData(), *(sa.Column(n, sa.BigInteger) for n in ("company_id", "id"))),
            Follow("id", harbour, "name"),
            has_documents=False,
        )
