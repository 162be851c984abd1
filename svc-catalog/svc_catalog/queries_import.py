"""The SQL statements of an import: a batch is a handful of statements, whatever its size."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Table, Text, and_, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.batches import InsertMany, UpdateMany, offered, turned
from chassis.database import Connection
from chassis.statements import Statement
from svc_catalog import tables as t

_company_id = bindparam("company_id", type_=BigInteger)
_external_ids = bindparam("external_ids", type_=ARRAY(Text))

_LOCK = Statement(select(func.pg_advisory_xact_lock(bindparam("lock", type_=BigInteger)).label("locked")))


async def lock_company(connection: Connection, company_id: int) -> None:
    """One batch of a company at a time: two that name the same records would wait for each other in a ring."""
    named = hashlib.blake2b(f"import/{company_id}".encode(), digest_size=8).digest()
    await connection.execute(_LOCK, lock=int.from_bytes(named, "big", signed=True))


class Stored:
    """The records of one kind, as an import meets them. changeable: the columns that a row may change."""

    def __init__(self, table: Table, *changeable: str) -> None:
        self.changeable = changeable
        stamped = [name for name in ("version", "updated_at") if name in table.c]
        self._known = Statement(
            select(*(table.c[name] for name in ("id", "external_id", *stamped, *changeable)))
            .where(table.c.company_id == _company_id, table.c.external_id == func.any(_external_ids))
            .order_by(table.c.id)
            .with_for_update()
        )
        own = ("company_id", "external_id", "source")
        fresh = (*own, *(name for name in stamped if name != "version"), *changeable)
        self._insert = InsertMany(table, fresh, table.c.id, table.c.external_id)
        self._update = UpdateMany(table, (*stamped, *changeable))

    async def for_update(
        self, connection: Connection, company_id: int, external_ids: Sequence[str]
    ) -> dict[str, Record]:
        """The records that exist already, by external_id, locked."""
        rows = await connection.rows(self._known, company_id=company_id, external_ids=external_ids)
        return {row["external_id"]: row for row in rows}

    async def insert(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        """Inserts the rows and gives each its id."""
        ids = {row["external_id"]: row["id"] for row in await self._insert.run(connection, rows)}
        for row in rows:
            row["id"] = ids[row["external_id"]]

    async def update(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        await self._update.run(connection, rows)


PROPERTIES = Stored(
    t.property_,
    "name",
    "address",
    "city",
    "state",
    "postal_code",
    "building_type",
    "construction_type",
    "unit_count",
    "year_built",
    "latitude",
    "longitude",
    "created_at",
)
UNITS = Stored(t.unit, "property_id", "name", "unit_number", "floorplan_id", "building_id", "floor_id", "created_at")
ASSETS = Stored(
    t.asset,
    "property_id",
    "name",
    "category",
    "sub_category",
    "asset_tag",
    "make",
    "model",
    "serial_number",
    "status",
    "unit_id",
    "location_id",
    "year",
    "installed_on",
    "warranty_expires_on",
    "expected_life_years",
    "created_at",
)


def _by_external_id(table: Table, *columns: str) -> Statement:
    # Shared, so that what a row of the file names is still there, as it is, when the row is stored.
    return Statement(
        select(table.c.id, table.c.external_id, *(table.c[name] for name in columns))
        .where(table.c.company_id == _company_id, table.c.external_id == func.any(_external_ids))
        .with_for_update(read=True, key_share=True)
    )


_PROPERTY_IDS = _by_external_id(t.property_)
_UNIT_IDS = _by_external_id(t.unit, "property_id")


async def property_ids(connection: Connection, company_id: int, external_ids: Sequence[str]) -> dict[str, int]:
    rows = await connection.rows(_PROPERTY_IDS, company_id=company_id, external_ids=external_ids)
    return {row["external_id"]: row["id"] for row in rows}


async def units(connection: Connection, company_id: int, external_ids: Sequence[str]) -> dict[str, Record]:
    """`id` and `property_id` of each unit, by its external_id."""
    rows = await connection.rows(_UNIT_IDS, company_id=company_id, external_ids=external_ids)
    return {row["external_id"]: row for row in rows}


class Places:
    """Parts of properties that a file names without listing them; each is made when it is first named."""

    def __init__(self, table: Table, *key: str) -> None:
        """key: the columns that tell one from another, property_id first."""
        self._key = key
        named = offered(table, key)
        same = and_(
            *(
                table.c[name].is_not_distinct_from(named.c[name])
                if table.c[name].nullable
                # An index serves equality alone.
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
        """The id of each, by its key."""
        wanted = [dict(zip(self._key, key, strict=True)) for key in dict.fromkeys(keys)]
        if not wanted:
            return {}
        rows = await connection.rows(self._find, **turned(wanted, self._key))
        found = {tuple(row)[1:]: row["id"] for row in rows}
        missing = [{"company_id": company_id, **one} for one in wanted if tuple(one.values()) not in found]
        made = await self._insert.run(connection, missing)
        return found | {tuple(row)[1:]: row["id"] for row in made}


BUILDINGS = Places(t.building, "property_id", "name")
FLOORS = Places(t.floor, "property_id", "name", "building_id")
FLOORPLANS = Places(t.floorplan, "property_id", "name")
LOCATIONS = Places(t.location, "property_id", "name", "location_type")

FLOORPLAN_MEASURES = ("bedrooms", "bathrooms", "square_feet")
_MEASURES = Statement(
    select(
        t.floorplan.c.company_id,
        t.floorplan.c.property_id,
        t.floorplan.c.id,
        *(t.floorplan.c[name] for name in FLOORPLAN_MEASURES),
    ).where(
        t.floorplan.c.company_id == _company_id,
        t.floorplan.c.property_id == func.any(bindparam("property_ids", type_=ARRAY(BigInteger))),
        t.floorplan.c.id == func.any(bindparam("floorplan_ids", type_=ARRAY(BigInteger))),
    )
)
_SAVE_MEASURES = UpdateMany(t.floorplan, FLOORPLAN_MEASURES)


async def floorplan_measures(
    connection: Connection, company_id: int, property_ids: Sequence[int], floorplan_ids: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """The key and FLOORPLAN_MEASURES of each floorplan, by its id."""
    rows = await connection.rows(
        _MEASURES, company_id=company_id, property_ids=property_ids, floorplan_ids=floorplan_ids
    )
    return {row["id"]: dict(row) for row in rows}


async def save_floorplan_measures(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    await _SAVE_MEASURES.run(connection, rows)
