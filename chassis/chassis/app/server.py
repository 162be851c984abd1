"""One service process: starts, serves gRPC, runs background work, and stops without dropping a call."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import gc
import itertools
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import grpc
import structlog
import uvloop
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass
from prometheus_client import Counter, Histogram, start_http_server
from sqlalchemy import MetaData, Table

from chassis.app.health import Health
from chassis.app.status import Status, publish_build_info
from chassis.auth.access import Access
from chassis.auth.clients import DISK_FULL, MESSAGE_BYTES_MAX, NOT_AGAIN, REFUSAL, ServiceClient, refusal_message
from chassis.auth.identity import Call, Identity, IdentityError, TokenSigner, TokenVerifier
from chassis.changes.feed import Changes
from chassis.changes.tracking import ChangeTracking
from chassis.db import revisions
from chassis.db.database import ONE_PLAN, Change, ClockSkew, Connection, Database, DatabaseFull
from chassis.messaging.consumer import Apply, Consumer, Examine, examine_nothing
from chassis.messaging.handover import Handover
from chassis.messaging.hints import Hints
from chassis.messaging.outbox import Outbox
from chassis.messaging.relay import Relay
from chassis.messaging.transport import Transport
from chassis.refusals import Refusal, Unavailable
from chassis.replicas.check import ReplicaCheck
from chassis.replicas.resync import ReplicaResync
from chassis.replicas.tables import Replicas
from chassis.runtime import failpoints, logs, traces
from chassis.runtime.scheduling import batch_scheduling
from chassis.runtime.settings import Environment, ServiceSettings, SettingsError, database_settings
from chassis.schedule import instants
from chassis.schedule.sweeps import PERIOD_SECONDS as STALE_SECONDS
from chassis.schedule.sweeps import ScheduledSweeps, Sweep
from chassis.writes.audit import AUDIT, Audit, FutureSweeps, Removed
from chassis.writes.commands import CommandRunner
from chassis.writes.idempotency import LEDGER, KeyUses
from chassis.writes.retention import Retention, RetentionHook, every_slot
from makeready.common.v1 import audit_pb2, idempotency_pb2, retention_pb2, status_pb2, sweeps_pb2
from makeready.events.v1 import events_pb2, replicas_pb2

CANCEL_AGAIN_SECONDS = 0.5
CANCEL_ALL_EVERY = 6  # times; the rollback of a transaction takes less than 3 s
GRACE_SECONDS = 10
STEP_AGAIN_SECONDS = 1
COMPANY = "company"  # the table of companies, or its replica

SERVER_OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),
    # Clients ping every two seconds; the default would refuse pings under five minutes.
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # A connection that has reached its age ends with its last call; the longest deadline, of a sweep, is an hour.
    ("grpc.max_connection_age_grace_ms", 3_600_000),
]

log = structlog.stdlib.get_logger(__name__)
CALLS = Counter("makeready_rpc_total", "RPCs answered", ["rpc", "outcome"])
REPEATED = Counter("makeready_rpc_repeated_total", "RPCs that clients sent again after a pod went", ["rpc"])
SECONDS_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
SECONDS = Histogram("makeready_rpc_seconds", "Time to answer an RPC", ["rpc"], buckets=SECONDS_BUCKETS)


Background = Callable[[], Awaitable[None]]


def _short(rpc: MethodDescriptor) -> str:
    """The RPC's name in logs and metrics: "TicketsService/GetTicket"."""
    return f"{rpc.containing_service.name}/{rpc.name}"


def _admitted(ring: TokenVerifier, access: Access, metadata: Mapping[str, str | bytes]) -> Identity:
    """The caller. Raises IdentityError if the token proves nothing or the caller may not call the RPC."""
    who = ring.verify(str(metadata.get("authorization", "")))
    access.check(who)
    return who


def _enter_trace(metadata: Mapping[str, str | bytes]) -> None:
    given = metadata.get(traces.HEADER)
    traces.enter((given,) if isinstance(given, str) else ())


async def _refuse(context: Any, rpc: str, error: IdentityError) -> None:
    log.warning("identity_refused", rpc=rpc, reason=str(error))
    await context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))


class _Rpcs(grpc.GenericRpcHandler):
    """All RPCs of the process. Refuses a caller before the request is received.

    gRPC calls `service` with the metadata alone. It runs the handler of a unary request after the whole request has
    arrived, and the handler of a stream of requests before any of it. So a refusal is a handler of a stream, which
    reads nothing. Requests that are not read stay with their senders, by HTTP/2's flow control. When requests were read
    first, 24 strangers with bodies of 31 MiB held 1.2 GB.
    """

    def __init__(self, ring: TokenVerifier) -> None:
        self.are_served = False
        """Before that, all are answered UNAVAILABLE."""
        self._ring = ring
        self._found: dict[str, tuple[str, Access, grpc.RpcMethodHandler[Any, Any]]] = {}

    def add(self, path: str, short: str, access: Access, handler: grpc.RpcMethodHandler[Any, Any]) -> None:
        self._found[path] = short, access, handler

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        found = self._found.get(handler_call_details.method)
        if found is None:
            return None
        if not self.are_served:
            return grpc.stream_unary_rpc_method_handler(self._starting)
        short, access, handler = found
        try:
            _admitted(self._ring, access, dict(handler_call_details.invocation_metadata))
        except IdentityError as error:
            return grpc.stream_unary_rpc_method_handler(functools.partial(self._refused, short, error))
        return handler

    @staticmethod
    async def _starting(_requests: Any, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNAVAILABLE, "the service is starting")

    @staticmethod
    async def _refused(short: str, error: IdentityError, _requests: Any, context: Any) -> None:
        CALLS.labels(short, "failed").inc()
        _enter_trace(dict(context.invocation_metadata()))
        await _refuse(context, short, error)


class App:
    """The parts of one process, wired by its `__main__`."""

    def __init__(self, name: str, settings: ServiceSettings, plans: str = ONE_PLAN) -> None:
        """plans: see `Database`."""
        self.name = name
        self.settings = settings
        self.issuer = TokenSigner(settings.identity_key_file)
        self.ring = TokenVerifier(settings.identity_ring_file, audience=name)
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
        hints = Hints(name, self.transport)
        self._commit_steps: list[Callable[[Iterable[Change]], None]] = [hints.add]
        self.database.committed = self._committed
        self._service_clients: dict[str, ServiceClient] = {}
        self._background: dict[str, Background] = {
            "nats": self.transport.run,
            "hints": hints.run,
            "clocks": self.database.compare_clocks,
            "log": logs.report_left_out,
        }
        self._handlers: set[asyncio.Task[Any]] = set()
        age = ("grpc.max_connection_age_ms", 1000 * settings.connection_age_seconds)  # give or take 10 %, by gRPC
        self._server = grpc.aio.server(options=[*SERVER_OPTIONS, age])
        self._rpcs = _Rpcs(self.ring)
        self._health = Health()
        self._listening: list[Background] = []
        self._starting: list[Background] = []
        self._ready_steps: list[Background] = []
        self._ending: list[Background] = []
        self.status = Status(self.database, self.transport)
        self.serve(status_pb2.DESCRIPTOR.services_by_name["StatusService"], self.status)
        self.retention_hooks: list[RetentionHook] = []
        """What `sweep retention` runs besides the retention of idempotency keys."""
        self._future_sweeps: FutureSweeps | None = None
        self._change_tracking: ChangeTracking | None = None
        self._listens = False
        self._opened = asyncio.Event()
        self.stopping = asyncio.Event()
        """Set by SIGTERM or SIGINT, before any part stops."""

    def service_client(self, name: str) -> ServiceClient:
        """The client of another service. Raises SettingsError if its address is not set."""
        if name not in self._service_clients:
            self._service_clients[name] = ServiceClient(name, self.settings.address(name), self.issuer)
        return self._service_clients[name]

    def background(self, name: str, work: Background) -> None:
        """Runs work next to the RPCs; restarts it if it fails."""
        self._background[name] = work

    def on_commit(self, step: Callable[[Iterable[Change]], None]) -> None:
        """A step after each commit of this process that changed records, with these. It must neither wait nor raise."""
        self._commit_steps.append(step)

    def _committed(self, changed: Iterable[Change]) -> None:
        changed = tuple(changed)
        for step in self._commit_steps:
            step(changed)

    @property
    def is_open(self) -> bool:
        """Whether RPCs are served: the database is there and has the schema that this code needs."""
        return self._rpcs.are_served

    async def wait_until_open(self, seconds: float) -> bool:
        """Whether `is_open`; while the process starts, it waits up to so many seconds for that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._opened.wait()
        return self.is_open

    @property
    def is_ready(self) -> bool:
        """Whether health says SERVING: the process has started and is not stopping."""
        return self._health.is_serving and not self.stopping.is_set()

    def on_listening(self, step: Background) -> None:
        """A step once the gRPC port is open, before the database is."""
        self._listening.append(step)

    def on_start(self, step: Background) -> None:
        """A step after the database is open and before the RPCs are served; again until the database answers."""
        self._starting.append(step)

    def before_ready(self, step: Background) -> None:
        """A step while the RPCs are served, before health says SERVING."""
        self._ready_steps.append(step)

    def on_stop(self, step: Background) -> None:
        """A step after the RPCs have ended and before the database closes, in reverse order of registration.
        It also runs if the start fails half way."""
        self._ending.append(step)

    def produces(self, outbox_table: Table, consumers: Mapping[str, Sequence[str]]) -> Outbox:
        """This process has an outbox; consumers: the services that consume its events, and which: see `Relay`."""
        outbox = Outbox(self.name, outbox_table)
        relay = Relay(self.database, outbox, self.transport, consumers, self.settings.relay_lease_seconds)
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
        """This process consumes events; subjects: see `Consumer`. replicas: the rows that it takes from references."""
        clients = {producer: self.service_client(producer) for producer in subjects}
        examine = examine_nothing if replicas is None else self._replicates(replicas)
        consumer = Consumer(self.name, self.database, inbox, self.transport, apply, subjects, clients, examine)
        self.background("consumer", consumer.run)
        self.background("reconcile", consumer.reconcile)
        self.serve(events_pb2.DESCRIPTOR.services_by_name["ConsumerService"], consumer)
        return consumer

    def _replicates(self, replicas: Replicas) -> Examine:
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

    async def _end_positions(self, connection: Connection) -> None:
        if self._change_tracking is not None:
            await self._change_tracking.end_positions(connection)

    def forgets(self, claims: Table) -> None:
        """This process serves writes; claims: the ledger of their keys and replies."""
        retention = Retention(self.database, claims, self.retention_hooks, self._record_future_sweep)
        self.background("retention", functools.partial(every_slot, retention.sweep))
        self.serve(retention_pb2.DESCRIPTOR.services_by_name["RetentionService"], retention)
        key_uses = KeyUses(self.database, claims)
        self.serve(idempotency_pb2.DESCRIPTOR.services_by_name["IdempotencyService"], key_uses)

    def audits(self, table: Table, for_staff: Collection[str] = (), removed: Removed | None = None) -> Audit:
        """This process writes an audit log and serves it. for_staff, removed: see `Audit`."""
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
        """This process has a back office; claims: its ledger, audit: its log. for_staff, removed: see `Audit`."""
        return CommandRunner(self.database, claims, self.audits(audit, for_staff, removed), outbox)

    def sweeps(self, *sweeps: Sweep) -> None:
        """This process runs these sweeps on schedule."""
        stale = ScheduledSweeps(sweeps, self._record_future_sweep)
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

    def serve(self, service: ServiceDescriptor, implementation: object) -> None:
        """Serves every RPC of the service with the method of the same name, for the callers that its proto names."""
        for rpc in service.methods:
            access = Access(rpc)
            handler = grpc.unary_unary_rpc_method_handler(
                self._guarded(rpc, getattr(implementation, rpc.name), access),
                request_deserializer=GetMessageClass(rpc.input_type).FromString,
                response_serializer=GetMessageClass(rpc.output_type).SerializeToString,
            )
            self._rpcs.add(f"/{service.full_name}/{rpc.name}", _short(rpc), access, handler)

    def _guarded(
        self, rpc: MethodDescriptor, method: Callable[[Any, Call], Awaitable[Any]], access: Access
    ) -> Callable[[Any, Any], Awaitable[Any]]:
        """Wraps the method in identity checks, error mapping and metrics. One wrapper is cheaper than interceptors."""
        short_name = _short(rpc)
        seconds = SECONDS.labels(short_name)
        served = CALLS.labels(short_name, "served")

        async def handle(request: Any, context: Any) -> Any:
            started = time.perf_counter()
            task = asyncio.current_task()
            assert task is not None
            self._handlers.add(task)
            outcome = "failed"
            request_id = ""
            try:
                metadata = dict(context.invocation_metadata())
                request_id = metadata.get("x-request-id", "")
                _enter_trace(metadata)
                if "grpc-previous-rpc-attempts" in metadata:
                    REPEATED.labels(short_name).inc()
                # Again, because the request may have arrived after the token's end; a verified token costs 0.15 µs.
                who = _admitted(self.ring, access, metadata)
                structlog.contextvars.bind_contextvars(request_id=request_id)
                access.confirm(who)
                response = await method(request, Call(who, request_id))
                outcome = ""
                return response
            except Refusal as refusal:
                outcome = "refused"
                await context.abort(
                    grpc.StatusCode.FAILED_PRECONDITION, refusal.code, ((REFUSAL, refusal_message(refusal)),)
                )
            except IdentityError as error:
                await _refuse(context, short_name, error)
            except ClockSkew as error:  # logged once, where the clocks are compared
                await context.abort(grpc.StatusCode.ABORTED, str(error))
            except Unavailable as error:
                full = self.name if isinstance(error, DatabaseFull) else error.disk_full
                if full:
                    log.error("disk_full", database=full, rpc=short_name, reason=str(error))
                    details = f"the disk of {full}'s database is full"
                    await context.abort(grpc.StatusCode.UNAVAILABLE, details, ((DISK_FULL, full), *NOT_AGAIN))
                log.warning("unavailable", rpc=short_name, reason=str(error))
                # Another pod needs the same, so a repeat would only be more load.
                details = "something that this service needs is away"
                await context.abort(grpc.StatusCode.UNAVAILABLE, details, NOT_AGAIN)
            except (asyncio.CancelledError, grpc.aio.AbortError):
                raise
            except Exception:
                log.exception("fault", rpc=short_name)
                await context.abort(grpc.StatusCode.INTERNAL, "fault")
            finally:
                self._handlers.discard(task)
                seconds.observe(time.perf_counter() - started)
                (CALLS.labels(short_name, outcome) if outcome else served).inc()

        return handle

    async def run(self, head: str) -> None:
        """Starts, serves until SIGTERM or SIGINT, and stops: it reports not ready, then finishes the calls under way.

        head: the migration that the database must have had before it serves; it waits for that, and for the database.
        A signal during the start interrupts it. Raises SettingsError and Unavailable if it can't start.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        tasks: list[asyncio.Task[None]] = []
        starting = asyncio.create_task(self._start(head, tasks))
        signalled = asyncio.create_task(self.stopping.wait())
        try:
            await asyncio.wait({starting, signalled}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await signalled
                log.info("stopping")
                await self._health.stop()
                await asyncio.sleep(self.settings.drain_seconds)
        finally:
            for task in (starting, signalled):
                task.cancel()
                await asyncio.wait({task})
            await self._stop(tasks)

    async def _start(self, head: str, tasks: list[asyncio.Task[None]]) -> None:
        self._server.add_generic_rpc_handlers((self._rpcs, await self._health.handlers()))
        try:
            self._server.add_insecure_port(self.settings.grpc_listen)
        except RuntimeError:
            raise SettingsError(f"MAKEREADY_GRPC_LISTEN {self.settings.grpc_listen} can't be listened on.") from None
        await self._server.start()
        self._listens = True
        for step in self._listening:
            await step()
        await revisions.open_migrated(self.database, head)
        if self._change_tracking is not None:
            self._change_tracking.head = head
        tasks += [asyncio.create_task(self._keep(name, work), name=name) for name, work in self._background.items()]
        for step in self._starting:
            await self._until_available(step)
        self._rpcs.are_served = True
        self._opened.set()
        for step in self._ready_steps:
            await step()
        gc.freeze()  # loaded objects stay: scanning them again took a fifth of an import's CPU
        await self._health.serve()
        log.info("serving", grpc=self.settings.grpc_listen)

    async def _until_available(self, step: Background) -> None:
        """The database may go away at any moment of a start."""
        while True:
            try:
                return await step()
            except Unavailable as error:
                log.warning("start_waits", reason=str(error))
                await asyncio.sleep(STEP_AGAIN_SECONDS)

    async def _stop(self, tasks: list[asyncio.Task[None]]) -> None:
        self._opened.set()  # nobody waits for the start any longer
        if self._listens:
            await self._server.stop(GRACE_SECONDS if self.is_open else None)
        # stop() returns before aborted handlers have run their `finally`.
        if self._handlers:
            await asyncio.wait(self._handlers, timeout=2)
        await _end(tasks)
        for step in reversed(self._ending):
            await step()
        for client in self._service_clients.values():
            await client.close()
        await self.transport.close()
        await self.database.close()
        if self.stopping.is_set():  # a start that failed says why, in one line
            log.info("stopped")

    async def _keep(self, name: str, work: Background) -> None:
        while True:
            traces.begin()
            try:
                await work()
                return
            except ClockSkew:  # logged once, where the clocks are compared
                pass
            except Unavailable as error:
                log.warning("background_waits", work=name, reason=str(error))
            except Exception:
                log.exception("background_failed", work=name)
            await asyncio.sleep(1)


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancels background work until all of it has ended.

    Libraries swallow cancellations: the NATS client while it connects, `asyncio.wait_for` of Python 3.11 in the instant
    in which what it waits for ends. So work is cancelled again, the client's soon, other work once it has had time to
    clean up.
    """
    under_way = set(tasks)
    for times in itertools.count():
        if not under_way:
            return
        is_late = times > 0 and times % CANCEL_ALL_EVERY == 0
        if is_late:
            log.warning("background_ends_late", work=", ".join(sorted(task.get_name() for task in under_way)))
        for task in under_way:
            if times == 0 or is_late or task.get_name() == "nats":
                task.cancel()
        _, under_way = await asyncio.wait(under_way, timeout=CANCEL_AGAIN_SECONDS)


def run_process(
    name: str,
    metadata: MetaData,
    package: str,
    read_settings: Callable[[Environment], Any],
    assemble: Callable[[Any], App],
) -> None:
    """A service's main: `python -m PACKAGE` serves, `python -m PACKAGE migrate` migrates.

    It serves once the database has had the newest of the package's migrations; a package of "" has none. A bad setting
    prints one line on standard error and exits with status 2.
    """
    environment = Environment(os.environ)
    try:
        if sys.argv[1:] == ["migrate"]:
            migrate(name, metadata, package, environment)
            return
        if sys.argv[1:]:
            raise SettingsError(f"usage: python -m {package} [migrate]")
        settings = read_settings(environment)
        service: ServiceSettings = getattr(settings, "service", settings)
        logs.configure(name, service.log_level)
        failpoints.arm(environment.text("MAKEREADY_KILL_AT", ""), environment.text("MAKEREADY_STRIKE_FILE", ""))
        batch_scheduling()
        publish_build_info(environment)
        host, _, port = service.metrics_listen.rpartition(":")
        try:
            start_http_server(int(port), host)
        except OSError as error:
            raise SettingsError(f"MAKEREADY_METRICS_LISTEN {service.metrics_listen}: {error.strerror}.") from None

        async def whole() -> None:
            app = assemble(settings)
            if LEDGER in metadata.tables:
                app.forgets(metadata.tables[LEDGER])
            if {AUDIT, COMPANY} <= metadata.tables.keys():
                app.records_future_sweeps(metadata.tables[AUDIT], metadata.tables[COMPANY])
            await app.run(revisions.head_of(package) if package else "")

        uvloop.run(whole())
    except (SettingsError, Unavailable) as error:
        print(f"{name}: {error}", file=sys.stderr)  # noqa: T201 - the operator's one line
        raise SystemExit(2) from None


def migrate(name: str, metadata: MetaData, package: str, environment: Environment) -> None:
    """The command `migrate` of a process. Raises SettingsError and DatabaseUnavailable."""
    logs.configure(name)
    from chassis.db import migrations  # noqa: PLC0415 - Alembic would double the time and memory of serving

    url, owner_url = database_urls(environment)
    service_role = urlsplit(url).username or ""
    migrations.migrate(owner_url or url, package, metadata, service_role if owner_url else "")


def database_urls(environment: Environment) -> tuple[str, str]:
    """The URL of the service's role, and that of the owner's, which migrates; "" if one role does both. A pooler is
    passed by where a direct URL is given."""
    url = database_settings(environment).direct_url
    if environment.optional("MAKEREADY_DATABASE_OWNER_URL") is None:
        return url, ""
    owner_url = environment.database_url("MAKEREADY_DATABASE_OWNER_URL")
    if urlsplit(owner_url).path != urlsplit(url).path:
        raise SettingsError("MAKEREADY_DATABASE_OWNER_URL and MAKEREADY_DATABASE_URL name two databases.")
    if not urlsplit(url).username or urlsplit(owner_url).username == urlsplit(url).username:
        raise SettingsError("MAKEREADY_DATABASE_OWNER_URL and MAKEREADY_DATABASE_URL must name two roles.")
    return url, owner_url
