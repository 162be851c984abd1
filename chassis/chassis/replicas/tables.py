"""Replicas: rows of other contexts, stored so that reads need no other service. The owner's higher version wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import sqlalchemy as sa
from google.protobuf.duration_pb2 import Duration
from sqlalchemy.dialects.postgresql import insert

from chassis.db.belonging import to_no_company
from chassis.db.database import Connection
from chassis.db.rows import array_rows_of
from chassis.db.statements import Selection, Statement, TableColumn, param
from makeready.events.v1.events_pb2 import References

Fields = dict[str, Any]
ONLY_GROWS = "clock_offset"
"""A replica keeps the greatest value of this column that it has seen, so no late or rebuilt row turns a clock back. A
live company has none, whatever was stored before its row arrived."""


def company_replica(metadata: sa.MetaData) -> sa.Table:
    """The companies, which are the tenants: every row of a context belongs to one. A company that has not arrived yet
    counts as active and live."""
    return sa.Table(
        "company",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("name", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("active", sa.Boolean, nullable=False, server_default=sa.text("true")),
        sa.Column("timezone", sa.Text, nullable=False, server_default=sa.text("'UTC'")),
        sa.Column("is_sandbox", sa.Boolean, nullable=False, server_default=sa.text("false")),
        # How far the company's clock is ahead of the real one.
        sa.Column(ONLY_GROWS, sa.Interval, nullable=False, server_default=sa.text("'0'")),
        # Nothing of such a company is kept or accepted. Its row stays for good.
        sa.Column("ended", sa.Boolean, nullable=False, server_default=sa.text("false")),
        info=to_no_company("the row of a company that has ended says so"),
    )


def replica_table(metadata: sa.MetaData, name: str, *columns: TableColumn) -> sa.Table:
    """Rows of another context, by their ids there. Version 0 marks a row that has not arrived yet."""
    table = sa.Table(
        name,
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("company_id", sa.BigInteger, nullable=False),
        sa.Column("name", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("external_id", sa.Text),
        *columns,
    )
    sa.Index(f"{name}_external_id", table.c.company_id, table.c.external_id)
    return table


Key = tuple[int, int]  # of a row: its company's id, its own


class Reference(Protocol):
    """A row as its owner publishes it: a message of References. All but a company's have a `company_id`, too."""

    @property
    def id(self) -> int: ...

    @property
    def version(self) -> int: ...


class Replicated(Protocol):
    """The rows of one kind that a context replicates. References are messages; stored rows are their fields by name."""

    async def put(self, connection: Connection, references: Iterable[Any], overwrite: bool = False) -> None:
        """Saves the rows; a row's highest version wins. With `overwrite`, stored versions do not count."""

    async def stored(self, connection: Connection, keys: Sequence[Key], *, lock: bool = False) -> dict[int, Fields]:
        """The stored rows by id, those of version 0 included. With `lock` they are locked until the end of the
        transaction."""

    async def page(self, connection: Connection, after: Key, rows: int) -> list[Key]:
        """The keys of the next rows in some fixed order; those of version 0 may be left out."""

    async def forget(self, connection: Connection, keys: Sequence[Key]) -> None:
        """Makes them rows of version 0, which count as not arrived: the owner has no such rows."""


class Replicas:
    """The replicas of a context, and their owners, by field of References, parents before children."""

    def __init__(self, kinds: Mapping[str, Replicated], owners: Mapping[str, str]) -> None:
        assert kinds.keys() == owners.keys()
        self.kinds, self.owners = kinds, owners

    async def put(self, connection: Connection, references: Sequence[References], overwrite: bool = False) -> None:
        """Saves the rows of the kinds that the context replicates. For `overwrite` see `Replicated`."""
        for kind, replica in self.kinds.items():
            await replica.put(connection, (row for batch in references for row in getattr(batch, kind)), overwrite)
            await self._forget(connection, kind, references)

    async def _forget(self, connection: Connection, kind: str, references: Sequence[References]) -> None:
        """Forgets the rows that their owner has withdrawn, unless they have come back since."""
        gone = {row.id: row for batch in references for row in batch.withdrawn if row.kind == kind}
        if gone:
            keys = [(row.company_id, row.id) for row in gone.values()]
            stored = await self.kinds[kind].stored(connection, keys, lock=True)
            keys = [key for key in keys if key[1] in stored and stored[key[1]]["version"] <= gone[key[1]].version]
            await self.kinds[kind].forget(connection, keys)


class Replica:
    """One replica table, whose columns are fields of the reference message by name.

    The `parents` are by column: the replica whose row it names. A row may arrive before its parent. The parent is then
    stored as a row of version 0, which no read returns, until the owner's row arrives.
    """

    def __init__(self, table: sa.Table, parents: dict[str, sa.Table] | None = None) -> None:
        self._names = [column.name for column in table.c]
        rows = array_rows_of(table, self._names)
        kept = _of_companies_that_go_on(table, sa.select(*rows.c), rows)
        put = insert(table).from_select(self._names, kept.order_by(rows.c.id), include_defaults=False)
        changed: dict[str, Any] = {name: put.excluded[name] for name in self._names if name != "id"}
        if ONLY_GROWS in changed:
            greatest = sa.func.greatest(table.c[ONLY_GROWS], put.excluded[ONLY_GROWS])
            changed[ONLY_GROWS] = sa.case((put.excluded.is_sandbox, greatest), else_=put.excluded[ONLY_GROWS])
        newer = put.excluded.version > table.c.version
        update = put.on_conflict_do_update
        self._puts = [
            Statement(update(index_elements=["id"], set_=changed, where=condition)) for condition in (newer, None)
        ]
        self._stubs = {column: _stub(parent) for column, parent in (parents or {}).items()}
        mine = table.c.id == sa.func.any(param("ids", sa.ARRAY(sa.BigInteger)))
        company = table.c.get("company_id", table.c.id)
        stored = sa.select(*(table.c[name] for name in self._names)).where(mine).order_by(table.c.id)
        self._stored = [Statement(stored), Statement(stored.with_for_update(key_share=True))]
        rows_after = _of_companies_that_go_on(
            table, sa.select(company, table.c.id).where(table.c.id > param("after", sa.BigInteger)), table
        )
        self._page = Statement(rows_after.order_by(table.c.id).limit(param("rows", sa.Integer)))
        self._forget = Statement(sa.update(table).where(mine).values(version=0))

    async def put(self, connection: Connection, references: Iterable[Reference], overwrite: bool = False) -> None:
        """Saves the rows; a row's highest version wins. With `overwrite`, stored versions do not count."""
        newest: dict[int, Reference] = {}
        for reference in references:
            if reference.id not in newest or reference.version > newest[reference.id].version:
                newest[reference.id] = reference
        if not newest:
            return
        rows: list[Any] = [newest[entity_id] for entity_id in sorted(newest)]
        for column, stub in self._stubs.items():
            parents = sorted({(getattr(row, column), row.company_id) for row in rows})
            await connection.execute(
                stub, id=[parent_id for parent_id, _ in parents], company_id=[company for _, company in parents]
            )
        columns = {name: [value_of(row, name) for row in rows] for name in self._names}
        await connection.execute(self._puts[overwrite], **columns)

    async def stored(self, connection: Connection, keys: Sequence[Key], *, lock: bool = False) -> dict[int, Fields]:
        rows = await connection.rows(self._stored[lock], ids=[row_id for _, row_id in keys])
        return {row["id"]: dict(row) for row in rows}

    async def page(self, connection: Connection, after: Key, rows: int) -> list[Key]:
        return [(row[0], row[1]) for row in await connection.rows(self._page, after=after[1], rows=rows)]

    async def forget(self, connection: Connection, keys: Sequence[Key]) -> None:
        await connection.execute(self._forget, ids=[row_id for _, row_id in keys])


def value_of(row: Any, name: str) -> Any:
    """A field of a reference; None for an optional one that is absent. A duration is a timedelta, 0 if it is absent."""
    if isinstance(duration := getattr(row, name), Duration):
        return duration.ToTimedelta()
    field = row.DESCRIPTOR.fields_by_name[name]
    return getattr(row, name) if not field.has_presence or row.HasField(name) else None


def _stub(parent: sa.Table) -> Statement:
    names = ["id", "company_id"]
    rows = array_rows_of(parent, names)
    kept = _of_companies_that_go_on(parent, sa.select(*rows.c), rows)
    put = insert(parent).from_select(names, kept, include_defaults=False)
    return Statement(put.on_conflict_do_nothing())


def _of_companies_that_go_on(table: sa.Table, select: Selection, rows: sa.FromClause) -> Selection:
    """The rows of a replica table without those of companies that have ended, which are deleted."""
    company = table.metadata.tables.get("company")
    if company is None or company is table:
        return select
    return select.where(~sa.exists().where(company.c.id == rows.c.company_id, company.c.ended))
