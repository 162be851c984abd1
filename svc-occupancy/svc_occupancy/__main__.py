"""svc-occupancy: `python -m svc_occupancy` serves, `python -m svc_occupancy migrate` migrates."""

from __future__ import annotations

from chassis.app.process import run_process
from chassis.app.server import App
from chassis.imports.importer import Importer
from chassis.replicas.resync import ReplicaSource
from chassis.reports.reading import ReportReader
from makeready.events.v1 import replicas_pb2
from makeready.occupancy.v1 import (
    parties_pb2,
    residencies_pb2,
    residency_commands_pb2,
    resident_search_pb2,
    turn_board_pb2,
    turn_reports_pb2,
    turn_tasks_pb2,
    turn_templates_pb2,
    turns_pb2,
)
from svc_occupancy import config, replica_source, schema, tables, undoing
from svc_occupancy.backfill_property import PropertyBackfill
from svc_occupancy.board.commands import TurnBoardService
from svc_occupancy.replicas import consumers
from svc_occupancy.replicas.fetch import ReplicaFetcher
from svc_occupancy.reports import queries as report_queries
from svc_occupancy.reports.service import TurnReportsService
from svc_occupancy.residencies.commands import ResidencyCommandsService
from svc_occupancy.residencies.forgetting import PartiesService, removed_words
from svc_occupancy.residencies.service import ResidenciesService
from svc_occupancy.search.indexing import PartyIndexing
from svc_occupancy.search.service import ResidentSearchService
from svc_occupancy.turn_tasks.commands import TurnTasksService
from svc_occupancy.turn_tasks.records import STALE_TASK
from svc_occupancy.turn_tasks.sweeps import stale_tasks
from svc_occupancy.turn_templates.commands import TurnTemplatesService
from svc_occupancy.turns.queries import IDENTIFIED, TURN_CHANGES
from svc_occupancy.turns.records import TURN
from svc_occupancy.turns.service import TurnsService
from svc_occupancy.turns.sweeps import Turnovers

NAME = "svc-occupancy"
CONSUMERS = {"svc-catalog": ["references"], "svc-tickets": ["causes"], "svc-webhooks": ["public"]}
FOR_STAFF = ("turn", "turn_task", "turn_template", "unit")
"""The kinds of records whose entries in the audit log staff see."""


def assemble(settings: config.Config) -> App:
    app = App(NAME, settings.service)
    clocks = app.keeps_clocks(schema.company)
    outbox = app.produces(schema.outbox, consumers=CONSUMERS)
    app.hands_over(outbox, "svc-catalog")  # GET /units follows a notice and a move-in at once
    consumer = app.consumes(schema.inbox, consumers.apply, consumers.SUBJECTS, consumers.REPLICAS)
    app.purges(tables.metadata, schema.company)
    source = ReplicaSource(app.database, replica_source.ROWS)
    app.serve(replicas_pb2.DESCRIPTOR.services_by_name["ReplicaSourceService"], source)
    fetcher = ReplicaFetcher(app.database, app.service_client("svc-catalog"), app.service_client("gateway"), consumer)
    importer = Importer(app.database, outbox, schema.idempotency, clocks)
    commands = app.commands(schema.idempotency, schema.audit, outbox, FOR_STAFF, removed_words)
    links_url = settings.service.links_url
    turns = TURN.renderer(links_url)
    turns_service = TurnsService(app.database, outbox, importer, fetcher, turns)
    app.serve(turns_pb2.DESCRIPTOR.services_by_name["TurnsService"], turns_service)
    app.undoes_imports(schema.idempotency, outbox, commands.audit, undoing.UNDOABLES, undoing.COPIES)
    app.follows(TURN_CHANGES)
    app.finds(*IDENTIFIED)
    residencies = ResidenciesService(app.database, outbox, fetcher, commands.audit, links_url, clocks)
    app.serve(residencies_pb2.DESCRIPTOR.services_by_name["ResidenciesService"], residencies)
    commanded = ResidencyCommandsService(app.database, commands, fetcher, turns)
    app.serve(residency_commands_pb2.DESCRIPTOR.services_by_name["ResidencyCommandsService"], commanded)
    parties = PartiesService(app.database, commands, outbox)
    app.serve(parties_pb2.DESCRIPTOR.services_by_name["PartiesService"], parties)
    indexing = PartyIndexing(app.database)
    app.on_commit(indexing.add)
    app.background("search", indexing.run)
    app.background("search-comparison", indexing.keep_comparing)
    residents = ResidentSearchService(app.database, commands.audit)
    app.serve(resident_search_pb2.DESCRIPTOR.services_by_name["ResidentSearchService"], residents)
    board = TurnBoardService(app.database, commands, fetcher, turns)
    app.serve(turn_board_pb2.DESCRIPTOR.services_by_name["TurnBoardService"], board)
    tasks = TurnTasksService(app.database, commands, importer, fetcher)
    app.serve(turn_tasks_pb2.DESCRIPTOR.services_by_name["TurnTasksService"], tasks)
    templates = TurnTemplatesService(app.database, commands, fetcher)
    app.serve(turn_templates_pb2.DESCRIPTOR.services_by_name["TurnTemplatesService"], templates)
    keepers = app.reports(schema.reports, report_queries.SOURCE)
    reader = ReportReader(app.database, schema.reports.figure, schema.company, clocks, report_queries.names, keepers)
    app.serve(turn_reports_pb2.DESCRIPTOR.services_by_name["TurnReportsService"], TurnReportsService(reader))
    turnovers = Turnovers(app.database, commands.audit, outbox, turns)
    stale = stale_tasks(app.database, outbox, STALE_TASK.renderer(links_url))
    app.sweeps(turnovers, stale, PropertyBackfill(app.database))
    return app


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "svc_occupancy", config.read, assemble)
