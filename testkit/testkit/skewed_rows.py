"""Unevenly spread rows that show the cost of a page's plan, and every page that a list's callers may request there.

The rows of three companies are interleaved. In one company the rows changed in the order of their ids, so that a walk
by id reads the newest changes last. In another the changes are scattered. The third is small. Each has most of its rows
in one unit, which has no row of the rarest status. Ids have large gaps, like those of one company among hundreds.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from chassis.changes.feed import Changes
from chassis.db.database import IN_ORDER as LISTS_IN_ORDER
from chassis.db.database import Database
from chassis.db.statements import Statement, param
from chassis.lists.paging import SINCE, Pages
from chassis.lists.updated_since import RECENT_ROWS, STEP_ROWS
from testkit.examples import is_whole
from testkit.plans import explained, filter_sets

FIRST_ID, GAP = 9_100_000_000, 61
ROWS = 20_000 if is_whole() else 8_000
IN_ORDER, SCATTERED, SMALL = 9_100_001, 9_100_002, 9_100_003
BEGAN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
LATER = BEGAN + datetime.timedelta(days=365)
ENDED = LATER + datetime.timedelta(days=365)
LIMIT = 50


class Most(NamedTuple):
    """The most that a page may read from any table: rows and index entries of all joined tables, and blocks."""

    rows: int
    buffers: int


MOST = Most(7 * (LIMIT + 1), 25 * (LIMIT + 1))
# Besides the page itself: the rows that two steps of `chassis.lists.updated_since` read, and the search of 75 blocks.
MOST_OF_CHANGES = Most(MOST.rows + STEP_ROWS + RECENT_ROWS + 2 * STEP_ROWS, MOST.buffers + 2500)

_CROWD = f"""
CREATE TABLE crowd AS
SELECT id, company_id, n, commonness, updated_at,
  first_value(id) OVER (PARTITION BY company_id, place ORDER BY n) AS place
FROM (
  SELECT *, n % 4 = 1 AS place,
    CASE WHEN n % 4 = 1 THEN n / 4 % 3 ELSE n / 4 % 2 END AS commonness,
    timestamptz '{BEGAN}' + CASE WHEN company_id = {SCATTERED} AND n % 8 = 0 THEN interval '365 days' ELSE '0' END
      + n * interval '1 second' AS updated_at
  FROM (
    SELECT *, row_number() OVER (PARTITION BY company_id ORDER BY id) - 1 AS n
    FROM (
      SELECT {FIRST_ID} + i * {GAP} AS id,
        CASE WHEN i % 400 = 7 THEN {SMALL} WHEN i % 2 = 0 THEN {IN_ORDER} ELSE {SCATTERED} END AS company_id
      FROM generate_series(1, {ROWS}) i
    ) company
  ) numbered
) placed
"""


async def make_crowd(database: Database, fills: Iterable[str]) -> None:
    """Makes the table `crowd` and fills others from it. Its columns: id, company_id, n (the row's number in its
    company), place (the id of its property and of its unit), commonness (of its status: 2 is the rarest), updated_at.
    fills: the SQL after INSERT INTO, parents first.

    The statistics are older than the rows, as for a minute after an import.
    """
    async with database.transaction() as connection:
        await connection.raw.execute("ANALYZE")
        await connection.raw.execute(_CROWD)
        for fill in fills:
            await connection.raw.execute(f"INSERT INTO {fill} FROM crowd")
        if await connection.raw.fetchval("SELECT to_regclass('withdrawn_record') IS NOT NULL"):
            # Which feeds read, too, and which has rows of other kinds here.
            await connection.raw.execute(
                "INSERT INTO withdrawn_record (company_id, kind, id, version, record)"
                " SELECT company_id, 'another kind', id, 1, '{}' FROM crowd"
            )


async def check_pages(
    database: Database, pages: Pages, statuses: Sequence[str], requires: Mapping[str, str], *, with_changes: bool
) -> int:
    """Requests pages for each set of filters, at the start and at the end of each company's list; returns how many.

    Each must hold the rows that a plain statement finds, and stay within its bounds. statuses: a common one and the
    rarest. requires: filters that are refused without another. with_changes: sets with `updated_since` too.
    """
    companies = await database.rows(_COMPANIES)
    walks = 0
    for names in filter_sets(pages, requires):
        if SINCE in names and not with_changes:
            continue
        plain, most = _plain(pages, names), MOST_OF_CHANGES if SINCE in names else MOST
        async with explained(database, pages.statement(frozenset(names))) as explain:
            for company_id, place, end in companies:
                for filters in _values(names, place, statuses):
                    for after_id in (0, end - 5 * GAP):
                        values = {"company_id": company_id, "after_id": after_id, **filters}
                        rows = await pages.rows(database, company_id, after_id, LIMIT, filters)
                        right = await database.rows(plain, **values)
                        assert [row[0] for row in rows] == [row[0] for row in right], values
                        plan = await explain(rows=LIMIT + 1, **values)
                        cost = f"{values}: {plan.rows_met} rows, {plan.buffers} buffers, {plan.indexes}"
                        assert plan.rows_met <= most.rows and plan.buffers <= most.buffers, cost
                        assert not plan.whole_tables, f"{values}: {plan.whole_tables}"
                        walks += 1
    return walks


async def check_changes(database: Database, changes: Changes) -> None:
    """Reads the feed of each company at its beginning, in its middle and at its end. Each page, the look for whether
    there is one, and that for the last record must stay within their bounds. All rows of `crowd` are of a few
    transactions."""
    table = changes.table
    companies = await database.rows(_COMPANIES)
    xid = await database.value(Statement(sa.select(table.c.changed_xid).where(table.c.id >= FIRST_ID).limit(_ONE)))
    async with database.connection() as connection:
        horizon = await connection.raw.fetchval("SELECT pg_snapshot_xmin(pg_current_snapshot())")
    middle = FIRST_ID + ROWS // 2 * GAP
    for statement, more, most in (
        (changes.page, {"horizon": horizon, "rows": LIMIT + 1}, MOST),
        (changes.look, {}, Most(5, 50)),
        (changes.newest, None, Most(1, 25)),
    ):
        async with explained(database, statement, LISTS_IN_ORDER if more is None else "") as explain:
            for company_id, _, end in companies:
                for after in ((0, 0), (xid, middle), (xid, end - 5 * GAP), (horizon, 0)):
                    at = {"company_id": company_id}
                    if more is not None:
                        at |= {"xid": after[0], "after_id": after[1], **more}
                    plan = await explain(**at)
                    cost = f"{at}: {plan.rows_met} rows, {plan.buffers} buffers, {plan.indexes}"
                    assert plan.rows_met <= most.rows and plan.buffers <= most.buffers, cost
                    assert f"{table.name}_changed" in plan.indexes, cost
                    assert set(plan.whole_tables) <= {"changes_epoch"}, cost
                    assert statement is not changes.page or bool(plan.returned) == (after[0] < horizon), cost


async def analyze(database: Database) -> None:
    async with database.connection() as connection:
        await connection.raw.execute("ANALYZE")


_ONE = sa.literal_column("1", sa.Integer)
_c = sa.table("crowd", *(sa.column(name, sa.BigInteger) for name in ("id", "company_id", "place")))
_COMPANIES = Statement(
    sa.select(
        _c.c.company_id,
        sa.func.min(_c.c.place).label("place"),
        sa.func.max(_c.c.id).label("end"),
    ).group_by(_c.c.company_id)
)


def _values(names: Sequence[str], place: int, statuses: Sequence[str]) -> list[dict[str, Any]]:
    several: dict[str, list[Any]] = {
        "property_id": [place],
        "unit_id": [place],
        "status": list(statuses),
        "ticket_number": [17],
        # All changes; the later ones, which are many; the last day's, which are those of the scattered company.
        "updated_since": [BEGAN, BEGAN + datetime.timedelta(seconds=ROWS * 0.3), LATER - datetime.timedelta(days=1)],
    }
    combinations: list[dict[str, Any]] = [{}]
    for name in names:
        assert name in several, f"the filter {name} has no values to try: add them here"
        combinations = [{**combination, name: value} for combination in combinations for value in several[name]]
    if {"property_id", "unit_id"} <= set(names):
        combinations += [{**combination, "property_id": place + GAP} for combination in combinations]
    return combinations


def _plain(pages: Pages, names: Sequence[str]) -> Statement:
    table: Any = pages.table
    plain = sa.select(table.c.id).where(
        table.c.company_id == param("company_id", sa.BigInteger),
        table.c.id > param("after_id", sa.BigInteger),
        pages.visible,
        *(pages.filters[name] for name in names),
    )
    return Statement(plain.order_by(table.c.id).limit(sa.literal_column(str(LIMIT + 1))))
