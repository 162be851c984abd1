"""The gateway: `python -m gateway` serves, `python -m gateway migrate` migrates."""

from __future__ import annotations

import functools

from chassis.app.server import App, run_process
from chassis.http import memory
from chassis.http.connection_limits import ConnectionLimits
from chassis.http.port import Port
from chassis.imports.importer import Importer
from chassis.replicas.resync import ReplicaSource
from chassis.schedule import instants
from chassis.writes.retention import every_slot
from gateway import config, tables
from gateway.http import replies
from gateway.http.bearer import Keys
from gateway.http.calls import Calls
from gateway.http.cursors import Cursors
from gateway.http.edge import Edge
from gateway.http.limits import Limits
from gateway.http.places import Places
from gateway.http.reference import Reference
from gateway.http.snapshots import Snapshots
from gateway.http.start import every_service_serves
from gateway.http.store import Store
from gateway.http.usage import Usage
from gateway.http.waiting import Waiting
from gateway.http.writes import Writes
from gateway.identity import replica_source, schema
from gateway.identity.accounts.links import Links
from gateway.identity.accounts.passkeys import Passkeys
from gateway.identity.accounts.passwords import Passwords
from gateway.identity.accounts.people import AccountAudit
from gateway.identity.accounts.service import AccountsService
from gateway.identity.accounts.sessions.service import SessionsService
from gateway.identity.accounts.signed_texts import SignedTexts
from gateway.identity.accounts.totp import TotpSecrets
from gateway.identity.actors.service import ActorsService
from gateway.identity.administrators.service import AdministratorsService
from gateway.identity.companies.service import CompaniesService
from gateway.identity.keys.rules import KeyChecks
from gateway.identity.keys.service import KeysService
from gateway.identity.staff.commands import StaffCommandsService
from gateway.identity.staff.service import StaffService
from gateway.identity.usage.service import KeyUsageService
from makeready.events.v1 import replicas_pb2
from makeready.identity.v1 import (
    accounts_pb2,
    actors_pb2,
    administrators_pb2,
    identity_pb2,
    key_usage_pb2,
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
    services = identity_pb2.DESCRIPTOR.services_by_name
    # These services keep replicas of companies and staff. An outbox row is deleted only after all of them have
    # confirmed it.
    outbox = app.produces(schema.outbox, consumers=CONSUMERS)
    commands = app.commands(schema.idempotency, schema.audit, outbox)
    passwords = Passwords()
    companies = CompaniesService(app.database, outbox, commands.audit, instants.now, passwords)
    app.serve(services["CompaniesService"], companies)
    app.serve(services["KeysService"], KeysService(app.database, commands, checks))
    key_usage = KeyUsageService(app.database, instants.now)
    app.serve(key_usage_pb2.DESCRIPTOR.services_by_name["KeyUsageService"], key_usage)
    app.background("key-usage-retention", functools.partial(every_slot, key_usage.delete_old))
    app.serve(actors_pb2.DESCRIPTOR.services_by_name["ActorsService"], ActorsService(app.database, app.issuer))
    app.serve(
        staff_pb2.DESCRIPTOR.services_by_name["StaffService"],
        StaffService(app.database, Importer(app.database, outbox, schema.idempotency, instants.now)),
    )
    links = Links(settings.console_url, AccountAudit(commands.audit), instants.now)
    app.serve(
        staff_commands_pb2.DESCRIPTOR.services_by_name["StaffCommandsService"],
        StaffCommandsService(app.database, commands, links),
    )
    app.serve(
        administrators_pb2.DESCRIPTOR.services_by_name["AdministratorsService"],
        AdministratorsService(app.database, commands, links),
    )
    factors = passwords, TotpSecrets(settings.totp_keys), Passkeys(settings.console_url)
    accounts = AccountsService(app.database, commands.audit, instants.now, *factors)
    app.serve(accounts_pb2.DESCRIPTOR.services_by_name["AccountsService"], accounts)
    sessions = SessionsService(
        app.database, app.issuer, commands.audit, instants.now, *factors, SignedTexts(settings.totp_keys)
    )
    app.serve(sessions_pb2.DESCRIPTOR.services_by_name["SessionsService"], sessions)
    app.on_start(accounts.adopt)
    app.background("sessions", functools.partial(every_slot, sessions.purge))
    app.serve(
        replicas_pb2.DESCRIPTOR.services_by_name["ReplicaSourceService"],
        ReplicaSource(app.database, replica_source.ROWS),
    )
    keys = Keys(app.database, checks)
    app.background("keys", keys.listen)
    app.background("unchecked-keys", keys.load_unchecked)
    store = Store(settings.rate_limit_url)
    places = Places(store)
    rate_limits = Limits(store)
    app.background("limits", rate_limits.tidy)
    usage = Usage(app.database)
    app.background("key-usage", usage.run)
    # After the ports are closed: steps run in reverse order.
    app.on_stop(usage.stop)
    waiting = Waiting(app.transport, places)
    app.background("waiting", waiting.run)
    clients = {name: app.service_client(name) for name in config.CONTEXTS}
    calls = Calls(clients)
    writes = Writes(app.database, calls, clients)
    app.background("idempotency-note-retention", functools.partial(every_slot, writes.delete_old))
    edge = Edge(
        keys,
        rate_limits,
        Cursors(settings.cursor_keys),
        calls,
        writes,
        Reference(settings.api_url),
        usage,
        waiting,
        Snapshots(places),
        app,
        debug=settings.service.log_level == "debug",
    )
    host, tls = settings.api_host, settings.tls
    limits = ConnectionLimits(settings.connections_max, settings.connections_per_address_max, settings.trusted_proxies)
    if tls is not None:
        memory.return_large_blocks()  # each TLS connection has one, mostly unused
    port = Port("MAKEREADY_API_PORT", host, settings.api_port, edge.answer, tls, limits, replies.ERRORS)
    app.on_listening(port.open)
    app.before_ready(functools.partial(every_service_serves, clients, settings.wait_seconds))
    app.on_stop(port.close)
    return app


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "gateway", config.read, assemble)
