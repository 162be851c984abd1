"""svc-occupancy: `python -m svc_occupancy` serves, `python -m svc_occupancy migrate` migrates."""

from __future__ import annotations

from chassis import instants
from chassis.imports import Importer
from chassis.server import App, run_process
from makeready.occupancy.v1 import occupancy_pb2, residencies_pb2
from svc_occupancy import config, consumers, records, service, tables
from svc_occupancy.owners import Owners
from svc_occupancy.service_residencies import ResidenciesService

NAME = "svc-occupancy"


def assemble(settings: config.Config) -> App:
    app = App(NAME, settings.service)
    outbox = app.produces(tables.outbox, consumers=["svc-catalog", "svc-webhooks"])
    consumer = app.consumes(tables.inbox, consumers.apply, consumers.SUBJECTS)
    owners = Owners(app.database, app.peer("svc-catalog"), consumer)
    importer = Importer(app.database, outbox, instants.now)
    app.acts(tables.idempotency, tables.audit, outbox)
    links_url = settings.service.links_url
    turns = service.TurnsService(app.database, outbox, importer, owners, records.Links(links_url))
    residencies = ResidenciesService(app.database, outbox, owners, links_url, instants.now)
    app.serve(occupancy_pb2.DESCRIPTOR.services_by_name["TurnsService"], turns)
    app.serve(residencies_pb2.DESCRIPTOR.services_by_name["ResidenciesService"], residencies)
    return app


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "svc_occupancy", config.read, assemble)
