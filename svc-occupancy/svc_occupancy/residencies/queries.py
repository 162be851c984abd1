"""The SQL statements of notices and move-ins. Both lock the unit's row before they read its turns."""

from __future__ import annotations

from sqlalchemy import BigInteger, Text, func, literal_column, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.statements import TIME, param
from chassis.writes.idempotency import DecideOnce
from svc_occupancy import schema
from svc_occupancy.residencies import rules, tables
from svc_occupancy.turns import tables as turn_tables
from svc_occupancy.turns.queries import LOOK
from svc_occupancy.units.queries import put_states

_company_id = param("company_id", BigInteger)

# The transition's columns that a notice sets. Their parameters have the prefix "turn_".
_NOTICE_CHANGES = (
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

_changed = update(turn_tables.transition).where(turn_tables.transition.c.company_id == _company_id)
_version = turn_tables.transition.c.version + literal_column("1")

_leave = _changed.where(turn_tables.transition.c.id == param("turn_id", BigInteger)).values(
    {name: param(f"turn_{name}", turn_tables.transition.c[name].type) for name in _NOTICE_CHANGES}
    | {"version": _version}
)
_complete = _changed.where(turn_tables.transition.c.id == func.any(param("completed_ids", ARRAY(BigInteger)))).values(
    status=literal_column("'completed'", Text), version=_version, updated_at=param("completed_at", TIME)
)

# Both take the unit's new state as array parameters with the prefix "state_": one row, or none if it stays.
NOTICE = DecideOnce(
    schema.idempotency, schema.unit, LOOK, inserts=[schema.outbox], updates=[_leave, put_states("state_")]
)
MOVE_IN = DecideOnce(
    schema.idempotency,
    schema.unit,
    LOOK,
    inserts=[turn_tables.transition, tables.lease, tables.party, schema.outbox],
    updates=[_complete, put_states("state_")],
    # A turn is inserted only under its unit's lock, so this cannot occur; the unique index guarantees it.
    refusals={"transition_active_in_unit": lambda: rules.refused("already_occupied")},
)
