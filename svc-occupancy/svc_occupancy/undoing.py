"""What an undo of an import does to the records of this context, besides their own rows."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from asyncpg import Record

from chassis.db.database import Connection
from chassis.db.statements import NewValues, Values
from chassis.imports.undo import Copies, Done, Part, Step, Undoable
from chassis.schedule import instants
from svc_occupancy import schema
from svc_occupancy.replicas import queries as replica_queries
from svc_occupancy.turn_tasks import queries as turn_tasks
from svc_occupancy.turns import import_queries as turns
from svc_occupancy.turns.imports import put_in_row
from svc_occupancy.units import queries as units
from svc_occupancy.units import rules
from svc_occupancy.units.events import references_of
from svc_occupancy.units.tables import unit_state, unit_status_change


class _Turns(Undoable):
    """A batch's `beside` has for each of its units the version of its state after the batch, and before it the status
    and the current turn."""

    ends_beside = False

    async def kept(
        self, connection: Connection, company_id: int, done: Done, rows: Sequence[Record]
    ) -> Mapping[int, str]:
        """Turns stay whose units got a status by something else than a file since."""
        unit_ids = sorted({row["unit_id"] for row in rows})
        newest = await units.newest_changes(connection, company_id, unit_ids)
        return {row["id"]: "" for row in rows if newest.get(row["unit_id"], 0) > _of_unit(done, row["unit_id"])[0]}

    def before(self, row: Record, values: Values, at: datetime.datetime) -> NewValues:
        after = super().before(row, values, at)
        after["planned_version"] = None if after["has_begun"] else after["version"]
        return after

    async def complete(self, connection: Connection, step: Step) -> None:
        """The units' planned turns, and their states."""
        rows = [*step.withdrawn, *(row for row, _ in step.restored)]
        unit_ids = sorted({row["unit_id"] for row in rows})
        if not unit_ids:
            return
        await put_in_row(connection, step.company_id, unit_ids)
        timezone = await replica_queries.timezone(connection, step.company_id) or "UTC"
        day = instants.local_date(step.at, timezone)
        changed, changes = [], []
        for unit in await turns.units_before(connection, step.company_id, unit_ids):
            _, status_before, current_before = _of_unit(step.done, unit.unit_id)
            status: Any = status_before
            if unit.current_id != current_before:  # some of its turns stay
                status = rules.unit_status(unit.current, day, unit.unit_status)
            state = unit.state(step.company_id)
            after = state.became(status, rules.unit_ready_on(unit.current))
            if after is None or not state.version:
                continue
            changed.append(after)
            changes += rules.status_change(
                state, after, at=step.at, cause="import", actor=step.call.identity.actor, turn_id=unit.current_id
            )
        await units.save_states(connection, changed, changes)
        step.references.MergeFrom(references_of(changed))


def _of_unit(done: Done, unit_id: int) -> tuple[int, str | None, int | None]:
    version, status, current_id = done.beside["units"][str(unit_id)]
    return version, status, current_id


UNDOABLES = (
    _Turns("turns", "turn", turns.TURNS),
    Undoable("turn-tasks", "turn_task", turn_tasks.TASKS),
)


class _Units(Copies):
    async def used(self, connection: Connection, company_id: int, ids: Sequence[int], besides: str) -> dict[int, str]:
        """A unit whose status staff have set is used too."""
        used = await super().used(connection, company_id, ids, besides)
        newest = await units.newest_changes(connection, company_id, list(ids))
        return dict.fromkeys(newest, "unit_status") | used


COPIES = (
    Copies("properties", schema.property_, Part(schema.unit)),  # one that goes has no units any more
    _Units("units", schema.unit, Part(unit_state), Part(unit_status_change, "unit_id")),
    Copies("vendors", schema.vendor),
    Copies("staff", schema.staff),
)
