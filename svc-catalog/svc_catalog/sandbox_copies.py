"""Copies the places and assets of a live company into a sandbox, a batch a call.

What each row became is noted in the transaction that copies it. So a copy that was killed goes on where it stopped, and
no row is copied twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from chassis.auth.identity import Call
from chassis.changes.tables import CHANGE_COLUMNS
from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, TableColumn, param
from chassis.imports.importer import lock_company_imports
from chassis.messaging.outbox import Outbox
from chassis.refusals import Refusal
from chassis.runtime.failpoints import failpoint
from chassis.schedule.clocks import CompanyClocks
from makeready.catalog.v1 import sandbox_copies_pb2 as pb
from svc_catalog.places import references, tables
from svc_catalog.places.tables import copied_place
from svc_catalog.references import ReferenceRows
from svc_catalog.schema import IDS, company

BATCH = 500
# A copy is a new row, and has no status yet: these columns have their defaults.
_NEW = {"version", "searched_version", "unit_status", "projected_ready_on", "occupancy_version", *CHANGE_COLUMNS}
_FROM, _TO = param("from_company_id", sa.BigInteger), param("company_id", sa.BigInteger)
_IS_SANDBOX = Statement(
    sa.select(company.c.id).where(
        company.c.id == _TO, company.c.is_sandbox, sa.not_(company.c.ended), company.c.version > sa.text("0")
    )
)


class _Kind:
    """The copies of one table's rows."""

    def __init__(
        self, table: sa.Table, sequence: sa.Sequence, parents: Mapping[str, str], rows: ReferenceRows | None = None
    ) -> None:
        """The kinds of the rows that a row names are `parents`, by column. Other contexts replicate `rows`."""
        self.references = rows
        kind = sa.literal_column(f"'{table.name}'", sa.Text)
        mine = (copied_place.c.company_id == _TO, copied_place.c.kind == kind)
        last = sa.select(sa.func.coalesce(sa.func.max(copied_place.c.copied_from), sa.literal_column("0"))).where(*mine)
        rows_after = sa.select(table.c.id).where(table.c.company_id == _FROM, table.c.id > last.scalar_subquery())
        if "property_id" in parents:  # one that was added since the properties were copied is left out
            rows_after = rows_after.where(sa.exists().where(*_copy_of(copied_place, "property", table.c.property_id)))
        batch = rows_after.order_by(table.c.id).limit(sa.literal_column(str(BATCH))).subquery()
        noted = sa.insert(copied_place).from_select(
            ["company_id", "kind", "copied_from", "id"],
            sa.select(_TO, kind, batch.c.id, sequence.next_value()),
            include_defaults=False,
        )
        self._note = Statement(noted.returning(copied_place.c.id))
        copy = copied_place.alias("copy")
        source: sa.FromClause = table.join(copy, sa.and_(*_copy_of(copy, table.name, table.c.id)))
        values: dict[str, sa.ColumnElement[object]] = {}
        for column in table.c:
            if column.name in parents:
                parent = copied_place.alias(f"copied_{column.name}")
                source = source.outerjoin(parent, sa.and_(*_copy_of(parent, parents[column.name], column)))
                values[column.name] = parent.c.id
            elif column.name not in _NEW:
                values[column.name] = column
        values |= {"company_id": _TO, "id": copy.c.id}
        copies = sa.select(*values.values()).select_from(source)
        copies = copies.where(table.c.company_id == _FROM, copy.c.id == sa.func.any(param("ids", IDS)))
        self._copy = Statement(sa.insert(table).from_select(list(values), copies, include_defaults=False))

    async def copy_some(self, connection: Connection, from_company_id: int, company_id: int) -> list[int]:
        """Copies a batch; returns the new ids."""
        companies = {"from_company_id": from_company_id, "company_id": company_id}
        ids = [row["id"] for row in await connection.rows(self._note, **companies)]
        if ids:
            await connection.execute(self._copy, ids=ids, **companies)
        return ids


def _copy_of(copied: sa.FromClause, kind: str, copied_from: TableColumn) -> Sequence[sa.ColumnElement[bool]]:
    """Whether a row of `copied` says what the row with an id became."""
    named = sa.literal_column(f"'{kind}'", sa.Text)
    return copied.c.company_id == _TO, copied.c.kind == named, copied.c.copied_from == copied_from


_PART = {"property_id": "property"}
_KINDS = (
    _Kind(tables.property_, tables.property_id, {}, references.PROPERTY_REFERENCES),
    _Kind(tables.building, tables.building_id, _PART),
    _Kind(tables.floor, tables.floor_id, _PART | {"building_id": "building"}),
    _Kind(tables.floorplan, tables.floorplan_id, _PART),
    _Kind(tables.location, tables.location_id, _PART),
    _Kind(
        tables.unit,
        tables.location_id,
        _PART | {"floorplan_id": "floorplan", "building_id": "building", "floor_id": "floor"},
        references.UNIT_REFERENCES,
    ),
    _Kind(
        tables.asset,
        tables.asset_id,
        _PART | {"unit_id": "unit", "location_id": "location"},
        references.ASSET_REFERENCES,
    ),
)


class SandboxCopiesService:
    """Any number of calls may copy into a sandbox at once: they take turns."""

    def __init__(self, database: Database, outbox: Outbox, clocks: CompanyClocks) -> None:
        self._database, self._outbox, self._clocks = database, outbox, clocks

    async def CopyPlaces(self, request: pb.CopyPlacesRequest, call: Call) -> pb.CopyPlacesResponse:
        async with self._database.transaction() as connection:
            await lock_company_imports(connection, request.company_id)
            if await connection.value(_IS_SANDBOX, company_id=request.company_id) is None:
                raise Refusal(404, "not_found", "No sandbox has that id, or it has not arrived yet.", "company_id")
            rows = await self._copy_some(connection, request, call)
            failpoint("import-before-commit")
        self._outbox.wake()
        return pb.CopyPlacesResponse(rows=rows)

    async def _copy_some(self, connection: Connection, request: pb.CopyPlacesRequest, call: Call) -> int:
        for kind in _KINDS:
            ids = await kind.copy_some(connection, request.from_company_id, request.company_id)
            if not ids:
                continue
            if kind.references is not None:
                rows = await kind.references.by_ids(connection, request.company_id, ids)
                clock = await self._clocks.of_company(request.company_id, connection)
                event = self._outbox.references(
                    kind.references.made_of(rows),
                    company_id=request.company_id,
                    occurred_at=clock(),
                    request_id=call.request_id,
                )
                await self._outbox.add(connection, event)
            return len(ids)
        return 0
