"""svc-catalog: `python -m svc_catalog` serves, `python -m svc_catalog migrate` migrates."""

from __future__ import annotations

from types import ModuleType

from chassis.app.process import run_process
from chassis.app.server import App
from chassis.changes.tables import served_of
from chassis.imports.importer import Importer
from chassis.lists.lookup import Identified
from chassis.replicas.resync import ReplicaSource
from chassis.reports.reading import ReportReader
from makeready.catalog.v1 import (
    inspection_commands_pb2,
    inspection_details_pb2,
    inspection_reports_pb2,
    inspection_templates_pb2,
    inspections_pb2,
    meter_commands_pb2,
    meter_search_pb2,
    meters_pb2,
    notices_pb2,
    place_commands_pb2,
    place_search_pb2,
    places_pb2,
    sandbox_copies_pb2,
    vendor_commands_pb2,
    vendor_details_pb2,
    vendors_pb2,
)
from makeready.common.v1 import lookup_pb2
from makeready.events.v1 import replicas_pb2
from svc_catalog import config, consumers, replica_source, schema, tables, undoing
from svc_catalog.inspection_templates.commands import InspectionTemplatesService
from svc_catalog.inspections.commands import InspectionCommandsService
from svc_catalog.inspections.details import InspectionDetailsService
from svc_catalog.inspections.queries import INSPECTION_CHANGES
from svc_catalog.inspections.records import INSPECTION
from svc_catalog.inspections.service import InspectionsService
from svc_catalog.inspections.staff import Staff
from svc_catalog.inspections.sweeps import overdue_inspections
from svc_catalog.inspections.tables import inspection
from svc_catalog.meters.commands import MeterCommandsService
from svc_catalog.meters.queries import METER_CHANGES, READING_CHANGES
from svc_catalog.meters.service import MetersService
from svc_catalog.meters.tables import meter, reading
from svc_catalog.notices.service import NoticesService
from svc_catalog.places.commands import PlaceCommandsService
from svc_catalog.places.queries import ASSET_CHANGES, PROPERTY_CHANGES, UNIT_CHANGES
from svc_catalog.places.service import AssetsService, PropertiesService, UnitsService
from svc_catalog.places.tables import asset, property_, unit
from svc_catalog.reports import queries as report_queries
from svc_catalog.reports.service import InspectionReportsService
from svc_catalog.sandbox_copies import SandboxCopiesService
from svc_catalog.search.indexing import Indexing
from svc_catalog.search.service import MeterSearchService, PlaceSearchService
from svc_catalog.vendors.commands import VendorCommandsService
from svc_catalog.vendors.details import VendorDetailsService
from svc_catalog.vendors.queries import VENDOR_CHANGES
from svc_catalog.vendors.records import VENDOR
from svc_catalog.vendors.service import VendorsService
from svc_catalog.vendors.sweeps import ComplianceSnapshots
from svc_catalog.vendors.tables import vendor

NAME = "svc-catalog"
CONSUMERS = {"svc-tickets": ["references", "causes"], "svc-occupancy": ["references"], "svc-webhooks": ["public"]}
CHANGES = (
    PROPERTY_CHANGES,
    UNIT_CHANGES,
    ASSET_CHANGES,
    VENDOR_CHANGES,
    INSPECTION_CHANGES,
    METER_CHANGES,
    READING_CHANGES,
)
IDENTIFIED = tuple(
    Identified(kind, table, served_of(table))
    for kind, table in (
        (lookup_pb2.RECORD_KIND_PROPERTY, property_),
        (lookup_pb2.RECORD_KIND_UNIT, unit),
        (lookup_pb2.RECORD_KIND_ASSET, asset),
        (lookup_pb2.RECORD_KIND_VENDOR, vendor),
        (lookup_pb2.RECORD_KIND_INSPECTION, inspection),
        (lookup_pb2.RECORD_KIND_METER, meter),
        (lookup_pb2.RECORD_KIND_READING, reading),
    )
)
FOR_STAFF = ("asset", "inspection", "inspection_template", "meter", "notice", "property", "reading", "unit", "vendor")
"""The kinds of records whose entries in the audit log staff see."""


def assemble(settings: config.Config) -> App:
    app = App(NAME, settings.service)
    clocks = app.keeps_clocks(schema.company)
    outbox = app.produces(schema.outbox, consumers=CONSUMERS)
    app.consumes(schema.inbox, consumers.apply, consumers.SUBJECTS, consumers.REPLICAS)
    app.purges(tables.metadata, schema.company)
    source = ReplicaSource(app.database, replica_source.ROWS)
    app.serve(replicas_pb2.DESCRIPTOR.services_by_name["ReplicaSourceService"], source)
    importer = Importer(app.database, outbox, schema.idempotency, clocks)
    commands = app.commands(schema.idempotency, schema.audit, outbox, FOR_STAFF)
    database, links_url = app.database, settings.service.links_url
    staff = Staff(database, app.service_client("gateway"))
    keepers = app.reports(schema.reports, report_queries.SOURCE)
    reader = ReportReader(database, schema.reports.figure, schema.company, clocks, report_queries.names, keepers)
    services: list[tuple[ModuleType, object]] = [
        (places_pb2, PropertiesService(database, importer, links_url)),
        (places_pb2, UnitsService(database, importer, links_url)),
        (places_pb2, AssetsService(database, importer, links_url)),
        (places_pb2, replica_source.ReferencesService(database)),
        (place_commands_pb2, PlaceCommandsService(commands, links_url)),
        (vendors_pb2, VendorsService(database, importer, links_url)),
        (vendor_commands_pb2, VendorCommandsService(database, commands, links_url)),
        (vendor_details_pb2, VendorDetailsService(database, links_url, clocks)),
        (inspections_pb2, InspectionsService(database, importer, staff, links_url)),
        (inspection_commands_pb2, InspectionCommandsService(database, commands, staff, links_url)),
        (inspection_templates_pb2, InspectionTemplatesService(database, commands)),
        (inspection_details_pb2, InspectionDetailsService(database, links_url, clocks)),
        (inspection_reports_pb2, InspectionReportsService(reader)),
        (meters_pb2, MetersService(database, importer, links_url)),
        (meter_commands_pb2, MeterCommandsService(commands, links_url)),
        (place_search_pb2, PlaceSearchService(database)),
        (meter_search_pb2, MeterSearchService(database)),
        (sandbox_copies_pb2, SandboxCopiesService(database, outbox, clocks)),
        (notices_pb2, NoticesService(database, importer, commands, outbox, links_url, clocks)),
    ]
    for contract, service in services:
        app.serve(contract.DESCRIPTOR.services_by_name[type(service).__name__], service)
    app.undoes_imports(schema.idempotency, outbox, commands.audit, undoing.UNDOABLES, undoing.COPIES)
    app.follows(*CHANGES)
    app.finds(*IDENTIFIED)
    app.background("search", Indexing(database).run)
    app.sweeps(
        overdue_inspections(database, outbox, INSPECTION.renderer(links_url)),
        ComplianceSnapshots(database, outbox, commands.audit, VENDOR.renderer(links_url)),
    )
    return app


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "svc_catalog", config.read, assemble)
