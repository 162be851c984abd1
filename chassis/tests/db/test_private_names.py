"""The private names of SQLAlchemy that `statements.py` and `paging.py` use exist and behave as expected.

These tests fail first when a new version of SQLAlchemy changes one of them.
"""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.asyncpg import dialect as asyncpg_dialect

WHAT_TO_DO = (
    "SQLAlchemy {version} has no {name} that works as {module} needs it. Keep sqlalchemy below this version in "
    "chassis/pyproject.toml and the locks. Then see what took its place in SQLAlchemy's source: where that is public, "
    "use it and take the exception out of .ci/private_names.py; where nothing did, write the statement as SQL text."
)


class Days(sa.TypeDecorator[datetime.timedelta]):
    """A type that converts values in both directions."""

    impl = sa.Integer
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        return value.days

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        return datetime.timedelta(value)


DIALECT = asyncpg_dialect()  # type: ignore[no-untyped-call]
TABLE = sa.Table("stay", sa.MetaData(), sa.Column("id", sa.BigInteger), sa.Column("length", Days))
COMPILED: Any = (
    sa.select(TABLE.c.id, TABLE.c.length)
    .where(TABLE.c.id > sa.bindparam("after_id"), TABLE.c.length == sa.bindparam("length", type_=Days))
    .compile(dialect=DIALECT)
)


def result_columns() -> None:
    columns = COMPILED._result_columns
    assert [column.keyname for column in columns] == ["id", "length"]
    assert [type(column.type) for column in columns] == [sa.BigInteger, Days]


def result_processor() -> None:
    kind: Any = TABLE.c.id.type
    assert kind._cached_result_processor(DIALECT, None) is None
    kind = TABLE.c.length.type
    assert kind._cached_result_processor(DIALECT, None)(3) == datetime.timedelta(3)


def bind_processors() -> None:
    processors = COMPILED._bind_processors
    assert "after_id" not in processors
    assert processors["length"](datetime.timedelta(3)) == 3


def clause_adapter() -> None:
    adapter = importlib.import_module("sqlalchemy.sql.util").ClauseAdapter
    cut = sa.select(TABLE).limit(5).subquery("cut")
    adapted = adapter(cut).traverse(sa.select(TABLE.c.id).where(TABLE.c.id > 7))
    words = " ".join(str(adapted.compile(dialect=DIALECT)).split())
    assert words.startswith("SELECT cut.id FROM (SELECT stay.id AS id")
    assert "WHERE cut.id > " in words


@pytest.mark.parametrize(
    ("name", "module", "works"),
    [
        ("Compiled._result_columns", "chassis.db.statements", result_columns),
        ("TypeEngine._cached_result_processor", "chassis.db.statements", result_processor),
        ("Compiled._bind_processors", "chassis.db.statements", bind_processors),
        ("sqlalchemy.sql.util.ClauseAdapter", "chassis.lists.paging", clause_adapter),
    ],
)
def test_sqlalchemy_has_the_private_name(name: str, module: str, works: Callable[[], None]) -> None:
    try:
        works()
    except Exception as error:
        raise AssertionError(WHAT_TO_DO.format(version=sa.__version__, name=name, module=module)) from error
