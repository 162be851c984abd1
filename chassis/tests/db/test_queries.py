"""Typed rows, and rows sent as arrays, on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from chassis.db.database import Database
from chassis.db.rows import array_rows, columns_of, columns_of_tuples
from chassis.db.statements import Query, Statement, param
from testkit.plugin import PostgresServer


class Pair(NamedTuple):
    number: int
    word: str | None


ROWS = array_rows("given", {"number": sa.BigInteger(), "word": sa.Text()}, prefix="some_", numbered=True)
PAIRS = Query(Pair, sa.select(ROWS.c.number, ROWS.c.word).order_by(ROWS.c.n.desc()))


@pytest.fixture
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    opened = Database(postgres_server.create_database("chassis_queries"), application="tests")
    await opened.open()
    yield opened
    await opened.close()


def arrays(*rows: dict[str, Any]) -> dict[str, Any]:
    return columns_of(rows, ("number", "word"), "some_")


async def test_rows_of_arrays_are_numbered_and_come_back_typed(database: Database) -> None:
    pairs = await PAIRS.rows(database, **arrays({"number": 1, "word": "a"}, {"number": 2, "word": None}))
    assert pairs == [Pair(2, None), Pair(1, "a")]
    assert all(type(pair) is Pair for pair in pairs)


async def test_one_row_or_none(database: Database) -> None:
    async with database.connection() as connection:
        assert await PAIRS.row(connection, **arrays({"number": 7, "word": "x"})) == Pair(7, "x")
        assert await PAIRS.row(connection, **arrays()) is None


async def test_no_rows_are_empty_arrays(database: Database) -> None:
    statement = Statement(sa.select(sa.func.count()).select_from(ROWS))
    assert await database.value(statement, **arrays()) == 0


async def test_tuples_travel_as_arrays_too(database: Database) -> None:
    plain = array_rows("given", {"number": sa.BigInteger(), "word": sa.Text()})
    query = Query(Pair, sa.select(plain.c.number, plain.c.word).order_by(plain.c.number))
    pairs = [Pair(1, "a"), Pair(2, None)]
    assert await query.rows(database, **columns_of_tuples(pairs)) == pairs


async def test_what_a_write_returns_is_typed(database: Database) -> None:
    table = sa.Table("pair", sa.MetaData(), sa.Column("number", sa.BigInteger), sa.Column("word", sa.Text))
    change = sa.update(table).where(table.c.number == param("wanted", sa.BigInteger)).values(word=param("new", sa.Text))
    query = Query(Pair, change.returning(table.c.number, table.c.word))
    async with database.connection() as connection:
        await connection.raw.execute("CREATE TEMPORARY TABLE pair AS VALUES (1::bigint, 'a'), (2, 'b')")
        await connection.raw.execute("ALTER TABLE pair RENAME column1 TO number")
        await connection.raw.execute("ALTER TABLE pair RENAME column2 TO word")
        assert await query.rows(connection, wanted=2, new="c") == [Pair(2, "c")]
        assert await query.row(connection, wanted=3, new="c") is None
    with pytest.raises(TypeError, match="are not the fields"):
        Query(Pair, change.returning(table.c.word))


@pytest.mark.parametrize("columns", [("word", "number"), ("number",), ("number", "word", "n")])
def test_columns_that_are_not_the_fields_are_refused_when_the_query_is_made(columns: tuple[str, ...]) -> None:
    with pytest.raises(TypeError, match="are not the fields"):
        Query(Pair, sa.select(*(ROWS.c[name] for name in columns)))


def test_a_parameter_that_is_missing_is_named() -> None:
    with pytest.raises(TypeError, match="some_word"):
        Statement(sa.select(param("number", sa.BigInteger), *ROWS.c)).arguments({"number": 1, "some_number": [1]})
