"""Documents: every read serves what rendering gives, whatever writes a record or what it shows, and when."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa

from chassis.changes.documents import ONE_SNAPSHOT
from chassis.changes.reads import RecordReads
from chassis.changes.tables import NAMES_SEEN, names_are_current
from chassis.changes.tracking import BATCH_ROWS, ChangeTracking
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.lists.paging import Pages
from chassis.refusals import Refusal
from testkit.plans import statement_plan
from testkit.stored_documents import compare_documents

from .boats import (
    BOAT,
    CHANGES,
    DOCUMENTS,
    FLEET,
    OTHERS,
    RENDERER,
    boat,
    filled,
    harbour,
    metadata,
    others_ended,
    run,
    sail,
    settled,
)

HEAD = b'{"schema_version":1,"entity_type":"boat","entity_id":%d,"gone":false,"record":'
PAGES = Pages(DOCUMENTS.rows, boat.c.id, {}, boat.c.is_public)


@dataclass
class Ask:
    after_id: int = 0
    limit: int = 50
    position: bytes = b""
    from_now: bool = False


def reads(database: Database, base: str = "https://boats.example") -> RecordReads[Any]:
    return RecordReads("boat", database, BOAT.renderer(base), PAGES, CHANGES)


async def served(database: Database, boat_id: int = 1, *, is_followed: bool = True) -> Any:
    """A boat as its fetch serves it; the list and the feed agree to the byte. is_followed: whether the feed has it, as
    while no transaction is open."""
    await others_ended(database)
    boats = reads(database)
    fetched = (await boats.fetch(FLEET, boat_id)).json
    page: Any = Ask(after_id=boat_id - 1, limit=1)
    assert (await boats.page(FLEET, page, {})).data == b"[%b]" % fetched
    if is_followed:
        feed = await boats.feed(FLEET, Ask())
        documents: list[bytes] = []
        while feed.documents:
            documents += feed.documents
            feed = await boats.feed(FLEET, Ask(position=feed.position))
        assert [document for document in documents if b'"entity_id":%d,"gone"' % boat_id in document] == [
            b"%b%b}" % (HEAD % boat_id, fetched)
        ]
    return json.loads(fetched)


async def stored(database: Database, boat_id: int = 1) -> bytes | None:
    """The document of a boat; None if it is missing."""
    async with database.connection() as connection:
        row = await connection.raw.fetchrow("SELECT document, document_shape FROM boat WHERE id = $1", boat_id)
    return row["document"] if row["document_shape"] == BOAT.number else None


async def write_with_document(connection: Any, boat_id: int, name: str, harbour_name: str) -> None:
    """Inserts a boat in harbour 1 with the document that a writer has rendered who knows this name of the harbour."""
    values: dict[Any, Any] = {
        boat.c.id: boat_id,
        boat.c.name: name,
        boat.c.version: 1,
        harbour.c.id: 1,
        harbour.c.name: harbour_name,
    }
    document = RENDERER.stored(BOAT.row(values))
    await connection.raw.execute(
        "INSERT INTO boat (company_id, id, name, harbour_id, document, document_shape) VALUES ($1, $2, $3, 1, $4, $5)",
        FLEET,
        boat_id,
        name,
        document,
        BOAT.number,
    )


async def test_a_record_is_served_alike_before_and_after_it_has_its_document(database: Database) -> None:
    await run(database, sail(1, 2, 3))
    assert await stored(database) is None
    before = [await served(database, n) for n in (1, 2, 3)]
    await filled(database)
    assert b'"url":"\0/boats/1"' in (await stored(database) or b"")
    assert [await served(database, n) for n in (1, 2, 3)] == before
    assert await compare_documents(database, CHANGES) == {"boat": 3}


async def test_a_document_serves_whatever_the_base_of_the_links(database: Database) -> None:
    await run(database, sail(1), "UPDATE boat SET name = '\\u0000 \"\\u0000/boats' || chr(1)")
    for _ in range(2):
        for base in ("", 'https://elsewhere.example/a\\b"ä'):
            record = json.loads((await reads(database, base).fetch(FLEET, 1)).json)
            assert (record["name"], record["url"]) == ('\\u0000 "\\u0000/boats\x01', f"{base}/boats/1")
        await filled(database)


async def test_a_statement_that_changes_a_record_and_stores_no_document_leaves_none(database: Database) -> None:
    await run(database, sail(1))
    for change in (
        "UPDATE boat SET name = 'Partial'",
        "UPDATE boat SET changed_xid = pg_current_xact_id()",  # a release that moves records and knows no document
        f"UPDATE boat SET name = 'Old shape', document = '{{}}', document_shape = {BOAT.number - 1}",
    ):
        await filled(database)
        kept = await stored(database)
        await run(database, "UPDATE boat SET name = name")
        assert kept is not None and await stored(database) == kept, "nothing changes"
        await run(database, change)
        assert await stored(database) is None
        await served(database)
    await filled(database)
    assert (await served(database))["name"] == "Old shape"
    await run(database, "UPDATE boat SET document = 'x', document_shape = 1, name = 'With one'")
    async with database.connection() as connection:
        assert await connection.raw.fetchval("SELECT document FROM boat") == b"x"


async def test_a_fetch_takes_several_keys_and_finds_those_of_the_company(database: Database) -> None:
    await run(database, sail(1, 2, 4), sail(3, company_id=OTHERS), "UPDATE boat SET is_public = false WHERE id = 4")
    await filled(database)
    await run(database, "UPDATE boat SET name = 'Renamed' WHERE id = 2")  # has no document
    keys = [(FLEET, 2), (FLEET, 3), (FLEET, 1), (OTHERS, 3), (FLEET, 4), (FLEET, 2), (FLEET, 9)]
    fetched = await DOCUMENTS.fetch(database, RENDERER, keys)
    assert [None if document is None else document.entity_id for document in fetched] == [2, None, 1, 3, None, 2, None]
    assert fetched[0] == fetched[5] and fetched[0] is not None and json.loads(fetched[0].json)["name"] == "Renamed"
    with pytest.raises(Refusal, match="No boat with that id"):
        await reads(database).fetch(FLEET, 3)


async def test_the_next_read_of_few_records_has_the_new_name_and_that_of_many_soon(database: Database) -> None:
    await run(database, sail(1, 2), sail(*range(1001, 1202), harbour_id=2))
    await filled(database)
    await run(database, "UPDATE harbour SET name = 'Kingston' WHERE id = 1")
    assert (await served(database))["harbour"]["name"] == "Kingston"
    async with database.connection() as connection:
        count = "SELECT count(*) FROM boat WHERE harbour_id = 1 AND document IS NOT NULL"
        assert await connection.raw.fetchval(count) == 0, "the old name is nowhere, as of a person who is forgotten"
    await run(database, "UPDATE harbour SET name = 'Burntisland' WHERE id = 2")
    assert (await served(database, 1001))["harbour"]["name"] == "Leith", "201 are too many for the change itself"
    await filled(database)
    assert (await served(database, 1001))["harbour"]["name"] == "Burntisland"
    # 200 in one transaction, also of several changes.
    async with database.transaction() as connection:
        await connection.raw.execute("UPDATE harbour SET name = 'One' WHERE id = 1")
        await connection.raw.execute("DELETE FROM boat WHERE id = 1201")
        await connection.raw.execute("UPDATE harbour SET name = 'Two' WHERE id = 2")
    assert (await served(database, 1))["harbour"]["name"] == "One"
    assert (await served(database, 1001))["harbour"]["name"] == "Burntisland"
    assert await compare_after(database) == 202


@pytest.mark.parametrize("shape", [BOAT.number - 1, BOAT.number + 1])
async def test_the_release_of_the_schema_renders_alone(database: Database, shape: int) -> None:
    """Beside another release, which has other fields: else each would render what the other has rendered, for ever."""
    await run(database, sail(1, 2))
    await filled(database)
    of_another = f"UPDATE boat SET document = 'of another', document_shape = {shape}"
    await run(
        database,
        of_another,
        "CREATE TABLE alembic_version (version_num text); INSERT INTO alembic_version VALUES ('0002_next')",
    )
    worker = ChangeTracking(database, [CHANGES])
    worker.head = "0001_own"
    try:
        assert await worker.run_batch() == 0
        assert await stored(database) is None
        assert (await served(database))["name"] == "Boat 1"
        await run(database, "UPDATE harbour SET name = 'Kingston' WHERE id = 1")
        assert (await served(database))["harbour"]["name"] == "Kingston"
        await run(database, "DELETE FROM changes_to_touch", of_another)
        worker.head = "0002_next"
        assert await worker.run_batch() == 2
    finally:
        await run(database, "DROP TABLE alembic_version")
    assert await compare_after(database) == 2


async def test_a_look_for_missing_documents_reads_no_others(database: Database) -> None:
    """Also while the statistics are older than the documents."""
    worker = ChangeTracking(database, [CHANGES])
    missing, number = worker._renders["boat"].missing, BOAT.number
    await run(
        database,
        "INSERT INTO boat (company_id, id, name, harbour_id)"
        f" SELECT {FLEET}, n, 'x', 1 FROM generate_series(1, 5000) n",
        "ANALYZE boat",
        f"UPDATE boat SET document = 'x', document_shape = {number}",
        "VACUUM boat",
    )
    for shapes in (), ("NULL",), (str(number - 1),), (str(number + 1),):
        marked = [f"UPDATE boat SET document_shape = {shape}, document = 'y' WHERE id <= 7" for shape in shapes]
        plan = await statement_plan(database, worker._unrendered, *marked, **worker._places())
        assert plan.rows_met <= 3 and "boat" not in plan.whole_tables, (shapes, plan.rows_met, plan.indexes)
        assert plan.returned == len(shapes)
        returned = 0
        for part in missing:
            plan = await statement_plan(database, part.lock, *marked, **part.place)
            assert plan.rows_met <= 2 * 7 and not plan.whole_tables, (shapes, plan.rows_met, plan.indexes)
            returned += plan.returned
        assert returned == 7 * len(shapes)
    for shape in ("NULL", str(number - 1), str(number + 1)):
        await run(database, f"UPDATE boat SET document = 'y', document_shape = {shape}", "VACUUM boat")
        for part in missing:
            plan = await statement_plan(database, part.lock, **part.place)
            assert plan.returned in (0, BATCH_ROWS) and plan.rows_met <= 2 * BATCH_ROWS, (shape, plan.rows_met)


_ENTRIES_READ = "SELECT pg_stat_get_xact_tuples_returned('boat_document_shape'::regclass)"


@pytest.mark.parametrize("shape", ["NULL", str(BOAT.number - 1), str(BOAT.number + 1)])
async def test_a_batch_beside_an_old_snapshot_reads_no_entries_of_those_before(database: Database, shape: str) -> None:
    """The snapshot keeps the index's entries of what has been rendered since."""
    batches = 6
    await run(
        database,
        "INSERT INTO boat (company_id, id, name, harbour_id, document_shape)"
        f" SELECT {FLEET}, n, 'x', 1, {shape} FROM generate_series(1, {batches * BATCH_ROWS - 1}) n",
    )
    worker = ChangeTracking(database, [CHANGES])
    renders = worker._renders["boat"]
    read: list[int] = []
    async with database.transaction(ONE_SNAPSHOT, writes=False) as old:
        await old.raw.fetchval("SELECT count(*) FROM boat")
        for _ in range(batches):
            async with database.transaction() as connection:
                before = await connection.raw.fetchval(_ENTRIES_READ)
                for part in renders.missing:
                    await connection.rows(part.lock, **part.place)
                await connection.rows(worker._unrendered, **worker._places())
                read.append(await connection.raw.fetchval(_ENTRIES_READ) - before)
            assert await worker._fill(renders) in (BATCH_ROWS, BATCH_ROWS - 1)
        assert await worker.run_batch() == 0, "it looks again from the first record on"
    assert sum(read) <= (batches + 1) * BATCH_ROWS, read
    await run(database, "UPDATE boat SET name = 'Partial' WHERE id = 3")
    worker._look_at = 0.0
    assert await worker.run_batch() == 1
    assert await compare_after(database) == batches * BATCH_ROWS - 1


async def compare_after(database: Database) -> int:
    """Compares all documents once the work in the background is done."""
    await settled(database)
    return (await compare_documents(database, CHANGES))["boat"]


async def test_a_record_without_a_document_moves_although_its_document_comes_before_its_turn(
    database: Database,
) -> None:
    """Its readers have the old name, and nobody else tells them of the new one."""
    await run(database, sail(*range(1, 251)))
    feed = await reads(database).feed(FLEET, Ask(limit=200))
    feed = await reads(database).feed(FLEET, Ask(limit=200, position=feed.position))
    assert not feed.more and len(feed.documents) == 50
    await run(database, "UPDATE harbour SET name = 'Kingston' WHERE id = 1")
    worker = ChangeTracking(database, [CHANGES])
    assert await worker._fill(worker._renders["boat"]) == 250
    await settled(database)
    await others_ended(database)
    feed = await reads(database).feed(FLEET, Ask(limit=200, position=feed.position))
    assert feed.more and all(b'"harbour":{"id":1,"name":"Kingston"}' in document for document in feed.documents)
    feed = await reads(database).feed(FLEET, Ask(limit=200, position=feed.position))
    assert not feed.more and len(feed.documents) == 50, "each once"


async def test_a_locked_record_keeps_no_old_name_and_delays_no_rename(database: Database) -> None:
    await run(database, sail(1, 2))
    await filled(database)
    async with database.transaction() as connection:
        await connection.raw.execute("SELECT FROM boat WHERE id = 1 FOR NO KEY UPDATE")
        await run(database, "UPDATE harbour SET name = 'Kingston' WHERE id = 1")
        assert (await served(database, 2, is_followed=False))["harbour"]["name"] == "Kingston"
    await filled(database)
    assert (await served(database, 1))["harbour"]["name"] == "Kingston"


async def test_a_record_that_is_open_beside_a_rename_does_not_keep_the_old_name(database: Database) -> None:
    """The writer has read the old name, and no batch after the rename sees what it writes."""
    await run(database, sail(*range(1, 302)))
    await filled(database)
    for harbours in ("Kingston", "Aberdour"):
        async with database.transaction() as connection:
            await connection.raw.execute("SELECT pg_current_xact_id()")  # as whoever locks or inserts first
            name = await connection.raw.fetchval("SELECT name FROM harbour WHERE id = 1")
            boat_id = await connection.raw.fetchval("SELECT max(id) + 1 FROM boat")
            await write_with_document(connection, boat_id, "Late", name)
            await run(database, f"UPDATE harbour SET name = '{harbours}' WHERE id = 1")
            await filled(database)
            assert (await served(database, 301, is_followed=False))["harbour"]["name"] == harbours
        assert (await served(database, boat_id))["harbour"]["name"] == name
        await settled(database)
        assert (await served(database, boat_id))["harbour"]["name"] == harbours
        await run(database, "DELETE FROM boat WHERE id BETWEEN 1 AND 300")  # then as one of few


async def test_a_process_that_dies_between_leaves_the_late_record_to_the_next(database: Database) -> None:
    await run(database, sail(1))
    await filled(database)
    async with database.transaction() as connection:
        await write_with_document(connection, 2, "Late", "Hull")
        await run(database, "UPDATE harbour SET name = 'Kingston' WHERE id = 1")
        worker = asyncio.create_task(ChangeTracking(database, [CHANGES]).run())
        await asyncio.sleep(0.2)
        worker.cancel()
    await settled(database)
    assert (await served(database, 2))["harbour"]["name"] == "Kingston"


async def test_a_record_rendered_before_its_transaction_has_a_document_only_if_no_name_changed(
    database: Database,
) -> None:
    look = Statement(sa.select(NAMES_SEEN))
    current = Statement(sa.select(names_are_current(metadata)))

    async def is_current(seen: int) -> bool:
        return bool(await database.value(current, names_seen=seen))

    await others_ended(database)
    await filled(database)
    before = await database.value(look)
    assert await is_current(before)
    await run(database, "UPDATE harbour SET depth = 9")
    assert await is_current(before), "no boat shows the depth"
    await run(database, "UPDATE harbour SET name = 'Kingston' WHERE id = 1")
    assert not await is_current(before)
    await others_ended(database)
    after = await database.value(look)
    assert await is_current(after) and not await is_current(before)
    await settled(database)
    assert await is_current(after) and not await is_current(before)


async def test_renames_among_many_writers_leave_every_document_true(database: Database) -> None:
    await run(database, sail(*range(1, 401)))
    await filled(database)

    async def rename(harbour_id: int) -> None:
        for number in range(20):
            await run(database, f"UPDATE harbour SET name = 'Name {number}' WHERE id = {harbour_id}")

    async def write(start: int) -> None:
        for number in range(start, start + 20):
            async with database.transaction() as connection:
                await connection.raw.execute("SELECT pg_current_xact_id()")  # as whoever locks or inserts first
                name = await connection.raw.fetchval("SELECT name FROM harbour WHERE id = 1")
                await write_with_document(connection, number, "Late", name)
                await asyncio.sleep(0.01)
            await run(
                database, f"UPDATE boat SET harbour_id = 3 - harbour_id WHERE id IN ({number}, {number % 400 + 1})"
            )

    workers = [asyncio.create_task(ChangeTracking(database, [CHANGES]).run()) for _ in range(2)]
    await asyncio.gather(rename(1), rename(2), *(write(start) for start in (1001, 1101, 1201)))
    for worker in workers:
        worker.cancel()
    assert await compare_after(database) == 460


async def test_records_of_a_backup_are_rendered_anew(database: Database) -> None:
    await run(database, sail(1, 2))
    await filled(database)
    await run(
        database,
        "UPDATE harbour SET name = 'Kingston' WHERE id = 1",
        "UPDATE changes_epoch SET system = 1, settled_xid = '1000000000000'",
    )
    worker = ChangeTracking(database, [CHANGES])
    await worker.take_over()
    assert await compare_after(database) == 2
    async with database.connection() as connection:
        assert await connection.raw.fetchval("SELECT settled_xid::text::bigint FROM changes_epoch") < 10**12
