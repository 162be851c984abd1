"""svc-tickets: `python -m svc_tickets` serves, `python -m svc_tickets migrate` migrates."""

from __future__ import annotations

from chassis.app.server import App, run_process
from chassis.replicas.resync import ReplicaResync
from chassis.schedule import instants
from makeready.events.v1 import replicas_pb2
from makeready.tickets.v1 import pm_tasks_pb2, ticket_commands_pb2, tickets_pb2
from svc_tickets import config, consumers, records, records_pm, tables
from svc_tickets.failed_rows import FailedRows
from svc_tickets.owners import Owners
from svc_tickets.service import TicketsService
from svc_tickets.service_desk import TicketCommandsService
from svc_tickets.service_pm import PmTasksService
from svc_tickets.sweeps import OverdueMaintenance, QuietTickets

NAME = "svc-tickets"


def assemble(settings: config.Config) -> App:
    app = App(NAME, settings.service)
    outbox = app.produces(tables.outbox, consumers=["svc-webhooks"])
    commands = app.commands(tables.idempotency, tables.audit, outbox)
    links = records.TicketLinks(settings.service.links_url)
    applier = consumers.Applier(FailedRows(outbox, commands.audit, links, instants.now))
    consumer = app.consumes(tables.inbox, applier.apply, consumers.SUBJECTS)
    kept = {kind: app.peer(owner) for kind, owner in consumers.OWNERS.items()}
    rebuilder = ReplicaResync(app.database, consumers.put_references, kept)
    app.serve(replicas_pb2.DESCRIPTOR.services_by_name["ReplicasService"], rebuilder)
    owners = Owners(app.database, app.peer("svc-catalog"), app.peer("gateway"))
    tickets = TicketsService(app.database, commands, owners, links, instants.now)
    app.serve(tickets_pb2.DESCRIPTOR.services_by_name["TicketsService"], tickets)
    desk = TicketCommandsService(commands, app.database, owners, links)
    app.serve(ticket_commands_pb2.DESCRIPTOR.services_by_name["TicketCommandsService"], desk)
    pm_links = records_pm.PmTaskLinks(settings.service.links_url)
    pm_tasks = PmTasksService(commands, app.database, owners, pm_links, consumer.catch_up, instants.now)
    app.serve(pm_tasks_pb2.DESCRIPTOR.services_by_name["PmTasksService"], pm_tasks)
    app.sweeps(
        QuietTickets(app.database, outbox, links, instants.now).sweep,
        OverdueMaintenance(app.database, outbox, pm_links, instants.now).sweep,
    )
    return app


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "svc_tickets", config.read, assemble)
