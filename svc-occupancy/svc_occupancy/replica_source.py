"""The rows that other contexts replicate, all of them, by the field of References for each kind."""

from __future__ import annotations

from sqlalchemy import Text, func, select

from svc_occupancy.units import tables as unit_tables

_state = unit_tables.unit_state.c

# The columns are the fields of the message in makeready.events.v1.
ROWS = {
    "unit_occupancies": select(
        _state.unit_id.label("id"),
        _state.version,
        _state.company_id,
        _state.unit_status,
        func.to_char(_state.projected_ready_on, "YYYY-MM-DD", type_=Text).label("projected_ready_on"),
    )
}
