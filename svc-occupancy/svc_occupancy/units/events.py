"""The references that svc-catalog receives about units."""

from __future__ import annotations

from collections.abc import Iterable

from makeready.events.v1.events_pb2 import References
from svc_occupancy.units.rules import UnitState


def references_of(states: Iterable[UnitState]) -> References:
    """The units' status and ready date, for svc-catalog's replica."""
    references = References()
    for state in states:
        reference = references.unit_occupancies.add(
            id=state.unit_id, version=state.version, company_id=state.company_id, unit_status=state.unit_status
        )
        if state.projected_ready_on is not None:
            reference.projected_ready_on = state.projected_ready_on.isoformat()
    return references
