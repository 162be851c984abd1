"""What one service process is made of: its `__main__` says what it produces, consumes, follows, sweeps and serves."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import structlog
from google.protobuf.descriptor import ServiceDescriptor
from sqlalchemy import MetaData, Table

from chassis.app.lifecycle import Lifecycle, Work
from chassis.app.rpc_server import RpcServer
from chassis.app.status import Status
from chassis.auth.clients import ServiceClient
from chassis.auth.identity import Call, TokenSigner, TokenVerifier
from chassis.changes.feed import Changes
from chassis.changes.tracking import ChangeTracking
from chassis.db.database import ONE_PLAN, Change, Connection, Database
from chassis.imports.undo import Copies, ImportUndo, Undoable
from chassis.lists.lookup import Identified, LookupService
from chassis.messaging.consumer import Apply, Consumer, Examine, examine_nothing
from chassis.messaging.handover import Handover
from chassis.messaging.hints import Hints
from chassis.messaging.outbox import Outbox
from chassis.messaging.relay import Relay
from chassis.messaging.transport import Transport
from chassis.replicas.check import ReplicaCheck
from chassis.replicas.resync import ReplicaResync
from chassis.replicas.tables import Replicas
from chassis.reports.keeping import FactSource, FigureKeeper, ReportRebuild
from chassis.reports.tables import ReportTables
from chassis.runtime import logs
from chassis.runtime.settings import ServiceSettings
from chassis.schedule import instants
from chassis.schedule.clock_service import CompanyClockService, DoneOf, NextOf
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.sweeps import PERIOD_SECONDS as STALE_SECONDS
from chassis.schedule.sweeps import ScheduledSweeps, Sweep
from chassis.writes.audit import Audit, FutureSweeps, Removed
from chassis.writes.commands import CommandRunner
from chassis.writes.idempotency import KeyUses
from chassis.writes.purging import CompanyPurge, CompanyRows, ended_companies
from chassis.writes.retention import Retention, RetentionHook, every_slot
from makeready.common.v1 import (
    audit_pb2,
    company_clock_pb2,
    company_purge_pb2,
    idempotency_pb2,
    import_undo_pb2,
    lookup_pb2,
    reports_pb2,
    retention_pb2,
    status_pb2,
    sweeps_pb2,
)
from makeready.events.v1 import events_pb2, replicas_pb2

log = structlog.stdlib.get_logger(__name__)


class App:
    """The parts of one process, wired by its `__main__`."""

    def __init__(self, name: str, settings: ServiceSettings, plans: str = ONE_PLAN) -> None:
        """For `plans` see `Database`."""
        self.name = name
        self.settings = settings
        self.issuer = TokenSigner(settings.identity_key_file)
        self.transport = Transport(settings.nats_url, name, settings.nats_tls)
        self.database = Database(
            settings.database.url,
            application=name,
            connections=settings.database.connections,
            plans=plans,
            pooler=settings.database.pooler,
            direct_url=settings.database.direct_url,
            clock=instants.now,
        )
        self.rpcs = RpcServer(name, TokenVerifier(settings.identity_ring_file, name), settings.connection_age_seconds)
        self.lifecycle = Lifecycle(self.rpcs, self.database, settings)
        self.lifecycle.on_stop(self._close)  # the first that is registered is the last that runs
        hints = Hints(name, self.transport)
        self._commit_steps: list[Callable[[Iterable[Change]], None]] = [hints.add]
        self.database.committed = self._committed
        self._service_clients: dict[str, ServiceClient] = {}
        self.background("nats", self.transport.run)
        self.background("hints", hints.run)
        self.background("clocks", self.database.compare_clocks)
        self.background("log", logs.report_left_out)
        self.status = Status(self.database, self.transport)
        self.serve(status_pb2.DESCRIPTOR.services_by_name["StatusService"], self.status)
        self.retention_hooks: list[RetentionHook] = []
        """What `sweep retention` runs besides the retention of idempotency keys."""
        self._future_sweeps: FutureSweeps | None = None
        self._change_tracking: ChangeTracking | None = None
        self.clocks = CompanyClocks(self.database, real=instants.now)
        self._relay: Relay | None = None
        self._consumer: Consumer | None = None
        self._owners: Mapping[str, str] = {}

    def service_client(self, name: str) -> ServiceClient:
        """The client of another service. Raises SettingsError if its address is not set."""
        if name not in self._service_clients:
            self._service_clients[name] = ServiceClient(name, self.settings.address(name), self.issuer)
        return self._service_clients[name]

    def serve(self, service: ServiceDescriptor, implementation: object) -> None:
        """See `RpcServer.serve`."""
        self.rpcs.serve(service, implementation)

    def background(self, name: str, work: Work) -> None:
        """See `Lifecycle.background`."""
        self.lifecycle.background(name, work)

    def on_commit(self, step: Callable[[Iterable[Change]], None]) -> None:
        """A step after each commit of this process that changed records, with these. It must neither wait nor raise."""
        self._commit_steps.append(step)

    def _committed(self, changed: Iterable[Change]) -> None:
        changed = tuple(changed)
        for step in self._commit_steps:
            step(changed)

    def produces(self, outbox_table: Table, consumers: Mapping[str, Sequence[str]]) -> Outbox:
        """This process has an outbox. Its `consumers` are the services that consume its events, and which: see
        `Relay`."""
        outbox = Outbox(self.name, outbox_table)
        self._relay = relay = Relay(self.database, outbox, self.transport, consumers, self.settings.relay_lease_seconds)
        self.background("relay", relay.run)
        self.background("outbox-purge", functools.partial(every_slot, relay.purge))
        self.serve(events_pb2.DESCRIPTOR.services_by_name["OutboxService"], relay)
        return outbox

    def hands_over(self, outbox: Outbox, consumer: str) -> None:
        """The consumer gets references of this process's writes before they are answered: see `Handover`."""
        self.database.hand_over = Handover(outbox, self.service_client(consumer)).bring

    def consumes(
        self, inbox: Table, apply: Apply, subjects: Mapping[str, Sequence[str]], replicas: Replicas | None = None
    ) -> Consumer:
        """This process consumes events: see `Consumer`. From references it takes the rows of `replicas`."""
        clients = {producer: self.service_client(producer) for producer in subjects}
        examine = examine_nothing if replicas is None else self._replicates(replicas)
        consumer = Consumer(self.name, self.database, inbox, self.transport, apply, subjects, clients, examine)
        self._consumer = consumer
        self.background("consumer", consumer.run)
        self.background("reconcile", consumer.reconcile)
        self.serve(events_pb2.DESCRIPTOR.services_by_name["ConsumerService"], consumer)
        return consumer

    def _replicates(self, replicas: Replicas) -> Examine:
        self._owners = replicas.owners
        owners = {kind: self.service_client(owner) for kind, owner in replicas.owners.items()}
        check = ReplicaCheck(self.database, replicas, owners, self.settings.replica_check_seconds)
        self.background("replica-check", check.run)
        resync = ReplicaResync(self.database, replicas.put, owners, self._end_positions)
        self.serve(replicas_pb2.DESCRIPTOR.services_by_name["ReplicasService"], resync)
        return check.examine

    def follows(self, *changes: Changes) -> None:
        """This process serves the changes of these kinds; all kinds that it serves, in one call."""
        self._change_tracking = tracking = ChangeTracking(self.database, changes)
        self.background("changes", tracking.run)
        self.background("changes-lag", tracking.watch_horizon)

    def finds(self, *identified: Identified) -> LookupService:
        """This process finds records by their external_id; all kinds that it owns, in one call."""
        lookup = LookupService(self.database, identified)
        self.serve(lookup_pb2.DESCRIPTOR.services_by_name["LookupService"], lookup)
        return lookup

    def reports(self, tables: ReportTables, *sources: FactSource) -> list[FigureKeeper]:
        """This process keeps the figures of reports about these kinds of records; all kinds, in one call."""
        keepers = [FigureKeeper(self.database, tables, source) for source in sources]
        for keeper in keepers:
            self.on_commit(keeper.add)
            self.background(f"reports-{keeper.source.kind}", keeper.run)
            self.background(f"reports-{keeper.source.kind}-comparison", keeper.keep_comparing)
        rebuild = ReportRebuild(self.database, tables, keepers)
        self.serve(reports_pb2.DESCRIPTOR.services_by_name["ReportsService"], rebuild)
        return keepers

    async def _end_positions(self, connection: Connection) -> None:
        if self._change_tracking is not None:
            await self._change_tracking.end_positions(connection)

    def forgets(self, claims: Table) -> None:
        """This process serves writes, whose keys and replies are in the ledger `claims`."""
        retention = Retention(self.database, claims, self.retention_hooks, self._record_future_sweep)
        self.background("retention", functools.partial(every_slot, retention.sweep))
        self.serve(retention_pb2.DESCRIPTOR.services_by_name["RetentionService"], retention)
        key_uses = KeyUses(self.database, claims)
        self.serve(idempotency_pb2.DESCRIPTOR.services_by_name["IdempotencyService"], key_uses)

    def audits(self, table: Table, for_staff: Collection[str] = (), removed: Removed | None = None) -> Audit:
        """This process writes an audit log and serves it: see `Audit`."""
        audit = Audit(table, self.database, for_staff, removed)
        self.serve(audit_pb2.DESCRIPTOR.services_by_name["AuditService"], audit)
        return audit

    def commands(
        self,
        claims: Table,
        audit: Table,
        outbox: Outbox,
        for_staff: Collection[str] = (),
        removed: Removed | None = None,
    ) -> CommandRunner:
        """This process has a back office, with a ledger and an audit log: see `Audit`."""
        return CommandRunner(self.database, claims, self.audits(audit, for_staff, removed), outbox, self.clocks)

    def undoes_imports(
        self, claims: Table, outbox: Outbox, audit: Audit, undoables: Sequence[Undoable], copies: Sequence[Copies] = ()
    ) -> None:
        """This process undoes imports of these kinds of records; it has copies of records of other contexts. To be
        called after `consumes`."""
        undo = ImportUndo(
            self.database, outbox, audit, claims, self.clocks, undoables, copies, self._catch_up_with_owner
        )
        self.serve(import_undo_pb2.DESCRIPTOR.services_by_name["ImportUndoService"], undo)
        self.retention_hooks.append(undo.drop_old)

    async def _catch_up_with_owner(self, kind: str) -> None:
        if self._consumer is not None:
            await self._consumer.catch_up([self._owners[kind]])

    def keeps_clocks(self, company: Table) -> CompanyClocks:
        """This process asks the companies' clocks, by the replica `company`. To be called before the other parts."""
        self.clocks = CompanyClocks(self.database, company, instants.now)
        return self.clocks

    def purges(self, metadata: MetaData, company: Table) -> None:
        """This process deletes the rows of companies that have ended, by the replica `company`: see `CompanyPurge`."""
        purge = CompanyPurge(CompanyRows(self.database, metadata), ended_companies(self.database, company))
        self.background("purge", purge.run)
        self.serve(company_purge_pb2.DESCRIPTOR.services_by_name["CompanyPurgeService"], purge)

    def moves_clocks(self, next_due: NextOf, do_due: DoneOf) -> None:
        """The gateway moves the clocks of sandboxes in this process: see `CompanyClockService`."""
        service = CompanyClockService(self.clocks, next_due, do_due, self._settle)
        self.serve(company_clock_pb2.DESCRIPTOR.services_by_name["CompanyClockService"], service)

    async def _settle(self, company_id: int, producers: Collection[str]) -> bool:
        """Takes in what other contexts have recorded, and publishes what this one has of the company. Whether all of
        it is published."""
        if self._consumer is not None:
            await self._consumer.catch_up(producers)
        return self._relay is None or await self._relay.publish_of(company_id)

    def sweeps(self, *sweeps: Sweep) -> None:
        """This process runs these sweeps on schedule, and in sandboxes whose clocks are moved."""
        stale = ScheduledSweeps(sweeps, self.clocks, self._record_future_sweep)
        self.moves_clocks(stale.next_due, stale.do_due)
        self.background("stale", functools.partial(every_slot, stale.sweep, period_seconds=STALE_SECONDS))
        self.serve(sweeps_pb2.DESCRIPTOR.services_by_name["ScheduledSweepsService"], stale)

    def records_future_sweeps(self, audit: Table, company: Table) -> None:
        """This process records in its audit log who starts a sweep as of a future instant."""
        self._future_sweeps = FutureSweeps(audit, company, self.database)

    async def _record_future_sweep(self, call: Call, sweep: str, now: datetime.datetime, account: str) -> None:
        log.warning(
            "sweep_started_ahead", sweep=sweep, now=instants.printed(now), actor=call.identity.actor, account=account
        )
        if self._future_sweeps is not None:
            await self._future_sweeps.record(call, sweep, now, account)

    async def run(self, head: str) -> None:
        """See `Lifecycle.run`."""
        if self._change_tracking is not None:
            self._change_tracking.head = head
        await self.lifecycle.run(head)

    async def _close(self) -> None:
        for client in self._service_clients.values():
            await client.close()
        await self.transport.close()
        await self.database.close()
