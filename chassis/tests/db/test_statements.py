"""Core statements compiled once: their SQL and arguments, and the statements that are refused."""

from __future__ import annotations

import datetime
import uuid

import pytest
from sqlalchemy import BigInteger, Column, DateTime, Integer, MetaData, Table, Text, bindparam, func, insert, select
from sqlalchemy.dialects.postgresql import ARRAY, UUID

from chassis.db.database import Database
from chassis.db.statements import Statement, sql
from testkit.plugin import PostgresServer

metadata = MetaData()
crate = Table(
    "thing",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("event_id", UUID(as_uuid=True)),
    Column("name", Text),
    Column("at", DateTime(timezone=True)),
)


def test_arguments_follow_the_order_of_the_sql() -> None:
    statement = Statement(
        select(crate.c.id).where(
            crate.c.name == bindparam("name", type_=Text), crate.c.id > bindparam("after", type_=BigInteger)
        )
    )
    assert statement.parameters == {"name", "after"}
    assert statement.arguments({"after": 3, "name": "x"}) == ["x", 3]
    assert statement.sql.index("$1") < statement.sql.index("$2")


@pytest.mark.parametrize("values", [{}, {"name": "x", "more": 1}])
def test_a_parameter_too_few_or_too_many_is_refused(values: dict[str, object]) -> None:
    statement = Statement(select(crate.c.id).where(crate.c.name == bindparam("name", type_=Text)))
    with pytest.raises(TypeError, match="missing or unknown"):
        statement.arguments(values)


def test_a_statement_that_is_written_as_sql_has_typed_parameters() -> None:
    statement = Statement(sql("SELECT id FROM thing WHERE name = :name AND id > :after", name=Text, after=BigInteger))
    assert statement.parameters == {"name", "after"}
    assert statement.arguments({"after": 3, "name": "x"}) == ["x", 3]
    assert "id > $2::BIGINT" in statement.sql


@pytest.mark.parametrize("types", [{}, {"name": Text, "more": Text}])
def test_sql_with_a_parameter_too_few_or_too_many_is_refused(types: dict[str, type[Text]]) -> None:
    with pytest.raises(TypeError, match="missing or unknown"):
        sql("SELECT id FROM thing WHERE name = :name", **types)


def test_an_in_list_is_refused() -> None:
    statement = Statement(select(crate.c.id).where(crate.c.id.in_(bindparam("ids", expanding=True, type_=BigInteger))))
    for _ in range(2):  # each use is refused, not the first alone
        with pytest.raises(TypeError, match="ANY"):
            _ = statement.sql


def test_a_python_side_default_is_refused() -> None:
    defaulted = Table("defaulted", MetaData(), Column("id", Integer), Column("n", Integer, default=5))
    statement = Statement(insert(defaulted).values(id=bindparam("id", type_=Integer)))
    with pytest.raises(TypeError, match="server default"):
        statement.arguments({"id": 1})


def test_a_statement_is_compiled_at_its_first_use_alone() -> None:
    statement = Statement(select(crate.c.id).where(crate.c.name == bindparam("name", type_=Text)))
    assert "sql" not in vars(statement)
    assert statement.arguments({"name": "x"}) == ["x"]
    assert statement.sql.startswith("SELECT thing.id") and statement.sql is statement.sql
    with pytest.raises(AttributeError, match="has no text"):
        _ = statement.text  # type: ignore[attr-defined]


async def test_values_come_back_as_asyncpg_makes_them(postgres_server: PostgresServer) -> None:
    database = Database(postgres_server.create_database("statements_test"), application="test")
    await database.open()
    try:
        async with database.connection() as connection:
            await connection.raw.execute(
                "CREATE TABLE thing (id bigint PRIMARY KEY, event_id uuid, name text, at timestamptz)"
            )
        event_id, moment = uuid.uuid4(), datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
        put = Statement(insert(crate).values({c.name: bindparam(c.name, type_=c.type) for c in crate.c}))
        await database.execute(put, id=1, event_id=event_id, name="漏", at=moment)
        got = Statement(
            select(crate).where(crate.c.event_id == func.any(bindparam("ids", type_=ARRAY(UUID(as_uuid=True)))))
        )
        row = await database.row(got, ids=[event_id])
        assert row is not None and tuple(row) == (1, event_id, "漏", moment)
    finally:
        await database.close()
