"""Rebuilds replicas from their owners, a page a call: after a database was lost, or an owner restored a backup."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from asyncpg import Record

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import Call
from chassis.db.database import Connection, Database
from chassis.db.statements import Selection, Statement, param
from chassis.refusals import invalid_request
from makeready.events.v1 import replicas_pb2 as pb

ROWS = 1000


class ReplicaSource:
    """Serves all rows of each kind to replicas. Their columns are the fields of its message, by name."""

    def __init__(self, database: Database, rows: Mapping[str, Selection]) -> None:
        self._database = database
        self._pages = {kind: _page(select) for kind, select in rows.items()}
        self._of_places = {kind: _of_places(select) for kind, select in rows.items()}
        self._of_ids = {kind: _of_ids(select) for kind, select in rows.items()}

    async def ListReferences(self, request: pb.ListReferencesRequest, _call: Call) -> pb.ListReferencesResponse:
        if request.kind not in self._pages:
            raise invalid_request(f"kind must be one of: {', '.join(self._pages)}.", "kind")
        if len(request.places) > ROWS:
            raise invalid_request(f"places must be {ROWS} at most.", "places")
        if request.places:
            rows = await self._rows_of(request.kind, request.places)
        else:
            page, after = self._pages[request.kind], request.after
            rows = await self._database.rows(page, company_id=after.company_id, id=after.id, rows=ROWS)
        of_kind: Any = {request.kind: [dict(row) for row in rows]}
        return pb.ListReferencesResponse(references=of_kind)

    async def _rows_of(self, kind: str, places: Sequence[pb.Place]) -> list[Record]:
        keys = sorted({(place.company_id, place.id) for place in places if place.company_id})
        rows = []
        if keys:
            names = zip(*keys, strict=True)
            rows += await self._database.rows(self._of_places[kind], **dict(zip(_PLACE, map(list, names), strict=True)))
        if ids := sorted({place.id for place in places if not place.company_id} - {row["id"] for row in rows}):
            rows += await self._database.rows(self._of_ids[kind], ids=ids)
        return rows


_PLACE = ("company_ids", "ids")


def _of_places(rows: Selection) -> Statement:
    # One look-up by key each: see `chassis.imports.importer.ExternalIds`.
    arrays = [param(name, sa.ARRAY(sa.BigInteger)) for name in _PLACE]
    named = sa.func.unnest(*arrays).table_valued(*_PLACE).render_derived("wanted")
    columns = rows.selected_columns
    key = columns.get("company_id", columns["id"]) == named.c.company_ids, columns["id"] == named.c.ids
    row = rows.where(*key).offset(sa.literal_column("0")).lateral("one")
    return Statement(sa.select(*row.c).select_from(named.join(row, sa.true())))


def _of_ids(rows: Selection) -> Statement:
    # No index begins with the id, so this reads the table. It is for rows whose company is in doubt alone.
    return Statement(rows.where(rows.selected_columns["id"] == sa.func.any(param("ids", sa.ARRAY(sa.BigInteger)))))


def _page(rows: Selection) -> Statement:
    # Ordered by the key: no index begins with the id.
    columns = rows.selected_columns
    key = columns.get("company_id", columns["id"]), columns["id"]
    after = sa.tuple_(param("company_id", sa.BigInteger), param("id", sa.BigInteger))
    return Statement(rows.where(sa.tuple_(*key) > after).order_by(*key).limit(param("rows", sa.Integer)))


class ReplicaResync:
    """Rebuilds this context's replicas. The `owners` are by kind, parents before children. A list of References is
    saved to the replicas by `put`, in a transaction. If its last argument is true, it overwrites newer versions too:
    then a backup was restored, and `overwriting` is called in that transaction."""

    def __init__(
        self,
        database: Database,
        put: Callable[..., Awaitable[None]],
        owners: Mapping[str, ServiceClient],
        overwriting: Callable[[Connection], Awaitable[None]] | None = None,
    ) -> None:
        self._database, self._put, self._owners, self._overwriting = database, put, owners, overwriting

    async def ListReplicas(self, _request: pb.ListReplicasRequest, _call: Call) -> pb.ListReplicasResponse:
        return pb.ListReplicasResponse(kinds=[pb.ReplicaKind(kind=k, owner=o.name) for k, o in self._owners.items()])

    async def RebuildReplicas(self, request: pb.RebuildReplicasRequest, _call: Call) -> pb.RebuildReplicasResponse:
        if request.kind not in self._owners:
            raise invalid_request(f"kind must be one of: {', '.join(self._owners)}.", "kind")
        owner = self._owners[request.kind]
        page_request = pb.ListReferencesRequest(kind=request.kind, after=request.after)
        references = (await owner.call(page_request, pb.ListReferencesResponse)).references
        async with self._database.transaction() as connection:
            if request.overwrite and self._overwriting is not None:
                await self._overwriting(connection)
            await self._put(connection, [references], request.overwrite)
        rows = getattr(references, request.kind)
        last = {"company_id": getattr(rows[-1], "company_id", rows[-1].id), "id": rows[-1].id} if rows else {}
        return pb.RebuildReplicasResponse(rows=len(rows), next=pb.Place(**last) if len(rows) == ROWS else None)
