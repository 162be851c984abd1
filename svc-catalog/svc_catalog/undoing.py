"""What an undo of an import does to the records of this context, besides their own rows."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.db.database import Connection
from chassis.imports.importer import ImportTable
from chassis.imports.undo import Copies, Done, Part, Step, Undoable
from svc_catalog import schema
from svc_catalog.inspections import queries as inspections
from svc_catalog.inspections import tables as inspection_tables
from svc_catalog.meters import queries as meters
from svc_catalog.notices import queries as notices
from svc_catalog.notices import tables as notice_tables
from svc_catalog.places import import_queries as places
from svc_catalog.places import tables as t
from svc_catalog.places.references import ASSET_REFERENCES, PROPERTY_REFERENCES, UNIT_REFERENCES
from svc_catalog.references import ReferenceRows
from svc_catalog.search.tables import place_search
from svc_catalog.vendors import queries as vendors


class _Copied(Undoable):
    """Records of which other contexts have copies."""

    def __init__(self, kind: str, noun: str, stored: ImportTable, rows: ReferenceRows, *parts: Part) -> None:
        super().__init__(kind, noun, stored, *parts)
        self.reference, self._copied = rows.field, rows

    async def publish(self, connection: Connection, step: Step, ids: Sequence[int]) -> None:
        self._copied.add(step.references, await self._copied.by_ids(connection, step.company_id, ids))


class _Units(_Copied):
    async def end(self, connection: Connection, done: Done) -> None:
        await places.MEASURES.restore(connection, done.beside.get("floorplans", ()))


class _Vendors(_Copied):
    async def end(self, connection: Connection, done: Done) -> None:
        await vendors.WEBSITES.restore(connection, done.beside.get("businesses", ()))


class _Notices(Undoable):
    async def complete(self, connection: Connection, step: Step) -> None:
        units = [(row["id"], row["property_id"], step.done.before[row["id"]]["unit_ids"]) for row, _ in step.restored]
        await notices.put_units(connection, step.company_id, units)


def _words(kind: str) -> Part:
    return Part(place_search, "id", kind)


UNDOABLES = (
    _Copied(
        "properties",
        "property",
        places.PROPERTIES,
        PROPERTY_REFERENCES,
        *map(Part, (t.floor, t.building, t.floorplan, t.location, inspection_tables.inspection_number)),
        _words("property"),
    ),
    _Units("units", "unit", places.UNITS, UNIT_REFERENCES, _words("unit")),
    _Copied("assets", "asset", places.ASSETS, ASSET_REFERENCES, _words("asset")),
    _Vendors("vendors", "vendor", vendors.VENDORS, vendors.VENDOR_REFERENCES),
    Undoable("inspections", "inspection", inspections.INSPECTIONS),
    Undoable("meters", "meter", meters.METERS, _words("meter")),
    Undoable("readings", "reading", meters.READINGS),
    _Notices("notices", "notice", notices.NOTICES, Part(notice_tables.notice_unit)),
)
COPIES = (Copies("staff", schema.staff),)
