"""The place that a request names: a property, with a unit or an asset on it."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import BigInteger, and_, select

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, param
from chassis.refusals import Refusal
from svc_tickets.replicas.fetch import ReplicaFetcher
from svc_tickets.schema import asset, property_, unit


class _Place(NamedTuple):
    """A property, and the ids of the requested unit and asset if they exist on it."""

    property_id: int
    unit_id: int | None
    asset_id: int | None


def _place() -> Query[_Place]:
    """The parameters unit_id and asset_id are 0 if the request names none."""
    here = property_.c.id
    its_unit = and_(unit.c.id == param("unit_id", BigInteger), unit.c.property_id == here, unit.c.version > 0)
    its_asset = and_(
        asset.c.id == param("asset_id", BigInteger),
        asset.c.property_id == here,
        asset.c.version > 0,
    )
    rows = select(here.label("property_id"), unit.c.id.label("unit_id"), asset.c.id.label("asset_id"))
    return Query(
        _Place,
        rows.select_from(property_.outerjoin(unit, its_unit).outerjoin(asset, its_asset)).where(
            here == param("property_id", BigInteger),
            property_.c.company_id == param("company_id", BigInteger),
            property_.c.version > 0,
        ),
    )


_PLACE = _place()


async def fault(
    database: Connection | Database, company_id: int, property_id: int, unit_id: int | None, asset_id: int | None
) -> Refusal | None:
    """The refusal 404 if the replicas lack the property, or the unit or asset on it; else None."""
    found = await _PLACE.row(
        database, company_id=company_id, property_id=property_id, unit_id=unit_id or 0, asset_id=asset_id or 0
    )
    if found is None:
        return Refusal(404, "not_found", "The company has no property with that id.", "property_id")
    for kind, wanted, there in (("unit", unit_id, found.unit_id), ("asset", asset_id, found.asset_id)):
        if wanted is not None and there is None:
            message = f"The property has no {kind} with that id; check both ids."
            return Refusal(404, "not_found", message, f"{kind}_id")
    return None


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
    await replicas.fetch(company_id, property_ids=[property_id], unit_ids=[unit_id or 0], asset_ids=[asset_id or 0])
    lacking = await fault(database, company_id, property_id, unit_id, asset_id)
    if lacking is not None:
        raise lacking
