"""Pages of records changed since an instant: exactly the records that a plain query finds, at a bounded cost."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.db.database import Database
from chassis.db.statements import TIME, Statement, param
from chassis.lists import updated_since
from chassis.lists.updated_since import RECENT_ROWS, STEP_ROWS, Having, block_key, ids_changed, status_key
from testkit.examples import examples
from testkit.plans import statement_plan
from testkit.plugin import PostgresServer

from ..databases import database_with

COMPANY, OTHER_COMPANY = 7, 8
STATUSES = ("New", "Open", "Done")
NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)

metadata = sa.MetaData()
record = sa.Table(
    "record",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("place_id", sa.BigInteger, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("hidden", sa.Boolean, nullable=False),
    sa.Column("updated_at", TIME, nullable=False),
)
c = record.c
for _name, _column in (("", c.company_id), ("_of_place", c.place_id)):
    sa.Index(f"record_page{_name}", c.company_id, *dict.fromkeys([_column, c.id]))
    sa.Index(f"record_page{_name}_and_status", status_key(_column, c.status), c.id)
    sa.Index(f"record_changes{_name}", block_key(_column, c.id), c.status, c.updated_at)
sa.Index("record_updated", c.company_id, c.updated_at)


class Row(NamedTuple):
    company_id: int
    id: int
    place_id: int
    status: str
    hidden: bool
    updated_at: datetime.datetime


def statement(*names: str, statuses: tuple[str, ...] = STATUSES) -> Statement:
    """The statement of a page's ids with these filters, as `Pages` makes it."""
    place: Having = [(c.place_id, param("place_id", sa.BigInteger))] if "place_id" in names else []
    status: Having = [(c.status, param("status", sa.Text))] if "status" in names else []
    every: list[Having] = [[(c.status, sa.literal_column(f"'{value}'"))] for value in statuses]
    return Statement(ids_changed(record, place, status, [status] if status else every, sa.not_(c.hidden)))


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_updated_since", metadata) as database:
        yield database


async def fill(database: Database, rows: list[Row]) -> None:
    async with database.connection() as connection:
        await connection.raw.execute("TRUNCATE record")
        await connection.raw.copy_records_to_table("record", records=rows, columns=Row._fields)


async def page(database: Database, query: Statement, after_id: int, since: Any, rows: int, **filters: Any) -> list[int]:
    values = {"company_id": COMPANY, "after_id": after_id, "updated_since": since, "rows": rows, **filters}
    return [row["id"] for row in await database.rows(query, **values)]


# Exactness

INSTANTS = st.integers(0, 6).map(lambda number: NOON + number * SECOND)
ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from([COMPANY, COMPANY, COMPANY, OTHER_COMPANY]),
        st.integers(1, 120),
        st.integers(1, 2),
        st.sampled_from(STATUSES),
        st.sampled_from([False, False, False, True]),
        INSTANTS,
    ),
    max_size=90,
    unique_by=lambda row: (row.company_id, row.id),
)
FILTERS: list[dict[str, Any]] = [{}, {"place_id": 1}, {"status": "Open"}, {"place_id": 2, "status": "New"}]


@pytest.fixture(scope="module")
def small_steps() -> Mapping[frozenset[str], Statement]:
    """Statements whose steps and blocks are so small that few rows cover every path."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in (("_STEP", 4), ("_RECENT", 6), ("_BITS", 4)):
            patch.setattr(updated_since, name, sa.literal_column(str(size), sa.Integer))
        return {frozenset(filters): statement(*filters) for filters in FILTERS}


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=ROWS, since=INSTANTS, after_id=st.integers(0, 60), many=st.integers(1, 25), filters=st.sampled_from(FILTERS)
)
async def test_a_page_holds_what_a_plain_query_finds(
    opened: Database,
    small_steps: Mapping[frozenset[str], Statement],
    rows: list[Row],
    since: datetime.datetime,
    after_id: int,
    many: int,
    filters: dict[str, Any],
) -> None:
    await fill(opened, rows)
    expected = sorted(
        row.id
        for row in rows
        if row.company_id == COMPANY and row.id > after_id and row.updated_at >= since and not row.hidden
        if all(getattr(row, name) == value for name, value in filters.items())
    )
    query = small_steps[frozenset(filters)]
    assert await page(opened, query, after_id, since, many, **filters) == expected[:many]


@pytest.mark.parametrize("many", [1, 3, 7])
async def test_a_walk_meets_every_change_once(
    opened: Database, small_steps: Mapping[frozenset[str], Statement], many: int
) -> None:
    """A third of 100 rows changed, some in runs and some alone."""
    changed = [number for number in range(1, 101) if number % 7 < 2 or 40 <= number < 52]
    rows = [
        Row(COMPANY, number, 1, STATUSES[number % 3], False, NOON + SECOND * (number in changed))
        for number in range(1, 101)
    ]
    await fill(opened, rows)
    met: list[int] = []
    while ids := await page(opened, small_steps[frozenset()], met[-1] if met else 0, NOON + SECOND, many):
        assert len(ids) == min(many, len(changed) - len(met))
        met += ids
    assert met == changed


# Cost

LAST_ID = 100_000
ROWS_ASKED = 51
HOUR = datetime.timedelta(hours=1)


@pytest.fixture(scope="module")
async def large(opened: Database) -> Database:
    """50,000 rows of the company, the even ids, in seven blocks; as many of another company, all changed last."""
    async with opened.connection() as connection:
        await connection.raw.execute("TRUNCATE record")
        await connection.raw.execute(
            "INSERT INTO record SELECT 7 + n % 2, n, n % 2 * 100 + 1 + n / 2 % 20,"
            " (ARRAY['New', 'Open', 'Done'])[1 + n % 3], false,"
            " $1::timestamptz + CASE WHEN n % 2 = 1 OR n % 4000 = 0 THEN interval '3 hours'"
            "  WHEN n > 85000 THEN interval '2 hours' WHEN n % 80 = 4 THEN interval '90 minutes'"
            "  WHEN n % 20 = 10 THEN interval '1 hour'"
            "  ELSE interval '-1 day' END FROM generate_series(1, $2) n",
            NOON,
            LAST_ID,
        )
        await connection.raw.execute("ANALYZE record")
    return opened


@pytest.mark.parametrize("filters", [{}, {"place_id": 6}, {"status": "Open"}, {"place_id": 6, "status": "Open"}])
@pytest.mark.parametrize("after_id", [0, 30_000])
@pytest.mark.parametrize(
    ("since", "rows_met_max"),
    [
        pytest.param(NOON - 48 * HOUR, STEP_ROWS, id="everything changed"),
        pytest.param(NOON + 4 * HOUR, STEP_ROWS, id="nothing changed"),
        pytest.param(NOON + 3 * HOUR, STEP_ROWS + 30, id="a few changed"),
        # The matches of a block, a part for each status, then at most the block's own rows one after another.
        pytest.param(NOON + 2 * HOUR, 2 * STEP_ROWS + RECENT_ROWS + 3300, id="a stretch at the end changed"),
        # More than RECENT takes, less in a block than BLOCK takes: the first block or two fill the page.
        pytest.param(NOON + 1.5 * HOUR, 3 * STEP_ROWS + RECENT_ROWS + 20, id="some in each block changed"),
        pytest.param(NOON + 1 * HOUR, 3 * STEP_ROWS + RECENT_ROWS + 20, id="each tenth changed"),
    ],
)
async def test_a_page_meets_a_bounded_number_of_rows_whatever_changed(
    since: datetime.datetime, rows_met_max: int, after_id: int, filters: dict[str, Any], large: Database
) -> None:
    values = {"company_id": COMPANY, "after_id": after_id, "updated_since": since, "rows": ROWS_ASKED, **filters}
    plan = await statement_plan(large, statement(*filters), **values)
    assert plan.rows_met <= rows_met_max and not plan.whole_tables
