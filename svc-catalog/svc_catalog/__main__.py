"""svc-catalog: `python -m svc_catalog` serves, `python -m svc_catalog migrate` migrates."""

from __future__ import annotations

from chassis import instants
from chassis.imports import Importer
from chassis.server import App, run_process
from makeready.catalog.v1 import catalog_pb2, meters_pb2, vendors_pb2
from svc_catalog import config, consumers, records, records_vendors, service, service_meters, service_vendors, tables

NAME = "svc-catalog"


def assemble(settings: config.Config) -> App:
    app = App(NAME, settings.service)
    outbox = app.produces(tables.outbox, consumers=["svc-tickets", "svc-occupancy"])
    app.consumes(tables.inbox, consumers.apply, consumers.SUBJECTS)
    importer = Importer(app.database, outbox, instants.now)
    links = records.Links(settings.service.links_url)
    served = catalog_pb2.DESCRIPTOR.services_by_name
    app.serve(served["PropertiesService"], service.PropertiesService(app.database, importer, links))
    app.serve(served["UnitsService"], service.UnitsService(app.database, importer, links))
    app.serve(served["AssetsService"], service.AssetsService(app.database, importer, links))
    vendors = records_vendors.VendorLinks(settings.service.links_url)
    app.serve(
        vendors_pb2.DESCRIPTOR.services_by_name["VendorsService"],
        service_vendors.VendorsService(app.database, importer, vendors),
    )
    meters = service_meters.MetersService(app.database, importer, settings.service.links_url)
    app.serve(meters_pb2.DESCRIPTOR.services_by_name["MetersService"], meters)
    app.serve(served["ReferencesService"], service.ReferencesService(app.database))
    return app


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "svc_catalog", config.read, assemble)
