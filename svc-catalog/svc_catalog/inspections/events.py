"""The event about a failed row. It carries all that svc-tickets needs to open a ticket, without a further request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chassis.writes.commands import Command
from makeready.events.v1.events_pb2 import Event, InspectionRowFailed, References
from svc_catalog.inspections import rules
from svc_catalog.inspections.queries import ChecklistRow
from svc_catalog.places.references import ASSET_REFERENCES, PROPERTY_REFERENCES, UNIT_REFERENCES


async def inspection_row_failed(command: Command, inspection: Mapping[str, Any], row: ChecklistRow) -> Event:
    """inspection: its columns. The event includes the rows that the ticket refers to, as svc-tickets may lack them."""
    assert row.failed_at is not None and row.category is not None and row.priority is not None
    failed = InspectionRowFailed(
        inspection_id=inspection["id"],
        row_id=row.id,
        places=await _places(command, inspection["property_id"], inspection["unit_id"], row.asset_id),
        property_id=inspection["property_id"],
        unit_id=inspection["unit_id"],
        asset_id=row.asset_id,
        title=rules.ticket_title(row.label),
        description=rules.ticket_description(inspection["inspection_number"], inspection["title"], row.label, row.note),
        category=row.category,
        priority=row.priority,
        photo_url=row.photo_url,
        actor=command.call.identity.actor,
    )
    event = Event(company_id=command.company_id, request_id=command.call.request_id, inspection_row_failed=failed)
    event.occurred_at.FromDatetime(row.failed_at)
    return event


async def _places(command: Command, property_id: int, unit_id: int | None, asset_id: int | None) -> References:
    references = References()
    for rows, entity_id in (
        (PROPERTY_REFERENCES, property_id),
        (UNIT_REFERENCES, unit_id),
        (ASSET_REFERENCES, asset_id),
    ):
        if entity_id is not None:
            rows.add(references, await rows.by_ids(command.connection, command.company_id, [entity_id]))
    return references
