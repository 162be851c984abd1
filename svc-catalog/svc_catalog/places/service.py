"""The RPCs that list, fetch and import properties, units and assets: identity, statement, record."""

from __future__ import annotations

from chassis.auth import identity
from chassis.db.database import Database
from chassis.imports.importer import Importer
from chassis.lists.paging import page
from chassis.refusals import not_found
from makeready.catalog.v1 import places_pb2 as pb
from svc_catalog.places import inputs, queries, records, rules
from svc_catalog.places.imports import assets, properties, units

_STATUS_LABELS = dict(enumerate(rules.ASSET_STATUSES, start=1))


class PropertiesService:
    """Lists, fetches and imports properties (spec 4.3)."""

    def __init__(self, database: Database, importer: Importer, links_url: str) -> None:
        self.database = database
        self.importer = importer
        self.property = records.PROPERTY.renderer(links_url)

    async def ListProperties(self, request: pb.ListPropertiesRequest, call: identity.Call) -> pb.ListPropertiesResponse:
        company_id = identity.company_id(call)
        rows = await queries.PROPERTIES_PAGE.rows(self.database, company_id, request.after_id, request.limit, {})
        return pb.ListPropertiesResponse(page=page(rows, request.limit, self.property.record))

    async def GetProperty(self, request: pb.GetPropertyRequest, call: identity.Call) -> pb.GetPropertyResponse:
        company_id = identity.company_id(call)
        row = await self.database.row(queries.ONE_PROPERTY, company_id=company_id, entity_id=request.property_id)
        if row is None:
            raise not_found("property")
        return pb.GetPropertyResponse(document=self.property.document(row))

    async def ListPropertyChanges(
        self, request: pb.ListPropertyChangesRequest, call: identity.Call
    ) -> pb.ListPropertyChangesResponse:
        company_id = identity.caller(call).company_id
        feed = await queries.PROPERTY_CHANGES.feed(
            self.database, company_id, request, self.property.record_of_wider_row
        )
        return pb.ListPropertyChangesResponse(feed=feed)

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
        self.unit = records.UNIT.renderer(links_url)

    async def ListUnits(self, request: pb.ListUnitsRequest, call: identity.Call) -> pb.ListUnitsResponse:
        company_id = identity.company_id(call)
        filters = queries.UNITS_PAGE.filters_of(request)
        rows = await queries.UNITS_PAGE.rows(self.database, company_id, request.after_id, request.limit, filters)
        return pb.ListUnitsResponse(page=page(rows, request.limit, self.unit.record))

    async def GetUnit(self, request: pb.GetUnitRequest, call: identity.Call) -> pb.GetUnitResponse:
        company_id = identity.company_id(call)
        row = await self.database.row(queries.ONE_UNIT, company_id=company_id, entity_id=request.unit_id)
        if row is None:
            raise not_found("unit")
        return pb.GetUnitResponse(document=self.unit.document(row))

    async def ListUnitChanges(
        self, request: pb.ListUnitChangesRequest, call: identity.Call
    ) -> pb.ListUnitChangesResponse:
        company_id = identity.caller(call).company_id
        feed = await queries.UNIT_CHANGES.feed(self.database, company_id, request, self.unit.record_of_wider_row)
        return pb.ListUnitChangesResponse(feed=feed)

    async def ImportUnits(self, request: pb.ImportUnitsRequest, call: identity.Call) -> pb.ImportUnitsResponse:
        results = await self.importer.run(units.save, inputs.UnitRow, request, call)
        return pb.ImportUnitsResponse(results=results)


class AssetsService:
    """Lists, fetches and imports assets (spec 4.6)."""

    def __init__(self, database: Database, importer: Importer, links_url: str) -> None:
        self.database = database
        self.importer = importer
        self.asset = records.ASSET.renderer(links_url)

    async def ListAssets(self, request: pb.ListAssetsRequest, call: identity.Call) -> pb.ListAssetsResponse:
        company_id = identity.company_id(call)
        filters = queries.ASSETS_PAGE.filters_of(request)
        rows = await queries.ASSETS_PAGE.rows(self.database, company_id, request.after_id, request.limit, filters)
        return pb.ListAssetsResponse(page=page(rows, request.limit, self.asset.record))

    async def GetAsset(self, request: pb.GetAssetRequest, call: identity.Call) -> pb.GetAssetResponse:
        company_id = identity.company_id(call)
        row = await self.database.row(queries.ONE_ASSET, company_id=company_id, entity_id=request.asset_id)
        if row is None:
            raise not_found("asset")
        return pb.GetAssetResponse(document=self.asset.document(row))

    async def ListAssetChanges(
        self, request: pb.ListAssetChangesRequest, call: identity.Call
    ) -> pb.ListAssetChangesResponse:
        company_id = identity.caller(call).company_id
        feed = await queries.ASSET_CHANGES.feed(self.database, company_id, request, self.asset.record_of_wider_row)
        return pb.ListAssetChangesResponse(feed=feed)

    async def ImportAssets(self, request: pb.ImportAssetsRequest, call: identity.Call) -> pb.ImportAssetsResponse:
        results = await self.importer.run(assets.save, inputs.AssetRow, request, call)
        return pb.ImportAssetsResponse(results=results)
