"""The gRPC server of a process: who may call, errors as gRPC tells them, metrics, and an end that drops no call."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc
import structlog
from asyncpg import ForeignKeyViolationError
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass
from prometheus_client import Counter, Histogram

from chassis.auth.access import Access
from chassis.auth.clients import DISK_FULL, MESSAGE_BYTES_MAX, NOT_AGAIN, REFUSAL, refusal_message
from chassis.auth.identity import Call, Identity, IdentityError, TokenVerifier
from chassis.auth.rpcs import Context, Handler
from chassis.db.database import ClockSkew, DatabaseFull
from chassis.refusals import Refusal, Unavailable
from chassis.runtime import traces
from chassis.runtime.settings import SettingsError

GRACE_SECONDS = 10
ABORTED_SECONDS = 2

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


def _short(rpc: MethodDescriptor) -> str:
    """The RPC's name in logs and metrics: "TicketsService/GetTicket"."""
    return f"{rpc.containing_service.name}/{rpc.name}"


def _admitted(ring: TokenVerifier, access: Access, metadata: Mapping[str, str | bytes]) -> Identity:
    """The caller. Raises IdentityError if the token proves nothing or the caller may not call the RPC."""
    who = ring.verify(str(metadata.get("authorization", "")))
    access.check(who)
    return who


def _enter_trace(metadata: Mapping[str, str | bytes]) -> None:
    traceparent = metadata.get(traces.HEADER)
    traces.enter((traceparent,) if isinstance(traceparent, str) else ())


async def _refuse(context: Context, rpc: str, error: IdentityError) -> None:
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
        self._served: dict[str, tuple[str, Access, Handler]] = {}

    def add(self, path: str, short: str, access: Access, handler: Handler) -> None:
        self._served[path] = short, access, handler

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        served = self._served.get(handler_call_details.method)
        if served is None:
            return None
        if not self.are_served:
            return grpc.stream_unary_rpc_method_handler(self._starting)
        short, access, handler = served
        try:
            _admitted(self._ring, access, dict(handler_call_details.invocation_metadata))
        except IdentityError as error:
            return grpc.stream_unary_rpc_method_handler(functools.partial(self._refused, short, error))
        return handler

    @staticmethod
    async def _starting(_requests: object, context: Context) -> None:
        await context.abort(grpc.StatusCode.UNAVAILABLE, "the service is starting")

    @staticmethod
    async def _refused(short: str, error: IdentityError, _requests: object, context: Context) -> None:
        CALLS.labels(short, "failed").inc()
        _enter_trace(dict(context.invocation_metadata() or ()))
        await _refuse(context, short, error)


class RpcServer:
    """Serves the RPCs of one process. Until `open`, all are answered UNAVAILABLE."""

    def __init__(self, name: str, ring: TokenVerifier, connection_age_seconds: int) -> None:
        """A client's connection ends after `connection_age_seconds`, give or take 10 %, by gRPC."""
        self._name, self._ring = name, ring
        age = ("grpc.max_connection_age_ms", 1000 * connection_age_seconds)
        self._server = grpc.aio.server(options=[*SERVER_OPTIONS, age])
        self._rpcs = _Rpcs(ring)
        self._handlers: set[asyncio.Task[object]] = set()
        self._listens = False
        self._opened = asyncio.Event()

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

    async def listen(self, address: str, health: grpc.GenericRpcHandler) -> None:
        """Opens the port, where `health` alone is served. Raises SettingsError if it can't."""
        self._server.add_generic_rpc_handlers((self._rpcs, health))
        try:
            self._server.add_insecure_port(address)
        except RuntimeError:
            raise SettingsError(f"MAKEREADY_GRPC_LISTEN {address} can't be listened on.") from None
        await self._server.start()
        self._listens = True

    def open(self) -> None:
        """From now on RPCs are served."""
        self._rpcs.are_served = True
        self._opened.set()

    async def stop(self) -> None:
        """Refuses new calls, and lets those under way finish for GRACE_SECONDS."""
        self._opened.set()  # nobody waits for the start any longer
        if self._listens:
            await self._server.stop(GRACE_SECONDS if self.is_open else None)
        # stop() returns before aborted handlers have run their `finally`.
        if self._handlers:
            await asyncio.wait(self._handlers, timeout=ABORTED_SECONDS)

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

    async def _abort(self, context: Any, short_name: str, error: Unavailable | ForeignKeyViolationError) -> None:
        """Ends a call that cannot be answered now."""
        if isinstance(error, ForeignKeyViolationError):
            # What the request refers to was withdrawn at this instant. Sent again, it is refused.
            log.warning("reference_withdrawn", rpc=short_name, constraint=error.constraint_name)
            details = "a record that the request refers to has just been withdrawn"
            await context.abort(grpc.StatusCode.UNAVAILABLE, details)
            return
        full = self._name if isinstance(error, DatabaseFull) else error.disk_full
        if full:
            log.error("disk_full", database=full, rpc=short_name, reason=str(error))
            details = f"the disk of {full}'s database is full"
            await context.abort(grpc.StatusCode.UNAVAILABLE, details, ((DISK_FULL, full), *NOT_AGAIN))
        log.warning("unavailable", rpc=short_name, reason=str(error))
        # Another pod needs the same, so a repeat would only be more load.
        details = "something that this service needs is away"
        await context.abort(grpc.StatusCode.UNAVAILABLE, details, NOT_AGAIN)

    def _guarded(
        self, rpc: MethodDescriptor, method: Callable[[Any, Call], Awaitable[Any]], access: Access
    ) -> Callable[[Any, Any], Awaitable[Any]]:
        """Wraps the method in identity checks, error mapping and metrics. One wrapper is cheaper than interceptors."""
        short_name = _short(rpc)
        seconds = SECONDS.labels(short_name)
        served = CALLS.labels(short_name, "served")

        async def handle(request: Any, context: Context) -> Any:
            started = time.perf_counter()
            task = asyncio.current_task()
            assert task is not None
            self._handlers.add(task)
            outcome = "failed"
            request_id = ""
            try:
                metadata = dict(context.invocation_metadata() or ())
                request_id = str(metadata.get("x-request-id", ""))
                _enter_trace(metadata)
                if "grpc-previous-rpc-attempts" in metadata:
                    REPEATED.labels(short_name).inc()
                # Again, because the request may have arrived after the token's end; a verified token costs 0.15 µs.
                who = _admitted(self._ring, access, metadata)
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
            except (Unavailable, ForeignKeyViolationError) as error:
                await self._abort(context, short_name, error)
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
