"""Properties, units and assets that other records refer to: by external_id in a file, by id in a request. A row
that exists is locked until the commit."""

from __future__ import annotations

from asyncpg import Record

from chassis.imports.importer import ExternalIds
from chassis.writes.commands import Command
from chassis.writes.editing import EditableTable, no_such
from svc_catalog.places.tables import asset, property_, unit

PROPERTIES_NAMED = ExternalIds(property_)
UNITS_NAMED = ExternalIds(unit, "property_id")

_PROPERTIES, _UNITS, _ASSETS = EditableTable(property_), EditableTable(unit), EditableTable(asset)


async def find_property(command: Command, property_id: int) -> Record:
    """The property's row. Raises Refusal 404."""
    return await _find(command, "property", _PROPERTIES, property_id)


async def find_unit(command: Command, unit_id: int) -> Record:
    """The unit's row. Raises Refusal 404."""
    return await _find(command, "unit", _UNITS, unit_id)


async def find_asset(command: Command, asset_id: int) -> Record:
    """The asset's row. Raises Refusal 404."""
    return await _find(command, "asset", _ASSETS, asset_id)


async def _find(command: Command, noun: str, table: EditableTable, entity_id: int) -> Record:
    row = await table.stored(command.connection, command.company_id, entity_id)
    if row is None:
        raise no_such(noun)
    return row
