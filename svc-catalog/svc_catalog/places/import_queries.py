"""The SQL statements of an import. Their number does not depend on the batch's size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Table, and_, func, select

from chassis.db.database import Connection
from chassis.db.rows import InsertMany, UpdateMany, array_rows_of, columns_of
from chassis.db.statements import Query, Statement, param
from chassis.imports.importer import ImportTable
from chassis.imports.undo import Beside
from svc_catalog.places import tables as t
from svc_catalog.places.rules import FLOORPLAN_MEASURES
from svc_catalog.schema import IDS, editable_columns

PROPERTIES = ImportTable(t.property_, *editable_columns(t.property_))
# No file sets the columns that svc-occupancy owns.
UNITS = ImportTable(t.unit, *editable_columns(t.unit, "unit_status", "projected_ready_on", "occupancy_version"))
ASSETS = ImportTable(t.asset, *editable_columns(t.asset))


class NamedPlaces:
    """Parts of properties that imports refer to by name; a part is created when it is first named."""

    def __init__(self, table: Table, *key: str) -> None:
        """key: the columns that identify a part, property_id first."""
        self._key = key
        named = array_rows_of(table, key)
        same = and_(
            *(
                table.c[name].is_not_distinct_from(named.c[name])
                if table.c[name].nullable
                # PostgreSQL uses an index for `=` only, not for IS NOT DISTINCT FROM.
                else table.c[name] == named.c[name]
                for name in key
            )
        )
        columns = (table.c.id, *(table.c[name] for name in key))
        self._find = Statement(select(*columns).select_from(table.join(named, same)))
        self._insert = InsertMany(table, ("company_id", *key), *columns)

    async def ids(
        self, connection: Connection, company_id: int, keys: Iterable[tuple[Any, ...]]
    ) -> dict[tuple[Any, ...], int]:
        """The id of each part, by its key."""
        parts = [dict(zip(self._key, key, strict=True)) for key in dict.fromkeys(keys)]
        if not parts:
            return {}
        rows = await connection.rows(self._find, **columns_of(parts, self._key))
        ids = {tuple(row)[1:]: row["id"] for row in rows}
        missing = [{"company_id": company_id, **part} for part in parts if tuple(part.values()) not in ids]
        inserted = await self._insert.run(connection, missing)
        return ids | {tuple(row)[1:]: row["id"] for row in inserted}


BUILDINGS = NamedPlaces(t.building, "property_id", "name")
FLOORS = NamedPlaces(t.floor, "property_id", "name", "building_id")
FLOORPLANS = NamedPlaces(t.floorplan, "property_id", "name")
LOCATIONS = NamedPlaces(t.location, "property_id", "name", "location_type")


class FloorplanMeasures(NamedTuple):
    """The stored measures of a floorplan, with its key."""

    company_id: int
    property_id: int
    id: int
    bedrooms: int | None
    bathrooms: float | None
    square_feet: int | None

    def differs(self, stated: Mapping[str, Any]) -> bool:
        """stated: some of the measures, by name."""
        return any(getattr(self, name) != value for name, value in stated.items())


_MEASURES = Query(
    FloorplanMeasures,
    select(*(t.floorplan.c[name] for name in FloorplanMeasures._fields)).where(
        t.floorplan.c.company_id == param("company_id", BigInteger),
        t.floorplan.c.property_id == func.any(param("property_ids", IDS)),
        t.floorplan.c.id == func.any(param("floorplan_ids", IDS)),
    ),
)
MEASURES = Beside(t.floorplan, *FLOORPLAN_MEASURES)
_NAMES = Statement(
    select(t.floorplan.c.id, t.floorplan.c.name).where(
        t.floorplan.c.company_id == param("company_id", BigInteger),
        t.floorplan.c.property_id == func.any(param("property_ids", IDS)),
        t.floorplan.c.id == func.any(param("floorplan_ids", IDS)),
    )
)
_SAVE_MEASURES = UpdateMany(t.floorplan, FLOORPLAN_MEASURES)


async def floorplan_measures(
    connection: Connection, company_id: int, property_ids: Sequence[int], floorplan_ids: Sequence[int]
) -> dict[int, FloorplanMeasures]:
    """The measures of each floorplan, by its id."""
    rows = await _MEASURES.rows(
        connection, company_id=company_id, property_ids=property_ids, floorplan_ids=floorplan_ids
    )
    return {row.id: row for row in rows}


async def floorplan_names(
    connection: Connection, company_id: int, units: Sequence[Mapping[str, Any]]
) -> dict[int | None, str]:
    """The names of the units' floorplans, by id. units: with `property_id` and `floorplan_id`."""
    planned = [unit for unit in units if unit["floorplan_id"] is not None]
    if not planned:
        return {}
    property_ids, plan_ids = (sorted({unit[name] for unit in planned}) for name in ("property_id", "floorplan_id"))
    rows = await connection.rows(_NAMES, company_id=company_id, property_ids=property_ids, floorplan_ids=plan_ids)
    return {row["id"]: row["name"] for row in rows}


async def save_floorplan_measures(connection: Connection, rows: Sequence[FloorplanMeasures]) -> None:
    await _SAVE_MEASURES.run(connection, [row._asdict() for row in rows])
