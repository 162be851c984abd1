"""The RPCs that list, fetch and import properties, units and assets: identity, statement, record."""

from __future__ import annotations

from chassis.auth import identity
from chassis.changes.reads import RecordReads
from chassis.db.database import Database
from chassis.imports.importer import Importer
from makeready.catalog.v1 import places_pb2 as pb
from svc_catalog.places import inputs, queries, records
from svc_catalog.places.imports import assets, properties, units


class PropertiesService:
    """Lists, fetches and imports properties (spec 4.3)."""

    def __init__(self, database: Database, importer: Importer, links_url: str) -> None:
        self.database = database
        self.importer = importer
        renderer = records.PROPERTY.renderer(links_url)
        self.properties = RecordReads("property", database, renderer, queries.PROPERTIES_PAGE, queries.PROPERTY_CHANGES)

    async def ListProperties(self, request: pb.ListPropertiesRequest, call: identity.Call) -> pb.ListPropertiesResponse:
        company_id = identity.company_id(call)
        return pb.ListPropertiesResponse(page=await self.properties.page(company_id, request))

    async def GetProperty(self, request: pb.GetPropertyRequest, call: identity.Call) -> pb.GetPropertyResponse:
        company_id = identity.company_id(call)
        return pb.GetPropertyResponse(document=await self.properties.fetch(company_id, request.property_id))

    async def ListPropertyChanges(
        self, request: pb.ListPropertyChangesRequest, call: identity.Call
    ) -> pb.ListPropertyChangesResponse:
        company_id = identity.caller(call).company_id
        return pb.ListPropertyChangesResponse(feed=await self.properties.feed(company_id, request))

    async def ImportProperties(
        self, request: pb.ImportPropertiesRequest, call: identity.Call
    ) -> pb.ImportPropertiesResponse:
        results = await self.importer.run(properties.save, inputs.PropertyRow, request, call)
        return pb.ImportPropertiesResponse(results=results)


class UnitsService:
    """Lists, fetches and imports units (spec 4.4)."""

    def __init__(self, database: Database, importer: Importer, links_url: str) -> None:
        self.database = database
        self.importer = importer
        renderer = records.UNIT.renderer(links_url)
        self.units = RecordReads("unit", database, renderer, queries.UNITS_PAGE, queries.UNIT_CHANGES)

    async def ListUnits(self, request: pb.ListUnitsRequest, call: identity.Call) -> pb.ListUnitsResponse:
        company_id = identity.company_id(call)
        return pb.ListUnitsResponse(page=await self.units.page(company_id, request))

    async def GetUnit(self, request: pb.GetUnitRequest, call: identity.Call) -> pb.GetUnitResponse:
        company_id = identity.company_id(call)
        return pb.GetUnitResponse(document=await self.units.fetch(company_id, request.unit_id))

    async def ListUnitChanges(
        self, request: pb.ListUnitChangesRequest, call: identity.Call
    ) -> pb.ListUnitChangesResponse:
        company_id = identity.caller(call).company_id
        return pb.ListUnitChangesResponse(feed=await self.units.feed(company_id, request))

    async def ImportUnits(self, request: pb.ImportUnitsRequest, call: identity.Call) -> pb.ImportUnitsResponse:
        results = await self.importer.run(units.save, inputs.UnitRow, request, call)
        return pb.ImportUnitsResponse(results=results)


class AssetsService:
    """Lists, fetches and imports assets (spec 4.6)."""

    def __init__(self, database: Database, importer: Importer, links_url: str) -> None:
        self.database = database
        self.importer = importer
        renderer = records.ASSET.renderer(links_url)
        self.assets = RecordReads("asset", database, renderer, queries.ASSETS_PAGE, queries.ASSET_CHANGES)

    async def ListAssets(self, request: pb.ListAssetsRequest, call: identity.Call) -> pb.ListAssetsResponse:
        company_id = identity.company_id(call)
        return pb.ListAssetsResponse(page=await self.assets.page(company_id, request))

    async def GetAsset(self, request: pb.GetAssetRequest, call: identity.Call) -> pb.GetAssetResponse:
        company_id = identity.company_id(call)
        return pb.GetAssetResponse(document=await self.assets.fetch(company_id, request.asset_id))

    async def ListAssetChanges(
        self, request: pb.ListAssetChangesRequest, call: identity.Call
    ) -> pb.ListAssetChangesResponse:
        company_id = identity.caller(call).company_id
        return pb.ListAssetChangesResponse(feed=await self.assets.feed(company_id, request))

    async def ImportAssets(self, request: pb.ImportAssetsRequest, call: identity.Call) -> pb.ImportAssetsResponse:
        results = await self.importer.run(assets.save, inputs.AssetRow, request, call)
        return pb.ImportAssetsResponse(results=results)
