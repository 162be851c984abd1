"""svc-tickets: `python -m svc_tickets` serves, `python -m svc_tickets migrate` migrates."""

from __future__ import annotations

from chassis import instants
from chassis.server import App, run_process
from makeready.tickets.v1 import desk_pb2, tickets_pb2
from svc_tickets import config, consumers, records, tables
from svc_tickets.failed_rows import FailedRows
from svc_tickets.owners import Owners
from svc_tickets.service import TicketsService
from svc_tickets.service_desk import TicketDeskService
from svc_tickets.sweeps import QuietTickets

NAME = "svc-tickets"


def assemble(settings: config.Config) -> App:
    app = App(NAME, settings.service)
    outbox = app.produces(tables.outbox, consumers=["svc-webhooks"])
    acts = app.acts(tables.idempotency, tables.audit, outbox)
    links = records.TicketLinks(settings.service.links_url)
    applier = consumers.Applier(FailedRows(outbox, acts.audit, links, instants.now))
    app.consumes(tables.inbox, applier.apply, consumers.SUBJECTS)
    owners = Owners(app.database, app.peer("svc-catalog"), app.peer("gateway"))
    tickets = TicketsService(app.database, acts, owners, links, instants.now)
    app.serve(tickets_pb2.DESCRIPTOR.services_by_name["TicketsService"], tickets)
    desk = TicketDeskService(acts, app.database, owners, links)
    app.serve(desk_pb2.DESCRIPTOR.services_by_name["TicketDeskService"], desk)
    app.sweeps(QuietTickets(app.database, outbox, links, instants.now).sweep)
    return app


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "svc_tickets", config.read, assemble)
