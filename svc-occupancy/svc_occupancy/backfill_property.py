"""Fills the property of rows that the release before wrote, which has no such column: while an installation is
upgraded, its processes write as this release's do."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from chassis.db.database import Database
from chassis.schedule.clocks import LIVE, Companies
from chassis.schedule.sweeps import Due
from svc_occupancy.turn_tasks.queries import PLACE_TASKS
from svc_occupancy.units.queries import PLACE_STATES


class PropertyBackfill:
    """The sweep that fills the property of unit states and tasks without one, of all companies. It costs two looks into
    empty indexes. Nothing becomes due by time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sweep(self, _now: datetime.datetime, _companies: Companies = LIVE) -> Mapping[str, int]:
        async with self._database.transaction() as connection:
            await connection.execute(PLACE_STATES)
            await connection.execute(PLACE_TASKS)
        return {}

    async def next_due(self, _company_id: int) -> Due | None:
        return None
