"""Where a work order is done: a part of the sheet."""

from __future__ import annotations

from aiohttp import web

from console.areas.places import assets, properties, units
from console.areas.places.places import fetched
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.lists import number
from makeready.catalog.v1 import places_pb2 as pb

PATH = "/places/of-order"
RPCS = (properties.GET, units.GET, assets.GET)


async def panel(context: PageContext) -> web.StreamResponse:
    """The address of a property, with a unit and an asset in it."""
    ids = {name: number(context.query, name) for name in ("property_id", "unit_id", "asset_id")}
    if ids["property_id"] is None:
        raise web.HTTPNotFound
    fetches = [fetched(context, properties.GET, pb.GetPropertyRequest(property_id=ids["property_id"]))]
    if ids["unit_id"]:
        fetches.append(fetched(context, units.GET, pb.GetUnitRequest(unit_id=ids["unit_id"])))
    if ids["asset_id"]:
        fetches.append(fetched(context, assets.GET, pb.GetAssetRequest(asset_id=ids["asset_id"])))
    of_property, *others = await together(*fetches)
    return context.render(
        "places/of_order.html", property=of_property, unit=others[0] if ids["unit_id"] else None,
        asset=others[-1] if ids["asset_id"] else None,
    )  # fmt: skip
