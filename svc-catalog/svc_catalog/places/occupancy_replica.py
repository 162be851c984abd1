"""The unit columns that svc-occupancy owns. They are in the unit's own row, so that a page of units needs no join."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

from sqlalchemy import BigInteger, Integer, Text, func, null, select, true, tuple_, update

from chassis.db.database import Connection
from chassis.db.rows import array_rows_of
from chassis.db.statements import Statement, param
from chassis.replicas.tables import Fields, Key
from makeready.events.v1.events_pb2 import UnitOccupancyReference
from svc_catalog.places import tables as t

_NAMES = ("company_id", "id", "unit_status", "projected_ready_on", "occupancy_version")


def _take(*, newer_only: bool) -> Statement:
    arrived = array_rows_of(t.unit, _NAMES)
    # Locks the units in the order of their ids, as an import does, so that the two cannot deadlock.
    taken = (
        select(*(arrived.c[name] for name in _NAMES))
        .select_from(
            t.unit.join(arrived, (t.unit.c.company_id == arrived.c.company_id) & (t.unit.c.id == arrived.c.id))
        )
        .where(t.unit.c.occupancy_version < arrived.c.occupancy_version if newer_only else true())
        .order_by(t.unit.c.id)
        .with_for_update(of=t.unit, key_share=True)
        .cte("taken")
    )
    return Statement(
        update(t.unit)
        .where(t.unit.c.company_id == taken.c.company_id, t.unit.c.id == taken.c.id)
        .values({name: taken.c[name] for name in _NAMES[2:]})
    )


_TAKE, _OVERWRITE = _take(newer_only=True), _take(newer_only=False)


_wanted = array_rows_of(t.unit, ("company_id", "id"))
_stored = (
    select(
        t.unit.c.company_id,
        t.unit.c.id,
        t.unit.c.occupancy_version.label("version"),
        t.unit.c.unit_status,
        func.to_char(t.unit.c.projected_ready_on, "YYYY-MM-DD", type_=Text).label("projected_ready_on"),
    )
    .join_from(_wanted, t.unit, (t.unit.c.company_id == _wanted.c.company_id) & (t.unit.c.id == _wanted.c.id))
    .order_by(t.unit.c.id)
)
_STORED = [Statement(_stored), Statement(_stored.with_for_update(of=t.unit, key_share=True))]
_key = tuple_(t.unit.c.company_id, t.unit.c.id)
_PAGE = Statement(
    select(t.unit.c.company_id, t.unit.c.id)
    .where(_key > tuple_(param("company_id", BigInteger), param("id", BigInteger)), t.unit.c.occupancy_version > 0)
    .order_by(t.unit.c.company_id, t.unit.c.id)
    .limit(param("rows", Integer))
)
_FORGET = Statement(
    update(t.unit)
    .where(t.unit.c.company_id == _wanted.c.company_id, t.unit.c.id == _wanted.c.id)
    .values(unit_status=null(), projected_ready_on=null(), occupancy_version=0)
)


class UnitOccupancies:
    """The replica of these columns: a `Replicated`."""

    async def put(
        self, connection: Connection, references: Iterable[UnitOccupancyReference], overwrite: bool = False
    ) -> None:
        """Stores references newer than the unit's version; of several, the newest. overwrite: stores any version.

        Skips unknown units. svc-catalog commits a unit before another service can refer to it, so an unknown one
        belongs to another installation, and waiting for it would block the event for ever.
        """
        newest: dict[int, UnitOccupancyReference] = {}
        for reference in references:
            if reference.id not in newest or reference.version > newest[reference.id].version:
                newest[reference.id] = reference
        if not newest:
            return
        rows = [newest[unit_id] for unit_id in sorted(newest)]
        columns: dict[str, list[object]] = {
            "company_id": [row.company_id for row in rows],
            "id": [row.id for row in rows],
            "unit_status": [row.unit_status if row.HasField("unit_status") else None for row in rows],
            "projected_ready_on": [
                datetime.date.fromisoformat(row.projected_ready_on) if row.HasField("projected_ready_on") else None
                for row in rows
            ],
            "occupancy_version": [row.version for row in rows],
        }
        await connection.execute(_OVERWRITE if overwrite else _TAKE, **columns)

    async def stored(self, connection: Connection, keys: Sequence[Key], *, lock: bool = False) -> dict[int, Fields]:
        rows = await connection.rows(_STORED[lock], **_columns(keys))
        return {row["id"]: dict(row) for row in rows}

    async def page(self, connection: Connection, after: Key, rows: int) -> list[Key]:
        rows_after = await connection.rows(_PAGE, company_id=after[0], id=after[1], rows=rows)
        return [(row["company_id"], row["id"]) for row in rows_after]

    async def forget(self, connection: Connection, keys: Sequence[Key]) -> None:
        await connection.execute(_FORGET, **_columns(keys))


def _columns(keys: Sequence[Key]) -> dict[str, list[int]]:
    return {"company_id": [company_id for company_id, _ in keys], "id": [unit_id for _, unit_id in keys]}
