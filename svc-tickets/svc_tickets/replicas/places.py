"""The place that a request names: a property, with a unit or an asset on it."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import BigInteger, and_, func, select

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, param
from chassis.refusals import Refusal
from svc_tickets.replicas.fetch import ReplicaFetcher
from svc_tickets.schema import asset, property_, unit


class Place(NamedTuple):
    """A property, and the requested unit and asset if they exist on it."""

    property_id: int
    unit_id: int | None
    unit_number: str | None
    asset_id: int | None


def _place() -> Query[Place]:
    """The parameters unit_id and asset_id are 0 if the request names none."""
    here = property_.c.id
    its_unit = and_(unit.c.id == param("unit_id", BigInteger), unit.c.property_id == here, unit.c.version > 0)
    its_asset = and_(
        asset.c.id == param("asset_id", BigInteger),
        asset.c.property_id == here,
        asset.c.version > 0,
    )
    rows = select(
        here.label("property_id"), unit.c.id.label("unit_id"), unit.c.unit_number, asset.c.id.label("asset_id")
    )
    return Query(
        Place,
        rows.select_from(property_.outerjoin(unit, its_unit).outerjoin(asset, its_asset)).where(
            here == param("property_id", BigInteger),
            property_.c.company_id == param("company_id", BigInteger),
            property_.c.version > 0,
        ),
    )


_PLACE = _place()


async def on_property(
    database: Connection | Database, company_id: int, property_id: int, unit_id: int | None, asset_id: int | None
) -> Place | None:
    """The property, with the unit and the asset if they lie on it; None if the replicas lack the property."""
    return await _PLACE.row(
        database, company_id=company_id, property_id=property_id, unit_id=unit_id or 0, asset_id=asset_id or 0
    )


async def fault(
    database: Connection | Database, company_id: int, property_id: int, unit_id: int | None, asset_id: int | None
) -> Refusal | None:
    """The refusal 404 if the replicas lack the property, or the unit or asset on it; else None."""
    place = await on_property(database, company_id, property_id, unit_id, asset_id)
    if place is None:
        return Refusal(404, "not_found", "The company has no property with that id.", "property_id")
    for kind, requested_id, stored_id in (("unit", unit_id, place.unit_id), ("asset", asset_id, place.asset_id)):
        if requested_id is not None and stored_id is None:
            message = f"The property has no {kind} with that id; check both ids."
            return Refusal(404, "not_found", message, f"{kind}_id")
    return None


class NamedPlace(NamedTuple):
    """A property, and the unit and asset on it that a new ticket names."""

    property_id: int
    property_name: str
    unit_id: int | None
    unit_name: str | None
    asset_id: int | None
    asset_name: str | None


def _named_place() -> Query[NamedPlace]:
    """The parameters are 0 for what is not named. A unit or an asset says its property."""
    unit_id, asset_id = param("unit_id", BigInteger), param("asset_id", BigInteger)
    its_unit = and_(unit.c.id == unit_id, unit.c.property_id == property_.c.id, unit.c.version > 0)
    its_asset = and_(asset.c.id == asset_id, asset.c.property_id == property_.c.id, asset.c.version > 0)
    of_unit = select(unit.c.property_id).where(unit.c.id == unit_id).scalar_subquery()
    of_asset = select(asset.c.property_id).where(asset.c.id == asset_id).scalar_subquery()
    here = func.coalesce(func.nullif(param("property_id", BigInteger), 0), of_unit, of_asset)
    columns = (
        named.c[name].label(f"{kind}_{name}")
        for kind, named in (("property", property_), ("unit", unit), ("asset", asset))
        for name in ("id", "name")
    )
    return Query(
        NamedPlace,
        select(*columns)
        .select_from(property_.outerjoin(unit, its_unit).outerjoin(asset, its_asset))
        .where(
            property_.c.id == here,
            property_.c.company_id == param("company_id", BigInteger),
            property_.c.version > 0,
        ),
    )


_NAMED_PLACE = _named_place()


async def named(
    database: Database,
    replicas: ReplicaFetcher,
    company_id: int,
    property_id: int | None,
    unit_id: int | None,
    asset_id: int | None,
) -> NamedPlace:
    """The place with its names. Queries the owner once for records that the replicas lack. Raises Refusal 404."""
    ids = {"property_id": property_id or 0, "unit_id": unit_id or 0, "asset_id": asset_id or 0}
    for attempt in range(2):
        if attempt:
            await replicas.fetch(company_id, {"property": property_id, "unit": unit_id, "asset": asset_id})
        place = await _NAMED_PLACE.row(database, company_id=company_id, **ids)
        if place is not None and (unit_id, asset_id) == (place.unit_id, place.asset_id):
            return place
    raise Refusal(404, "not_found", "The company has no such place; check the ids.")


async def find(
    database: Database,
    replicas: ReplicaFetcher,
    company_id: int,
    property_id: int,
    unit_id: int | None,
    asset_id: int | None,
) -> None:
    """Queries the owner once for records that the replicas lack. Raises Refusal 404 if the owner lacks them too."""
    if await fault(database, company_id, property_id, unit_id, asset_id) is None:
        return
    await replicas.fetch(company_id, {"property": property_id, "unit": unit_id, "asset": asset_id})
    lacking = await fault(database, company_id, property_id, unit_id, asset_id)
    if lacking is not None:
        raise lacking
