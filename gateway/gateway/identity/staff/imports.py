"""Imports rows as members of staff."""

from __future__ import annotations

from chassis.db.database import Connection
from chassis.imports.importer import Batch, ImportRow
from gateway.identity import rules
from gateway.identity.staff import queries
from gateway.identity.staff.inputs import StaffRow
from makeready.events.v1.events_pb2 import References


async def save(connection: Connection, batch: Batch[StaffRow]) -> References:
    """Saves a batch's rows; returns the references to publish."""
    batch.each(_normalize_email)
    await batch.lock_existing(connection, queries.STAFF)
    references = References()
    for row in await batch.save(connection, queries.STAFF, {}):
        references.staff.add(
            id=row["id"],
            version=row["version"],
            company_id=batch.company_id,
            name=row["name"],
            external_id=row["external_id"],
        )
    return references


def _normalize_email(line: ImportRow[StaffRow]) -> None:
    """Changes the email into the form in which every email is stored. Raises Refusal."""
    if (email := line.values.get("email")) is not None:
        line.values["email"] = rules.checked(rules.email, email, "email")
