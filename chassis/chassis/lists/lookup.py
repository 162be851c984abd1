"""Records by the company's own identifiers: what a service finds for the public search, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from chassis.auth.identity import Call, company_id
from chassis.db.database import Database
from chassis.db.statements import Expression, Statement, param
from makeready.common.v1 import lookup_pb2 as pb

ROWS_MAX = 100
"""Of records that may share an external_id."""


@dataclass(frozen=True)
class Identified:
    """Rows with an external_id, which an index finds by company and external_id.

    conditions: of the rows that readers see, or of a partial index. index_order: the index's further columns, if
    several rows may have one external_id.
    """

    kind: pb.RecordKind.ValueType
    table: sa.Table
    conditions: Sequence[sa.ColumnElement[bool]] = ()
    index_order: Sequence[Expression] = ()

    def select(self) -> sa.Select[tuple[int, int]]:
        """kind, entity_id: ROWS_MAX at most."""
        rows = (
            sa.select(sa.literal_column(str(self.kind), sa.Integer).label("kind"), self.table.c.id.label("entity_id"))
            .where(
                self.table.c.company_id == param("company_id", sa.BigInteger),
                self.table.c.external_id == param("external_id", sa.Text),
                *self.conditions,
            )
            .order_by(*self.index_order)
            .limit(sa.literal_column(str(ROWS_MAX)))
            .subquery()
        )
        return sa.select(rows.c.kind, rows.c.entity_id)


class LookupService:
    """Finds the records of a service by their external_id."""

    def __init__(self, database: Database, identified: Sequence[Identified]) -> None:
        self._database = database
        self.statements: dict[int, Statement] = {}
        """By kind; 0: of all kinds."""
        for kind in {0, *(rows.kind for rows in identified)}:
            of_kind = [rows.select() for rows in identified if kind in (0, rows.kind)]
            self.statements[kind] = Statement(sa.union_all(*of_kind))

    async def FindRecords(self, request: pb.FindRecordsRequest, call: Call) -> pb.FindRecordsResponse:
        statement = self.statements.get(request.kind)
        if statement is None:
            return pb.FindRecordsResponse()
        rows = await self._database.rows(statement, company_id=company_id(call), external_id=request.external_id)
        records = [pb.FoundRecord(kind=row["kind"], entity_id=row["entity_id"]) for row in rows]
        records.sort(key=lambda record: (record.kind, record.entity_id))
        return pb.FindRecordsResponse(records=records)
