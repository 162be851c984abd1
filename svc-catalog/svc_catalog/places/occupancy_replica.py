"""The unit columns that svc-occupancy owns. They are in the unit's own row, so that a page of units needs no join."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

from sqlalchemy import select, true, update

from chassis.db.database import Connection
from chassis.db.rows import array_rows_of
from chassis.db.statements import Statement
from makeready.events.v1.events_pb2 import UnitOccupancyReference
from svc_catalog.places import tables as t

_NAMES = ("company_id", "id", "unit_status", "projected_ready_on", "occupancy_version")


def _take(*, newer_only: bool) -> Statement:
    given = array_rows_of(t.unit, _NAMES)
    # Locks the units in the order of their ids, as an import does, so that the two cannot deadlock.
    taken = (
        select(*(given.c[name] for name in _NAMES))
        .select_from(t.unit.join(given, (t.unit.c.company_id == given.c.company_id) & (t.unit.c.id == given.c.id)))
        .where(t.unit.c.occupancy_version < given.c.occupancy_version if newer_only else true())
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


async def take(connection: Connection, references: Iterable[UnitOccupancyReference], overwrite: bool = False) -> None:
    """Stores references newer than the unit's version; of several, the newest. overwrite: stores any version.

    Skips unknown units. svc-catalog commits a unit before another service can refer to it, so an unknown one belongs to
    another installation, and waiting for it would block the event for ever.
    """
    newest: dict[int, UnitOccupancyReference] = {}
    for one in references:
        if one.id not in newest or one.version > newest[one.id].version:
            newest[one.id] = one
    if not newest:
        return
    rows = [newest[unit_id] for unit_id in sorted(newest)]
    columns: dict[str, list[Any]] = {
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
