"""The gateway: `python -m gateway` serves, `python -m gateway migrate` migrates."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType

from google.protobuf.descriptor import ServiceDescriptor

from chassis.app.process import run_process
from chassis.app.server import App
from chassis.auth.clients import ServiceClient
from chassis.http import memory
from chassis.http.connection_limits import ConnectionLimits
from chassis.http.port import Listening, Port
from chassis.imports.importer import Importer
from chassis.replicas.resync import ReplicaSource
from chassis.schedule import instants
from chassis.writes.commands import CommandRunner
from chassis.writes.idempotency import KeyUses
from chassis.writes.purging import CompanyPurge, CompanyRows
from chassis.writes.retention import every_slot
from gateway import config, tables, undoing
from gateway.http import replies
from gateway.http.admission import Admission
from gateway.http.answered import AnsweredRequests
from gateway.http.answers.feeds import Feeds
from gateway.http.answers.lists import Lists
from gateway.http.answers.records import Records
from gateway.http.answers.requests import Answer
from gateway.http.answers.searches import Searches
from gateway.http.answers.snapshots import SnapshotStreams
from gateway.http.bearer import Keys
from gateway.http.calls import Calls, OwnRpcs, OwnService
from gateway.http.cursors import Cursors
from gateway.http.handler import ApiHandler
from gateway.http.limits import Limits
from gateway.http.outside import Outside
from gateway.http.reference import Reference
from gateway.http.request_log import RequestLog
from gateway.http.routes import OWN_SERVICE, Kind
from gateway.http.shared_limits import SharedLimits
from gateway.http.snapshots import Snapshots
from gateway.http.start import every_service_serves
from gateway.http.store import Store
from gateway.http.usage import Usage
from gateway.http.waiting import Waiting
from gateway.http.writes import Writes
from gateway.identity import replica_source, schema
from gateway.identity.accounts.attempts import Attempts
from gateway.identity.accounts.known_browsers import KnownBrowsers
from gateway.identity.accounts.links import Links
from gateway.identity.accounts.passkeys import Passkeys
from gateway.identity.accounts.passwords import Passwords
from gateway.identity.accounts.people import AccountAudit
from gateway.identity.accounts.service import AccountsService
from gateway.identity.accounts.sessions.service.dependencies import Dependencies
from gateway.identity.accounts.sessions.service.service import SessionsService
from gateway.identity.accounts.signed_texts import SignedTexts
from gateway.identity.accounts.totp import TotpSecrets
from gateway.identity.actors.service import ActorsService
from gateway.identity.administrators.service import AdministratorsService
from gateway.identity.companies import queries as company_queries
from gateway.identity.companies.service import CompaniesService
from gateway.identity.companies.sweeps import LOOK_SECONDS, SandboxPurge
from gateway.identity.keys.rules import KeyChecks
from gateway.identity.keys.service import KeysService
from gateway.identity.requests.service import RequestFeedService, RequestLogService
from gateway.identity.staff.commands import StaffCommandsService
from gateway.identity.staff.queries import IDENTIFIED
from gateway.identity.staff.service import StaffService
from gateway.identity.usage.service import KeyUsageService
from gateway.sandbox.clock.advances import Advances
from gateway.sandbox.clock.contexts import ContextClocks
from gateway.sandbox.clock.service import SandboxClockService
from gateway.sandbox.filling import FILL_SECONDS, SandboxFilling
from gateway.sandbox.triggers.service import TriggersService
from makeready.common.v1 import idempotency_pb2, lookup_pb2
from makeready.events.v1 import replicas_pb2
from makeready.identity.v1 import (
    accounts_pb2,
    actors_pb2,
    administrators_pb2,
    identity_pb2,
    key_usage_pb2,
    requests_pb2,
    sandbox_pb2,
    sessions_pb2,
    staff_commands_pb2,
    staff_pb2,
)

NAME = "gateway"
CONSUMERS = {
    "svc-catalog": ["references"],
    "svc-tickets": ["references"],
    "svc-occupancy": ["references"],
    "svc-webhooks": ["references"],
}


def assemble(settings: config.Config) -> App:
    app = App(NAME, settings.service)
    checks = KeyChecks(settings.key_checks)
    # These services keep replicas of companies and staff. An outbox row is deleted only after all of them have
    # confirmed it.
    outbox = app.produces(schema.outbox, consumers=CONSUMERS)
    commands = app.commands(schema.idempotency, schema.audit, outbox)
    app.undoes_imports(schema.idempotency, outbox, commands.audit, undoing.UNDOABLES)
    clients = {name: app.service_client(name) for name in config.CONTEXTS}
    staff = StaffService(app.database, Importer(app.database, outbox, schema.idempotency, app.clocks))
    own_rpcs = {**serve_identity(app, settings, checks, commands, staff), **serve_sandboxes(app, clients, commands)}
    fill_and_purge_sandboxes(app, clients, staff)
    open_api(app, settings, clients, api_handler(app, settings, clients, OwnService(own_rpcs), checks))
    return app


def serve_sandboxes(app: App, clients: Mapping[str, ServiceClient], commands: CommandRunner) -> OwnRpcs:
    """Serves the RPCs about sandboxes, and advances their clocks; returns the RPCs of integrations."""
    contexts = ContextClocks(clients)
    advances = Advances(app.database, contexts, commands.outbox, instants.now)
    app.background("advances", advances.run)
    app.lifecycle.on_stop(advances.stop)
    clock = SandboxClockService(app.database, commands, commands.audit, contexts, instants.now, advances.wake)
    app.serve(_service(sandbox_pb2, "SandboxClockService"), clock)
    triggers = TriggersService(app.database, clients, app.clocks)
    app.serve(_service(sandbox_pb2, "TriggersService"), triggers)
    return {
        sandbox_pb2.GetSandboxClockRequest: clock.GetSandboxClock,
        sandbox_pb2.AdvanceSandboxClockRequest: clock.AdvanceSandboxClock,
        sandbox_pb2.CreateTriggerRequest: triggers.CreateTrigger,
    }


def serve_identity(
    app: App, settings: config.Config, checks: KeyChecks, commands: CommandRunner, staff: StaffService
) -> OwnRpcs:
    """Serves the RPCs about companies, people and keys; returns those of integrations."""
    passwords = Passwords()
    companies = CompaniesService(app.database, commands, instants.now, passwords)
    app.serve(_service(identity_pb2, "CompaniesService"), companies)
    app.serve(_service(identity_pb2, "KeysService"), KeysService(app.database, commands, checks))
    key_usage = KeyUsageService(app.database, instants.now)
    app.serve(_service(key_usage_pb2, "KeyUsageService"), key_usage)
    app.background("key-usage-retention", functools.partial(every_slot, key_usage.delete_old))
    requests = RequestLogService(app.database, instants.now)
    app.serve(_service(requests_pb2, "RequestLogService"), requests)
    request_feed = RequestFeedService(app.database)
    app.serve(_service(requests_pb2, "RequestFeedService"), request_feed)
    app.background("request-days", requests.make_days)
    app.background("request-retention", functools.partial(every_slot, requests.drop_days))
    app.serve(_service(actors_pb2, "ActorsService"), ActorsService(app.database, app.issuer))
    app.serve(_service(staff_pb2, "StaffService"), staff)
    lookup = app.finds(IDENTIFIED)
    links = Links(settings.console_url, AccountAudit(commands.audit), instants.now)
    app.serve(_service(staff_commands_pb2, "StaffCommandsService"), StaffCommandsService(app.database, commands, links))
    administrators = AdministratorsService(app.database, commands, links)
    app.serve(_service(administrators_pb2, "AdministratorsService"), administrators)
    factors = passwords, TotpSecrets(settings.totp_keys), Passkeys(settings.console_url)
    accounts = AccountsService(app.database, commands.audit, instants.now, *factors)
    app.serve(_service(accounts_pb2, "AccountsService"), accounts)
    texts = SignedTexts(settings.totp_keys)
    attempts, browsers = Attempts(app.database), KnownBrowsers(texts)
    sessions = SessionsService(
        Dependencies(
            app.database, app.issuer, AccountAudit(commands.audit), instants.now, *factors, texts, attempts, browsers
        )
    )
    app.serve(_service(sessions_pb2, "SessionsService"), sessions)
    app.lifecycle.on_start(accounts.adopt)
    app.background("sessions", functools.partial(every_slot, sessions.purge))
    replicas = ReplicaSource(app.database, replica_source.ROWS)
    app.serve(_service(replicas_pb2, "ReplicaSourceService"), replicas)
    return {
        idempotency_pb2.GetKeyUseRequest: KeyUses(app.database, schema.idempotency).GetKeyUse,
        requests_pb2.FollowRequestsRequest: request_feed.FollowRequests,
        requests_pb2.FetchRequestRequest: request_feed.FetchRequest,
        staff_pb2.ListMembersRequest: staff.ListMembers,
        lookup_pb2.FindRecordsRequest: lookup.FindRecords,
    }


def fill_and_purge_sandboxes(app: App, clients: Mapping[str, ServiceClient], staff: StaffService) -> None:
    """Gives new sandboxes what they start with, deletes what the gateway has of ended ones, and notes when nothing is
    left anywhere."""
    filling = SandboxFilling(app.database, clients, staff, app.issuer.as_service())
    app.background("sandbox-filling", functools.partial(every_slot, filling.look, period_seconds=FILL_SECONDS))
    rows = CompanyRows(app.database, tables.metadata)
    purge = CompanyPurge(rows, functools.partial(company_queries.ended_companies, app.database))
    app.background("purge", purge.run)
    sandboxes = SandboxPurge(app.database, purge, list(clients.values()), instants.now)
    app.background("sandbox-purge", functools.partial(every_slot, sandboxes.look, period_seconds=LOOK_SECONDS))


def _service(module: ModuleType, name: str) -> ServiceDescriptor:
    services: Mapping[str, ServiceDescriptor] = module.DESCRIPTOR.services_by_name
    return services[name]


def api_handler(
    app: App, settings: config.Config, clients: Mapping[str, ServiceClient], own_rpcs: OwnService, checks: KeyChecks
) -> ApiHandler:
    """What answers the API's requests, with its tasks in the background."""
    keys = Keys(app.database, checks)
    app.background("keys", keys.listen)
    app.background("unchecked-keys", keys.load_unchecked)
    store = Store(settings.rate_limit_url)
    shared_limits = SharedLimits(store)
    limits = Limits(store)
    app.background("limits", limits.tidy)
    usage = Usage(app.database)
    app.background("key-usage", usage.run)
    # After the ports are closed: steps run in reverse order.
    app.lifecycle.on_stop(usage.stop)
    reference = Reference(settings.api_url)
    secret = next(iter(settings.cursor_keys.values()))
    requests = RequestLog(app.database, settings.request_log, secret, reference.document.body, keys.find)
    app.background("requests", requests.run)
    app.lifecycle.on_stop(requests.stop)
    waiting = Waiting(app.transport, shared_limits)
    app.background("waiting", waiting.run)
    services: dict[str, ServiceClient | OwnService] = {**clients, OWN_SERVICE: own_rpcs}
    calls = Calls(services)
    writes = Writes(app.database, calls, services)
    app.background("idempotency-note-retention", functools.partial(every_slot, writes.delete_old))
    admission = Admission(keys, limits, app.rpcs)
    cursors = Cursors(settings.cursor_keys)
    records = Records(calls, writes)
    answers: dict[Kind, Answer] = {
        "own": records.whoami,
        "fetch": records.fetch,
        "report": records.report,
        "write": records.write,
        "delete": records.delete,
        "search": Searches(calls).answer,
        "list": Lists(calls, cursors).answer,
        "feed": Feeds(calls, cursors, waiting, admission).answer,
        "snapshot": SnapshotStreams(calls, cursors, Snapshots(shared_limits), admission).answer,
    }
    answered = AnsweredRequests(usage, debug=settings.service.log_level == "debug")
    return ApiHandler(admission, Outside(reference, app.lifecycle), answers, answered, requests)


def open_api(app: App, settings: config.Config, clients: Mapping[str, ServiceClient], handler: ApiHandler) -> None:
    """Opens the port of the API, and is ready once all services serve."""
    tls = settings.tls
    limits = ConnectionLimits(settings.connections_max, settings.connections_per_address_max, settings.trusted_proxies)
    if tls is not None:
        memory.return_large_blocks()  # each TLS connection has one, mostly unused
    port = Port(
        Listening("MAKEREADY_API_PORT", settings.api_host, settings.api_port, tls),
        handler.answer,
        limits,
        replies.ERRORS,
    )
    app.lifecycle.on_listening(port.open)
    app.lifecycle.before_ready(functools.partial(every_service_serves, clients, settings.wait_seconds))
    app.lifecycle.on_stop(port.close)


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "gateway", config.read, assemble)
