"""What is known of units: kept in `unit_state`, and told to svc-catalog, which serves it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import Insert, insert

from chassis.batches import offered
from makeready.events.v1.events_pb2 import References
from svc_occupancy import tables as t

STATE_NAMES = ("company_id", "unit_id", "version", "unit_status", "projected_ready_on")


def put_states(prefix: str = "") -> Insert:
    """Stores whole rows, given as columns of these names after the prefix."""
    rows = offered(t.unit_state, STATE_NAMES, prefix)
    put = insert(t.unit_state).from_select(list(STATE_NAMES), select(*rows.c), include_defaults=False)
    changed = {name: put.excluded[name] for name in STATE_NAMES[2:]}
    return put.on_conflict_do_update(index_elements=["company_id", "unit_id"], set_=changed)


def tell(told: References, state: Mapping[str, Any]) -> None:
    """Adds a row of unit_state to what svc-catalog will hear."""
    one = told.unit_occupancies.add(
        id=state["unit_id"],
        version=state["version"],
        company_id=state["company_id"],
        unit_status=state["unit_status"],
    )
    if state["projected_ready_on"] is not None:
        one.projected_ready_on = state["projected_ready_on"].isoformat()
