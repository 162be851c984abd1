"""The SQL statements of unit states and of the changes of units' status."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import ARRAY, Insert, insert

from chassis.db.database import Connection
from chassis.db.rows import InsertMany, array_rows_of
from chassis.db.statements import Expression, Statement, param
from svc_occupancy import schema
from svc_occupancy.units import tables
from svc_occupancy.units.rules import StatusCause, StatusChange, UnitState, UnitStatus

_NAMES = ("company_id", "unit_id", "version", "unit_status", "projected_ready_on")


def put_states(prefix: str = "") -> Insert:
    """Upserts whole rows of unit_state; parameters: `columns_of_states`."""
    rows = array_rows_of(tables.unit_state, _NAMES, prefix)
    placed = select(*rows.c, schema.unit.c.property_id).select_from(
        rows.join(schema.unit, schema.unit.c.id == rows.c.unit_id)
    )
    names = [*_NAMES, "property_id"]
    put = insert(tables.unit_state).from_select(names, placed, include_defaults=False)
    changed = {name: put.excluded[name] for name in names[2:]}
    return put.on_conflict_do_update(index_elements=["company_id", "unit_id"], set_=changed)


def columns_of_states(states: Sequence[UnitState], prefix: str = "") -> dict[str, list[object]]:
    """The parameters of `put_states`."""
    return {prefix + name: [getattr(state, name) for state in states] for name in _NAMES}


_SAVE_STATES = Statement(put_states())
_ADD_CHANGES = InsertMany(tables.unit_status_change, StatusChange._fields)


async def save_states(connection: Connection, states: Sequence[UnitState], changes: Sequence[StatusChange]) -> None:
    """changes: of those states whose status is another."""
    if states:
        await connection.execute(_SAVE_STATES, **columns_of_states(states))
        await _ADD_CHANGES.run(connection, [change._asdict() for change in changes])


_change = tables.unit_status_change
_NEWEST_OF_OTHERS = Statement(
    select(_change.c.unit_id, func.max(_change.c.version).label("version"))
    .where(
        _change.c.company_id == param("company_id", BigInteger),
        _change.c.unit_id == func.any(param("unit_ids", ARRAY(BigInteger))),
        _change.c.cause != literal_column("'import'"),
    )
    .group_by(_change.c.unit_id)
)


async def newest_changes(connection: Connection, company_id: int, unit_ids: Sequence[int]) -> dict[int, int]:
    """The versions of the newest changes that no file made, of the units that have any."""
    rows = await connection.rows(_NEWEST_OF_OTHERS, company_id=company_id, unit_ids=unit_ids)
    return {row["unit_id"]: row["version"] for row in rows}


# However many changes a unit has had, only its newest ones are read.
NEWEST_CHANGES = 100
_newest = (
    select(_change)
    .where(_change.c.company_id == param("company_id", BigInteger), _change.c.unit_id == param("unit_id", BigInteger))
    .order_by(_change.c.version.desc())
    .limit(literal_column(str(NEWEST_CHANGES)))
    .subquery("newest")
)


def _of_turn(column: Expression, *causes: StatusCause) -> Statement:
    """Of the unit's newest change with this turn and one of these causes."""
    is_cause = _newest.c.cause.in_([literal_column(f"'{cause}'") for cause in causes])
    return Statement(
        select(column)
        .where(_newest.c.turn_id == param("turn_id", BigInteger), is_cause)
        .order_by(_newest.c.version.desc())
        .limit(literal_column("1"))
    )


STATUS_BEFORE = _of_turn(_newest.c.from_status, "move_in")
LAST_DEPARTURE = _of_turn(_newest.c.cause, "notice", "vacated")


async def status_before(connection: Connection, company_id: int, unit_id: int, turn_id: int) -> UnitStatus | None:
    """The unit's status before this turn's move-in changed it; None if it had none, or if it stayed the same."""
    status: UnitStatus | None = await connection.value(
        STATUS_BEFORE, company_id=company_id, unit_id=unit_id, turn_id=turn_id
    )
    return status


async def is_vacated_by_sweep(connection: Connection, company_id: int, unit_id: int, turn_id: int) -> bool:
    """Whether the sweep has made the unit vacant since this turn's last notice changed its status."""
    cause = await connection.value(LAST_DEPARTURE, company_id=company_id, unit_id=unit_id, turn_id=turn_id)
    return bool(cause == "vacated")


PLACE_STATES = Statement(
    update(tables.unit_state)
    .where(tables.unit_state.c.property_id.is_(None), schema.unit.c.id == tables.unit_state.c.unit_id)
    .values(property_id=schema.unit.c.property_id)
)
