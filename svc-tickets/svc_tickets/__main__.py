"""svc-tickets: `python -m svc_tickets` serves, `python -m svc_tickets migrate` migrates."""

from __future__ import annotations

from chassis.app.process import run_process
from chassis.app.server import App
from chassis.reports.reading import ReportReader
from makeready.tickets.v1 import (
    pm_tasks_pb2,
    ticket_commands_pb2,
    ticket_reports_pb2,
    ticket_views_pb2,
    tickets_pb2,
)
from svc_tickets import config, consumers, schema, tables, undoing
from svc_tickets.maintenance.records import PM_TASK, STALE_PM_TASK
from svc_tickets.maintenance.service import PmTasksService
from svc_tickets.maintenance.sweeps import OverdueMaintenance
from svc_tickets.replicas.consumer import REPLICAS
from svc_tickets.replicas.fetch import ReplicaFetcher
from svc_tickets.reports import queries as report_queries
from svc_tickets.reports.service import TicketReportsService
from svc_tickets.search.fill import SearchFiller
from svc_tickets.search.service import TicketViewsService
from svc_tickets.tickets.commands import TicketCommandsService
from svc_tickets.tickets.forgotten import ForgottenPeople, removed_texts
from svc_tickets.tickets.from_inspection import FailedInspectionRows
from svc_tickets.tickets.opening import TicketOpener
from svc_tickets.tickets.queries.read import IDENTIFIED, TICKET_CHANGES
from svc_tickets.tickets.records import TICKET
from svc_tickets.tickets.service import TicketsService
from svc_tickets.tickets.status_change import StatusChanges
from svc_tickets.tickets.sweeps import StaleTickets

NAME = "svc-tickets"
CONSUMERS = {"svc-webhooks": ["public"]}
FOR_STAFF = ("pm_task", "ticket")
"""The kinds of records whose entries in the audit log staff see."""


def assemble(settings: config.Config) -> App:
    app = App(NAME, settings.service)
    clocks = app.keeps_clocks(schema.company)
    links_url = settings.service.links_url
    outbox = app.produces(tables.outbox, consumers=CONSUMERS)
    commands = app.commands(tables.idempotency, tables.audit, outbox, FOR_STAFF, removed_texts)
    ticket = TICKET.renderer(links_url)
    app.follows(TICKET_CHANGES)
    app.finds(IDENTIFIED)
    replicas = ReplicaFetcher(app.database, app.service_client("svc-catalog"), app.service_client("gateway"))
    opener = TicketOpener(app.database, replicas, outbox, ticket, clocks)
    applier = consumers.Applier(FailedInspectionRows(opener, clocks), ForgottenPeople(commands.audit, clocks))
    consumer = app.consumes(tables.inbox, applier.apply, consumers.SUBJECTS, REPLICAS)
    app.undoes_imports(tables.idempotency, outbox, commands.audit, undoing.UNDOABLES, undoing.COPIES)
    app.purges(tables.metadata, tables.company)
    statuses = StatusChanges(app.database, outbox, ticket, clocks)
    tickets = TicketsService(app.database, commands, replicas, ticket, clocks, opener, statuses)
    app.serve(tickets_pb2.DESCRIPTOR.services_by_name["TicketsService"], tickets)
    ticket_commands = TicketCommandsService(commands, app.database, replicas, ticket, opener, statuses)
    app.serve(ticket_commands_pb2.DESCRIPTOR.services_by_name["TicketCommandsService"], ticket_commands)
    filler = SearchFiller(app.database)
    app.on_commit(filler.add)
    app.background("search", filler.run)
    app.background("search-comparison", filler.keep_comparing)
    views = TicketViewsService(app.database, replicas, ticket, filler, clocks)
    app.serve(ticket_views_pb2.DESCRIPTOR.services_by_name["TicketViewsService"], views)
    keepers = app.reports(schema.reports, report_queries.SOURCE)
    reader = ReportReader(app.database, schema.reports.figure, schema.company, clocks, report_queries.names, keepers)
    reports = TicketReportsService(reader)
    app.serve(ticket_reports_pb2.DESCRIPTOR.services_by_name["TicketReportsService"], reports)
    pm_task = PM_TASK.renderer(links_url)
    pm_tasks = PmTasksService(commands, app.database, replicas, pm_task, consumer.catch_up, clocks)
    app.serve(pm_tasks_pb2.DESCRIPTOR.services_by_name["PmTasksService"], pm_tasks)
    stale_pm_task = STALE_PM_TASK.renderer(links_url)
    app.sweeps(
        StaleTickets(app.database, outbox, ticket),
        OverdueMaintenance(app.database, outbox, stale_pm_task),
    )
    return app


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "svc_tickets", config.read, assemble)
