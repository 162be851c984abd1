"""svc-catalog: `python -m svc_catalog` serves, `python -m svc_catalog migrate` migrates."""

from __future__ import annotations

from chassis.app.server import App, run_process
from chassis.imports.importer import Importer
from chassis.replicas.resync import ReplicaResync, ReplicaSource
from chassis.schedule import instants
from makeready.catalog.v1 import (
    inspection_commands_pb2,
    inspections_pb2,
    meter_commands_pb2,
    meters_pb2,
    notices_pb2,
    place_commands_pb2,
    places_pb2,
    vendor_commands_pb2,
    vendors_pb2,
)
from makeready.events.v1 import replicas_pb2
from svc_catalog import (
    config,
    consumers,
    queries_owned,
    records,
    records_inspections,
    records_vendors,
    service,
    service_inspections,
    service_inspections_desk,
    service_meters,
    service_meters_desk,
    service_notices,
    service_places_desk,
    service_vendors,
    service_vendors_desk,
    tables,
)
from svc_catalog.owners import Staff
from svc_catalog.sweeps import Compliance, OverdueInspections

NAME = "svc-catalog"


def assemble(settings: config.Config) -> App:
    app = App(NAME, settings.service)
    outbox = app.produces(tables.outbox, consumers=["svc-tickets", "svc-occupancy", "svc-webhooks"])
    app.consumes(tables.inbox, consumers.apply, consumers.SUBJECTS)
    replicas = replicas_pb2.DESCRIPTOR.services_by_name
    owners = {kind: app.peer(owner) for kind, owner in consumers.OWNERS.items()}
    app.serve(replicas["ReplicaSourceService"], ReplicaSource(app.database, queries_owned.ROWS))
    app.serve(replicas["ReplicasService"], ReplicaResync(app.database, consumers.put_references, owners))
    importer = Importer(app.database, outbox, instants.now)
    commands = app.commands(tables.idempotency, tables.audit, outbox)
    database, links_url = app.database, settings.service.links_url
    links = records.Links(links_url)
    served = places_pb2.DESCRIPTOR.services_by_name
    app.serve(served["PropertiesService"], service.PropertiesService(database, importer, links))
    app.serve(served["UnitsService"], service.UnitsService(database, importer, links))
    app.serve(served["AssetsService"], service.AssetsService(database, importer, links))
    app.serve(served["ReferencesService"], service.ReferencesService(database))
    desk = service_places_desk.PlaceCommandsService(commands, links)
    app.serve(place_commands_pb2.DESCRIPTOR.services_by_name["PlaceCommandsService"], desk)
    vendor_links = records_vendors.VendorLinks(links_url)
    vendors = service_vendors.VendorsService(database, importer, vendor_links)
    app.serve(vendors_pb2.DESCRIPTOR.services_by_name["VendorsService"], vendors)
    vendor_desk = service_vendors_desk.VendorCommandsService(database, commands, vendor_links)
    app.serve(vendor_commands_pb2.DESCRIPTOR.services_by_name["VendorCommandsService"], vendor_desk)
    staff = Staff(database, app.peer("gateway"))
    inspection_links = records_inspections.InspectionLinks(links_url)
    inspections = service_inspections.InspectionsService(database, importer, staff, inspection_links)
    app.serve(inspections_pb2.DESCRIPTOR.services_by_name["InspectionsService"], inspections)
    inspection_desk = service_inspections_desk.InspectionCommandsService(database, commands, staff, inspection_links)
    app.serve(inspection_commands_pb2.DESCRIPTOR.services_by_name["InspectionCommandsService"], inspection_desk)
    meters = service_meters.MetersService(database, importer, links_url)
    app.serve(meters_pb2.DESCRIPTOR.services_by_name["MetersService"], meters)
    meter_desk = service_meters_desk.MeterCommandsService(commands, links_url)
    app.serve(meter_commands_pb2.DESCRIPTOR.services_by_name["MeterCommandsService"], meter_desk)
    notices = service_notices.NoticesService(database, importer, commands, outbox, links_url)
    app.serve(notices_pb2.DESCRIPTOR.services_by_name["NoticesService"], notices)
    app.sweeps(
        OverdueInspections(database, outbox, inspection_links, instants.now).sweep,
        Compliance(database, outbox, commands.audit, vendor_links, instants.now).sweep,
    )
    return app


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "svc_catalog", config.read, assemble)
