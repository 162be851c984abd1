"""The tables of changes: a column of each table of records, and two tables of the context's database.

    metadata = MetaData()
    changes_to_touch, changes_epoch = add_change_tables(metadata)  # in the context's schema.py
    ...
    page_indexes(parcel, places=("building_id",))
    make_followable(parcel, Follow("sender_id", sender, "name", "external_id"))  # after the indexes

`make_followable` says that the records of a table can be followed, and which rows of other tables they show. A change
of such a row must move the records too, or a copy would have the old name for ever. A trigger marks them in the
transaction of the change, and `chassis.changes.tracking` gives them a new place in the order.

The table also holds each record's document, the JSON that readers get: see `chassis.changes.documents`.

The migration has the SQL in full, as `chassis.changes.triggers` returns it: see svc-tickets 0005. First `ADD COLUMN
changed_xid xid8 NOT NULL DEFAULT '0'`, which rewrites no row: rows from before come first, by id. Then `ALTER COLUMN
changed_xid SET DEFAULT pg_current_xact_id()`. testkit/tests/test_migrations.py compares triggers and functions, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.types import UserDefinedType

from chassis.changes import triggers
from chassis.db.belonging import to_no_company
from chassis.db.history import SERVER
from chassis.db.statements import CLOCK, TIME, Expression
from chassis.records.shapes import DOCUMENT, DOCUMENT_SHAPE

COLUMN = "changed_xid"
CHANGE_COLUMNS = (COLUMN, DOCUMENT, DOCUMENT_SHAPE)
"""The columns that `make_followable` may add."""
INFO = "follows"  # of a table: what its records show
BESIDE = "beside"  # of a table: the columns that they do not show
SERVED = "served"  # of a table: the condition of its records that readers see, or None


class Xid8(UserDefinedType[int]):
    """PostgreSQL's xid8: a transaction's 64-bit number, in the order of beginning. An int."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


PGDialect.ischema_names["xid8"] = Xid8  # for Alembic, which reads the columns of a database
XMIN = sa.literal_column("pg_snapshot_xmin(pg_current_snapshot())", Xid8())
"""The oldest transaction that is under way: the statement sees all before it."""
XMAX = sa.literal_column("pg_snapshot_xmax(pg_current_snapshot())", Xid8())
"""The transaction that begins next."""


@dataclass(frozen=True, eq=False)
class Follow:
    """A row of another table that a record shows.

    The record's column `refers_by` equals the column `key` of the other table, which has company_id; the record shows
    its `columns`. Where `comes_and_goes`, such rows may be inserted or deleted while records refer to them; a foreign
    key of `refers_by` excludes it.
    """

    refers_by: str
    table: sa.Table
    columns: tuple[str, ...]
    key: str
    comes_and_goes: bool

    def __init__(
        self, refers_by: str, table: sa.Table, *columns: str, key: str = "id", comes_and_goes: bool = False
    ) -> None:
        for name, value in (
            ("refers_by", refers_by),
            ("table", table),
            ("columns", columns),
            ("key", key),
            ("comes_and_goes", comes_and_goes),
        ):
            object.__setattr__(self, name, value)


def make_followable(
    table: sa.Table,
    *follows: Follow,
    beside: Sequence[str] = (),
    served: sa.ColumnElement[bool] | None = None,
    has_documents: bool = True,
) -> None:
    """Declares that the records of a table can be followed; call it after the table's other indexes.

    A change of the columns `beside` moves no record: no record shows them, and statements set them by themselves. Only
    records that meet the condition `served`, in literals, are moved, as readers see no others. Without documents
    records are rendered when they are read; they may follow no others.

    Adds the column changed_xid, the index of the order, the triggers, and an index for each follow that has none: by
    company, column and id; the columns of the document, and the index that finds records without one. Raises TypeError
    for a column that does not exist.
    """
    table.append_column(
        sa.Column(COLUMN, Xid8(), nullable=False, server_default=sa.text("pg_current_xact_id()"))  # see `triggers`
    )
    c = table.c
    sa.Index(f"{table.name}_changed", c.company_id, c[COLUMN], c.id)
    if has_documents:
        # Without a shape, or with another release's, the document is rendered when it is read.
        table.append_column(sa.Column(DOCUMENT, sa.LargeBinary, server_default=sa.text("NULL")))
        table.append_column(sa.Column(DOCUMENT_SHAPE, sa.Integer, server_default=sa.text("NULL")))
        # The id is where a batch of the rendering goes on: see `chassis.changes.tracking`.
        sa.Index(f"{table.name}_document_shape", c[DOCUMENT_SHAPE], c.id, postgresql_where=served)
    elif follows:
        raise TypeError(f"{table.name} follows other tables and has no documents.")
    # PostgreSQL computes such columns after the trigger.
    computed = [column.name for column in c if column.computed is not None]
    _after_create(table, triggers.recorded(table.name, [*beside, *computed], documents=has_documents))
    for follow in follows:
        _check_follow(table, follow)
        if follow.refers_by != "id" and not _has_index(table, follow.refers_by, served):
            _add_follow_index(table, follow, served)
        statements = triggers.followed(
            table.name,
            follow.refers_by,
            follow.table.name,
            follow.columns,
            key=follow.key,
            comes_and_goes=follow.comes_and_goes,
            served="true" if served is None else str(served),
        )
        _after_create(follow.table, statements)
    table.info.update({INFO: follows, BESIDE: frozenset(beside), SERVED: served})


def _check_follow(table: sa.Table, follow: Follow) -> None:
    of_row = ((follow.table, name) for name in (follow.key, *follow.columns))
    for source, name in ((table, follow.refers_by), *of_row):
        if name not in source.c:
            raise TypeError(f"{table.name} follows {source.name}.{name}, which does not exist.")
    if not follow.columns:
        raise TypeError(f"{table.name} follows {follow.table.name} and shows none of its columns.")


def _add_follow_index(table: sa.Table, follow: Follow, served: sa.ColumnElement[bool] | None) -> None:
    """The index by which the records that show a row are found."""
    c = table.c
    conditions = [served] if served is not None else []
    if c[follow.refers_by].nullable:
        conditions.append(c[follow.refers_by].is_not(None))
    where = sa.and_(*conditions) if conditions else None
    name = f"{table.name}_follows_{follow.refers_by.removesuffix('_id')}"
    sa.Index(name, c.company_id, c[follow.refers_by], c.id, postgresql_where=where)


def served_of(table: sa.Table) -> list[sa.ColumnElement[bool]]:
    """The conditions of a table's records that readers see; none if they see all."""
    return [] if table.info[SERVED] is None else [table.info[SERVED]]


def names_are_current(metadata: sa.MetaData, seen: Expression | None = None) -> sa.ColumnElement[bool]:
    """Whether no row that records show has changed since a reader's snapshot, for a record that is rendered before the
    transaction that writes it: its own snapshot sees every change that the reader's did not. What the
    reader saw is `seen`, its `NAMES_SEEN`; else the parameter names_seen."""
    marks, epoch = metadata.tables["changes_to_touch"], metadata.tables["changes_epoch"]
    if seen is None:
        seen = sa.bindparam("names_seen", type_=Xid8())
    settled = sa.select(epoch.c.settled_xid).scalar_subquery()
    later = sa.select(marks.c.id).where(marks.c.xid >= seen).correlate_except(marks)
    return sa.and_(seen > settled, ~later.exists())


NAMES_SEEN = XMIN.label("names_seen")


def _has_index(table: sa.Table, column: str, served: sa.ColumnElement[bool] | None) -> bool:
    columns_needed = [table.c.company_id, table.c[column], table.c.id]
    keys: list[Any] = [list(key.columns) for key in table.constraints if isinstance(key, sa.UniqueConstraint)]
    enough = ("None", str(served))
    whole = [key for key in table.indexes if str(key.dialect_options["postgresql"]["where"]) in enough]
    return any(columns[:3] == columns_needed for columns in [*keys, *(list(key.expressions) for key in whole)])


def add_change_tables(metadata: sa.MetaData) -> tuple[sa.Table, sa.Table]:
    """The marks of records that must move in the order, and the row that says which history the order belongs to."""
    to_touch = sa.Table(
        "changes_to_touch",
        metadata,
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("company_id", sa.BigInteger, nullable=False),
        # The table of the records, their column, and its value.
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("refers_by", sa.Text, nullable=False),
        sa.Column("refers_to", sa.BigInteger, nullable=False),
        # The records up to this id have moved.
        sa.Column("after_id", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        # xid: the transaction that changed the row. since: the oldest one that was under way then. horizon: the one
        # that came next when all records that could be seen had moved. A transaction between them may have written a
        # record with the old name: such records are looked for once all below the horizon have ended.
        sa.Column("xid", Xid8(), nullable=False, server_default=sa.text("pg_current_xact_id()")),
        sa.Column("since", Xid8(), nullable=False, server_default=sa.text("pg_snapshot_xmin(pg_current_snapshot())")),
        sa.Column("horizon", Xid8()),
    )
    sa.Index("changes_to_touch_of", to_touch.c.record, to_touch.c.refers_by, to_touch.c.id)
    sa.Index("changes_to_touch_since", to_touch.c.xid)
    epoch = sa.Table(
        "changes_epoch",
        metadata,
        # One row. epoch: new after each restore. system: the server that numbered the stored transactions.
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False, server_default=sa.text("1")),
        sa.Column("epoch", sa.Uuid, nullable=False, server_default=sa.text("gen_random_uuid()")),
        sa.Column(
            "system",
            sa.BigInteger,
            nullable=False,
            server_default=sa.text(SERVER),
        ),
        # The newest transaction whose mark is gone.
        sa.Column("settled_xid", Xid8(), nullable=False, server_default=sa.text("'0'")),
        sa.CheckConstraint("id = 1", name="changes_epoch_one_row"),
        info=to_no_company("one row about the database"),
    )
    withdrawn_table(metadata)
    for statement in triggers.FUNCTIONS:
        sa.event.listen(metadata, "before_create", _ddl(statement))
    _after_create(epoch, ["INSERT INTO changes_epoch DEFAULT VALUES"])
    return to_touch, epoch


WITHDRAWN = "withdrawn_record"


def withdrawn_table(metadata: sa.MetaData) -> sa.Table:
    """The records that are not served any more since their import was undone, each with all that was stored of it. A
    file that brings its external_id again brings it back, with its id: see `chassis.imports.importer`."""
    table = sa.Table(
        WITHDRAWN,
        metadata,
        sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
        # The table that the record was in.
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        # A withdrawal is a version of the record.
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("external_id", sa.Text),
        sa.Column("record", JSONB, nullable=False),
        # Its place in the order of changes.
        sa.Column(COLUMN, Xid8(), nullable=False, server_default=sa.text("pg_current_xact_id()")),
        sa.Column("withdrawn_at", TIME, nullable=False, server_default=CLOCK),
    )
    sa.Index(f"{WITHDRAWN}_changed", table.c.company_id, table.c.kind, table.c[COLUMN], table.c.id)
    sa.Index(f"{WITHDRAWN}_external_id", table.c.company_id, table.c.kind, table.c.external_id)
    return table


def _after_create(table: sa.Table, statements: list[str]) -> None:
    for statement in statements:
        sa.event.listen(table, "after_create", _ddl(statement))


def _ddl(statement: str) -> sa.DDL:
    return sa.DDL(statement.replace("%", "%%"))  # type: ignore[no-untyped-call]
