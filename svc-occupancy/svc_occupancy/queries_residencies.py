"""The SQL statements of a notice and of a move-in: both hold the unit's row before they look at its turns."""

from __future__ import annotations

from sqlalchemy import BigInteger, Select, Text, and_, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.statements import TIME, param
from chassis.lists.updated_since import is_of
from chassis.writes.idempotency import DecideOnce
from svc_occupancy import queries
from svc_occupancy import rules_residencies as residencies
from svc_occupancy import tables as t
from svc_occupancy.units import put_states

_company_id = param("company_id", BigInteger)
_ACTIVE: ColumnElement[str] = literal_column("'active'")  # a literal, or the index of active turns would not serve
PLACE_COLUMNS = [column for column in queries.TURN_COLUMNS if column.table is not t.transition]
# What a notice changes on a transition, whose parameters bear these names after "turn_".
NOTICE_NAMES = (
    "move_out_date",
    "occupancy_source",
    "occupancy_fed_at",
    "updated_at",
    "notice_external_id",
    "ntv_reason_code",
    "departure_destination_code",
    "notes",
    "vacated_on",
)


def _look() -> Select[tuple[object, ...]]:
    """The unit `:unit_id` with its property, where both have arrived; its active transition, its state and the
    company's timezone, null where there is none."""
    turn, state, company = t.transition, t.unit_state, t.company
    here = and_(turn.c.company_id == _company_id, turn.c.unit_id == t.unit.c.id, turn.c.status == _ACTIVE)
    known = and_(state.c.company_id == _company_id, state.c.unit_id == t.unit.c.id)
    return (
        select(
            *(column.label(f"held_{column.table.name}_{column.name}") for column in PLACE_COLUMNS),
            *turn.c,
            state.c.version.label("state_version"),
            state.c.unit_status,
            state.c.projected_ready_on.label("unit_ready_on"),
            company.c.timezone,
        )
        .select_from(
            t.unit.join(t.property_, t.property_.c.id == t.unit.c.property_id)
            .outerjoin(turn, here)
            .outerjoin(state, known)
            .outerjoin(company, and_(company.c.id == _company_id, company.c.version > 0))
        )
        .where(
            # By its key alone: to a planner that knows few units, the company's index looks as good.
            *is_of([(t.unit.c.company_id, _company_id)]),
            t.unit.c.id == param("unit_id", BigInteger),
            t.unit.c.version > 0,
            t.property_.c.version > 0,
        )
    )


LOOK = _look()

_changed = update(t.transition).where(t.transition.c.company_id == _company_id)
_version = t.transition.c.version + literal_column("1")

_leave = _changed.where(t.transition.c.id == param("turn_id", BigInteger)).values(
    {name: param(f"turn_{name}", t.transition.c[name].type) for name in NOTICE_NAMES} | {"version": _version}
)
_complete = _changed.where(t.transition.c.id == func.any(param("completed_ids", ARRAY(BigInteger)))).values(
    status=literal_column("'completed'", Text), version=_version, updated_at=param("completed_at", TIME)
)

# Both take the unit's state as columns after "state_", of one row or none.
NOTICE = DecideOnce(t.idempotency, t.unit, LOOK, inserts=[t.outbox], updates=[_leave, put_states("state_")])
MOVE_IN = DecideOnce(
    t.idempotency,
    t.unit,
    LOOK,
    inserts=[t.transition, t.lease, t.party, t.outbox],
    updates=[_complete, put_states("state_")],
    # Whoever makes a turn holds the unit, so that none gets here; the index has the last word.
    refusals={"transition_active_in_unit": lambda: residencies.refused("already_occupied")},
)
