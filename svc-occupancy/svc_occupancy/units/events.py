"""What svc-catalog hears of a unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from makeready.events.v1.events_pb2 import References


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
