"""Fills the property of rows that the release before wrote, which has no such column: while an installation is
upgraded, its processes write as this release's do."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping

from chassis.db.database import Database
from svc_occupancy.turn_tasks.queries import PLACE_TASKS
from svc_occupancy.units.queries import PLACE_STATES


def property_backfill(database: Database) -> Callable[[datetime.datetime], Awaitable[Mapping[str, int]]]:
    """The sweep that fills the property of unit states and tasks without one. It costs two looks into empty indexes."""

    async def sweep(_now: datetime.datetime) -> Mapping[str, int]:
        async with database.transaction() as connection:
            await connection.execute(PLACE_STATES)
            await connection.execute(PLACE_TASKS)
        return {}

    return sweep
