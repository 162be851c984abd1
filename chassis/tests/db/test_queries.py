"""Typed rows, and rows that travel as arrays, on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from chassis.db.database import Database
from chassis.db.rows import array_rows, columns_of
from chassis.db.statements import Query, Statement, param
from testkit.plugin import PostgresServer


class Pair(NamedTuple):
    number: int
    word: str | None


ROWS = array_rows("given", {"number": sa.BigInteger(), "word": sa.Text()}, prefix="some_", numbered=True)
PAIRS = Query(Pair, sa.select(ROWS.c.number, ROWS.c.word).order_by(ROWS.c.n.desc()))


@pytest.fixture
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    made = Database(postgres_server.create_database("chassis_queries"), application="tests")
    await made.open()
    yield made
    await made.close()


def arrays(*rows: dict[str, Any]) -> dict[str, Any]:
    return columns_of(rows, ("number", "word"), "some_")


async def test_rows_of_arrays_are_numbered_and_come_back_typed(database: Database) -> None:
    found = await PAIRS.rows(database, **arrays({"number": 1, "word": "a"}, {"number": 2, "word": None}))
    assert found == [Pair(2, None), Pair(1, "a")]
    assert all(type(one) is Pair for one in found)


async def test_one_row_or_none(database: Database) -> None:
    async with database.connection() as connection:
        assert await PAIRS.row(connection, **arrays({"number": 7, "word": "x"})) == Pair(7, "x")
        assert await PAIRS.row(connection, **arrays()) is None


async def test_no_rows_are_empty_arrays(database: Database) -> None:
    statement = Statement(sa.select(sa.func.count()).select_from(ROWS))
    assert await database.value(statement, **arrays()) == 0


@pytest.mark.parametrize("columns", [("word", "number"), ("number",), ("number", "word", "n")])
def test_columns_that_are_not_the_fields_are_refused_when_the_query_is_made(columns: tuple[str, ...]) -> None:
    with pytest.raises(TypeError, match="are not the fields"):
        Query(Pair, sa.select(*(ROWS.c[name] for name in columns)))


def test_a_parameter_that_is_missing_is_named() -> None:
    with pytest.raises(TypeError, match="some_word"):
        Statement(sa.select(param("number", sa.BigInteger), *ROWS.c)).arguments({"number": 1, "some_number": [1]})
