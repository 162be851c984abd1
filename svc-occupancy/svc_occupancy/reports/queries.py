"""The statements of the report on turns: units with what happened in them, and the names of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.changes.tables import WITHDRAWN
from chassis.db.database import Connection
from chassis.db.statements import Statement, param, sql
from chassis.reports.facts import RecordFacts
from chassis.reports.keeping import FactSource
from chassis.schedule.instants import zone_of
from svc_occupancy import schema
from svc_occupancy.reports import facts
from svc_occupancy.turn_tasks.tables import turn_task
from svc_occupancy.turns.tables import transition
from svc_occupancy.units.tables import unit_state

_IDS = ARRAY(sa.BigInteger)
_unit, _turn, _task, _unit_state = schema.unit.c, transition.c, turn_task.c, unit_state.c


def _state() -> sa.ColumnElement[str]:
    """The versions of a unit's state, turns and tasks: every change of the facts raises one of them or their number."""
    turns = (
        sa.select(sa.func.concat(sa.func.count(), sa.literal_column("'.'"), sa.func.sum(_turn.version)))
        .where(_turn.company_id == _unit.company_id, _turn.unit_id == _unit.id)
        .scalar_subquery()
    )
    of_turn = sa.and_(_task.company_id == _turn.company_id, _task.transition_id == _turn.id)
    tasks = (
        sa.select(sa.func.concat(sa.func.count(), sa.literal_column("'.'"), sa.func.sum(_task.version)))
        .select_from(transition.join(turn_task, of_turn))
        .where(_turn.company_id == _unit.company_id, _turn.unit_id == _unit.id)
        .scalar_subquery()
    )
    version = (
        sa.select(_unit_state.version)
        .where(_unit_state.company_id == _unit.company_id, _unit_state.unit_id == _unit.id)
        .scalar_subquery()
    )
    return sa.func.concat_ws(
        sa.literal_column("' '"), sa.func.coalesce(version, sa.literal_column("0")), turns, tasks, _unit.property_id
    )


RECORDS = sa.select(_unit.company_id, _unit.id, _state().label("state"))
READ = Statement(
    sql(
        """
SELECT unit.id,
    concat_ws(' ', coalesce(unit_state.version, 0), coalesce(turns.state, '0.'), coalesce(tasks.state, '0.'),
        unit.property_id) AS state,
    unit.property_id,
    turns.ids, turns.move_ins, turns.move_outs, turns.gone,
    changes.changed_at, changes.to_statuses, changes.turn_ids,
    tasks.turn_ids AS task_turn_ids, tasks.types, tasks.completed_at
FROM unit
LEFT JOIN unit_state ON unit_state.company_id = unit.company_id AND unit_state.unit_id = unit.id
CROSS JOIN LATERAL (
    SELECT concat(count(*), '.', sum(version)) AS state,
        array_agg(id ORDER BY id) FILTER (WHERE has_begun AND status <> 'cancelled') AS ids,
        array_agg(move_in_date ORDER BY id) FILTER (WHERE has_begun AND status <> 'cancelled') AS move_ins,
        array_agg(move_out_date ORDER BY id) FILTER (WHERE has_begun AND status <> 'cancelled') AS move_outs,
        array_agg(status = 'completed' OR vacated_on IS NOT DISTINCT FROM move_out_date ORDER BY id)
            FILTER (WHERE has_begun AND status <> 'cancelled') AS gone
    FROM transition WHERE company_id = unit.company_id AND unit_id = unit.id
) AS turns
CROSS JOIN LATERAL (
    SELECT array_agg(changed_at ORDER BY version) AS changed_at,
        array_agg(to_status ORDER BY version) AS to_statuses, array_agg(turn_id ORDER BY version) AS turn_ids
    FROM unit_status_change WHERE company_id = unit.company_id AND unit_id = unit.id
) AS changes
CROSS JOIN LATERAL (
    SELECT concat(count(*), '.', sum(task.version)) AS state,
        array_agg(task.transition_id ORDER BY task.id) FILTER (WHERE task.status = 'completed') AS turn_ids,
        array_agg(task.task_type ORDER BY task.id) FILTER (WHERE task.status = 'completed') AS types,
        array_agg(task.completed_at ORDER BY task.id) FILTER (WHERE task.status = 'completed') AS completed_at
    FROM transition JOIN turn_task AS task
        ON task.company_id = transition.company_id AND task.transition_id = transition.id
    WHERE transition.company_id = unit.company_id AND transition.unit_id = unit.id
) AS tasks
WHERE unit.company_id = :company_id AND unit.id = ANY (:ids)
""",
        company_id=sa.BigInteger,
        ids=_IDS,
    )
)


def facts_of(row: Record, timezone: str) -> list[RecordFacts]:
    """The facts of a row of `READ`."""
    turns = zip(*(row[name] or () for name in ("ids", "move_ins", "move_outs", "gone")), strict=True)
    changes = zip(*(row[name] or () for name in ("changed_at", "to_statuses", "turn_ids")), strict=True)
    tasks = zip(*(row[name] or () for name in ("task_turn_ids", "types", "completed_at")), strict=True)
    unit = facts.UnitHistory(
        row["property_id"],
        [facts.TurnOfUnit(*turn) for turn in turns],
        [facts.Change(*change) for change in changes],
        [facts.Done(*task) for task in tasks],
    )
    return facts.facts_of(unit, zone_of(timezone))


def _units_of(table: sa.Table, kind: str) -> Statement:
    """The units of some turns or tasks, also of those that an undone import has taken back."""
    ids, company_id = param("ids", _IDS), param("company_id", sa.BigInteger)
    rows = sa.select(table.c.unit_id).where(table.c.company_id == company_id, table.c.id == sa.func.any(ids))
    gone = schema.metadata.tables[WITHDRAWN].c
    unit_id = gone.record["unit_id"].astext.cast(sa.BigInteger)
    withdrawn = sa.select(unit_id).where(
        gone.company_id == company_id, gone.kind == sa.literal_column(f"'{kind}'"), gone.id == sa.func.any(ids)
    )
    return Statement(sa.union(rows, withdrawn))


SOURCE = FactSource(
    kind="unit",
    company=schema.company,
    records=RECORDS,
    read=READ,
    facts_of=facts_of,
    definitions=facts.DEFINITIONS,
    owners={"turn": _units_of(transition, "turn"), "turn_task": _units_of(turn_task, "turn_task")},
)
_PROPERTIES = Statement(
    sa.select(schema.property_.c.id, schema.property_.c.name).where(
        schema.property_.c.company_id == param("company_id", sa.BigInteger),
        schema.property_.c.id == sa.func.any(param("ids", _IDS)),
    )
)


async def names(connection: Connection, company_id: int, _dimension: str, ids: Sequence[int]) -> Mapping[int, str]:
    """The names of the company's properties, by id."""
    rows = await connection.rows(_PROPERTIES, company_id=company_id, ids=list(ids))
    return {row["id"]: row["name"] for row in rows}
