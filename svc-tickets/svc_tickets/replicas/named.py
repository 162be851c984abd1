"""The records of other contexts that the rows of an import name by external_id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asyncpg import Record

from chassis.db.database import Database
from chassis.imports.importer import Batch, ExternalIds
from svc_tickets import schema
from svc_tickets.replicas.fetch import RecordKind, ReplicaFetcher

# The lookup of each field of a row. Replica rows that have not arrived do not count.
_KNOWN = {
    "property": ExternalIds(schema.property_, replica=True),
    "unit": ExternalIds(schema.unit, "property_id", "unit_number", replica=True),
    "asset": ExternalIds(schema.asset, "property_id", replica=True),
    "assignee": ExternalIds(schema.staff, replica=True),
    "assigned_vendor": ExternalIds(schema.vendor, replica=True),
}
_KINDS: Mapping[str, RecordKind] = {
    "property": "property",
    "unit": "unit",
    "asset": "asset",
    "assignee": "staff",
    "assigned_vendor": "vendor",
}

Named = Mapping[str, Mapping[str, Record]]


async def find(database: Database, replicas: ReplicaFetcher, batch: Batch[Any], fields: Sequence[str]) -> Named:
    """The records that the rows name, by field and external_id. Queries the owners once for records that the replicas
    lack. Raises Unavailable if an owner does not answer."""
    names = {field: batch.named(field) for field in fields}
    records = await _look_up(database, batch.company_id, names)
    lacking = {_KINDS[field]: [name for name in names[field] if name not in records[field]] for field in fields}
    if not any(lacking.values()):
        return records
    await replicas.fetch_named(batch.company_id, lacking)
    return await _look_up(database, batch.company_id, names)


async def _look_up(database: Database, company_id: int, names_by_field: Mapping[str, Sequence[str]]) -> Named:
    async with database.connection() as connection:
        return {
            field: await _KNOWN[field].by_external_id(connection, company_id, names)
            for field, names in names_by_field.items()
        }
