"""The RPCs by which people add and change properties, units and assets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chassis.auth.identity import Call
from chassis.imports.importer import lock_company_imports
from chassis.refusals import invalid_request
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.editing import EditableTable, RecordEditor
from makeready.catalog.v1 import place_commands_pb2 as pb
from svc_catalog.places import import_queries as q
from svc_catalog.places import inputs, queries, records, references, rules
from svc_catalog.places.lookups import find_property, find_unit
from svc_catalog.places.tables import asset, property_, unit


class PlaceCommandsService:
    """Adds and changes properties, units and assets."""

    def __init__(self, commands: CommandRunner, links_url: str) -> None:
        self.commands = commands
        self.properties = RecordEditor(
            "property",
            EditableTable(property_, *q.PROPERTIES.changeable),
            queries.ONE_PROPERTY,
            records.PROPERTY.renderer(links_url),
            references.PROPERTY_REFERENCES.of,
        )
        self.units = RecordEditor(
            "unit",
            EditableTable(unit, *q.UNITS.changeable),
            queries.ONE_UNIT,
            records.UNIT.renderer(links_url),
            references.UNIT_REFERENCES.of,
        )
        self.assets = RecordEditor(
            "asset",
            EditableTable(asset, *q.ASSETS.changeable),
            queries.ONE_ASSET,
            records.ASSET.renderer(links_url),
            references.ASSET_REFERENCES.of,
        )

    async def AddProperty(self, request: pb.AddPropertyRequest, call: Call) -> pb.AddPropertyResponse:
        values = inputs.PROPERTY_FIELDS.of(request)

        async def work(command: Command) -> pb.AddPropertyResponse:
            return pb.AddPropertyResponse(document=await self.properties.add(command, values))

        return await self.commands.run(call, request, pb.AddPropertyResponse, work)

    async def UpdateProperty(self, request: pb.UpdatePropertyRequest, call: Call) -> pb.UpdatePropertyResponse:
        values = inputs.PROPERTY_FIELDS.of(request)

        async def work(command: Command) -> pb.UpdatePropertyResponse:
            locked = await self.properties.lock(command, request.property_id)
            return pb.UpdatePropertyResponse(document=await self.properties.change(command, locked, values))

        return await self.commands.run(call, request, pb.UpdatePropertyResponse, work)

    async def AddUnit(self, request: pb.AddUnitRequest, call: Call) -> pb.AddUnitResponse:
        values = inputs.UNIT_FIELDS.of(request)
        rules.check_measures(values, has_floorplan=False)

        async def work(command: Command) -> pb.AddUnitResponse:
            await _lock_imports_to_name(command, values)
            await find_property(command, request.property_id)
            columns, _ = await _parts(command, values, {"property_id": request.property_id})
            return pb.AddUnitResponse(document=await self.units.add(command, columns))

        return await self.commands.run(call, request, pb.AddUnitResponse, work)

    async def UpdateUnit(self, request: pb.UpdateUnitRequest, call: Call) -> pb.UpdateUnitResponse:
        values = inputs.UNIT_FIELDS.of(request)

        async def work(command: Command) -> pb.UpdateUnitResponse:
            await _lock_imports_to_name(command, values)
            locked = await self.units.lock(command, request.unit_id)
            rules.check_measures(values, has_floorplan=locked.row["floorplan_id"] is not None)
            floor = locked.record.floor
            # If the building changes, the unit moves to the floor with the same name in the new building.
            moved = {"floor": floor.name} if floor is not None and "building" in values else {}
            columns, touched = await _parts(command, moved | values, dict(locked.row))
            return pb.UpdateUnitResponse(document=await self.units.change(command, locked, columns, touched))

        return await self.commands.run(call, request, pb.UpdateUnitResponse, work)

    async def AddAsset(self, request: pb.AddAssetRequest, call: Call) -> pb.AddAssetResponse:
        values = inputs.ASSET_FIELDS.of(request)
        rules.check_place(values)

        async def work(command: Command) -> pb.AddAssetResponse:
            await _lock_imports_to_name(command, values)
            await find_property(command, request.property_id)
            columns = await self._placed(command, values, request.property_id)
            columns.setdefault("status", rules.DEFAULT_ASSET_STATUS)
            return pb.AddAssetResponse(document=await self.assets.add(command, columns))

        return await self.commands.run(call, request, pb.AddAssetResponse, work)

    async def UpdateAsset(self, request: pb.UpdateAssetRequest, call: Call) -> pb.UpdateAssetResponse:
        values = inputs.ASSET_FIELDS.of(request)
        rules.check_place(values)

        async def work(command: Command) -> pb.UpdateAssetResponse:
            await _lock_imports_to_name(command, values)
            locked = await self.assets.lock(command, request.asset_id)
            row = locked.row
            has_place = row["unit_id"] is not None or row["location_id"] is not None
            rules.check_asset_moves(values, row["property_id"], has_place)
            if "property_id" in values:
                await find_property(command, values["property_id"])
            columns = await self._placed(command, values, values.get("property_id", row["property_id"]))
            return pb.UpdateAssetResponse(document=await self.assets.change(command, locked, columns))

        return await self.commands.run(call, request, pb.UpdateAssetResponse, work)

    async def _placed(self, command: Command, values: Mapping[str, Any], property_id: int) -> dict[str, Any]:
        """The values of an asset's columns. A place that the values name is created if it does not exist."""
        columns = {name: value for name, value in values.items() if name not in rules.PLACE}
        if columns.get("status", "") is None:
            columns["status"] = rules.DEFAULT_ASSET_STATUS
        if any(name in values for name in rules.PLACE):
            columns |= {"unit_id": None, "location_id": None}
        if values.get("unit_id") is not None:
            unit = await find_unit(command, values["unit_id"])
            if unit["property_id"] != property_id:
                raise invalid_request("The location lies in another property.", "unit_id")
            columns["unit_id"] = unit["id"]
        elif values.get("location") is not None:
            key = (property_id, values["location"], values["location_type"])
            columns["location_id"] = (await q.LOCATIONS.ids(command.connection, command.company_id, [key]))[key]
        return columns


async def _lock_imports_to_name(command: Command, values: Mapping[str, Any]) -> None:
    """Takes the lock of imports: otherwise two writers that first name the same building would both create it."""
    if "building" in values or any(values.get(name) is not None for name in ("floor", "floorplan", "location")):
        await lock_company_imports(command.connection, command.company_id)


async def _parts(command: Command, values: Mapping[str, Any], before: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The values of a unit's columns, with the ids of its building, floor and floorplan, created if missing, and
    whether its floorplan's measures changed. before: the stored columns, at least property_id."""
    property_id = before["property_id"]
    parts = ("building", "floor", "floorplan", *rules.FLOORPLAN_MEASURES)
    columns = {name: value for name, value in values.items() if name not in parts} | {"property_id": property_id}

    async def part(name: str, places: q.NamedPlaces, *within: Any) -> None:
        if name not in values:
            return
        key = (property_id, values[name], *within)
        ids = {} if values[name] is None else await places.ids(command.connection, command.company_id, [key])
        columns[f"{name}_id"] = ids.get(key)

    await part("building", q.BUILDINGS)
    await part("floorplan", q.FLOORPLANS)
    await part("floor", q.FLOORS, columns.get("building_id", before.get("building_id")))
    stated = {name: values[name] for name in rules.FLOORPLAN_MEASURES if name in values}
    if not stated:
        return columns, False
    plan_id: int = columns["floorplan_id"] if "floorplan_id" in columns else before["floorplan_id"]
    plans = await q.floorplan_measures(command.connection, command.company_id, [property_id], [plan_id])
    differs = plans[plan_id].differs(stated)
    if differs:
        await q.save_floorplan_measures(command.connection, [plans[plan_id]._replace(**stated)])
    return columns, differs
