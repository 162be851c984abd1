"""Stubs of the four contexts, as far as the gateway needs them: real gRPC servers that check identity.

Each company has its own records: company 1 has the ids 1 to 120, company 2 the ids 1001 to 1120, and so on.
A list's records echo the request's filters; a write's reply echoes its body. `behave` makes an RPC slow or faulty.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from chassis import refusals
from chassis.app.rpc_server import SERVER_OPTIONS
from chassis.auth.clients import REFUSAL, refusal_message
from chassis.auth.identity import Identity, TokenVerifier
from chassis.refusals import Refusal
from chassis.writes import idempotency
from gateway.config import CONTEXTS
from gateway.http.answers.searches import OWNERS
from gateway.http.routes import OPERATIONS, Operation
from makeready.common.v1 import documents_pb2, idempotency_pb2, lookup_pb2
from testkit.stub_clocks import StubClocks

RECORDS = 120


def first_id(company_id: int) -> int:
    return (company_id - 1) * 1000 + 1


class Seen:
    """One received call."""

    def __init__(self, operation: Operation, identity: Identity, request: Any, request_id: str) -> None:
        self.operation = operation
        self.identity = identity
        self.request = request
        self.request_id = request_id


class Contexts:
    def __init__(self, ring_file: Path) -> None:
        self.ring_file = ring_file
        self.addresses: dict[str, str] = {}
        self.seen: list[Seen] = []
        self.looked_up: list[tuple[str, int, str]] = []
        """Service, company and external_id of each look-up."""
        self.behaviours: dict[str, Callable[[Any], Awaitable[None]]] = {}
        self.bodies: dict[tuple[int, str, str], bytes] = {}
        self.servers: dict[str, grpc.aio.Server] = {}
        self.health: dict[str, health.aio.HealthServicer] = {}
        self.clocks = StubClocks()

    async def start(self, name: str) -> None:
        server = grpc.aio.server(options=SERVER_OPTIONS)
        ring = TokenVerifier(self.ring_file, audience=name)
        methods: dict[str, dict[str, Any]] = defaultdict(dict)
        for operation in OPERATIONS:
            if operation.service == name:
                _, service, method = operation.rpc_path.split("/")
                handler = grpc.unary_unary_rpc_method_handler(
                    self._handler(operation, ring),
                    request_deserializer=operation.request.FromString,
                    response_serializer=operation.response.SerializeToString,
                )
                methods[service].setdefault(method, handler)  # a list's, which a snapshot asks for too
        key_use_handler = grpc.unary_unary_rpc_method_handler(
            self._key_uses(name, ring),
            request_deserializer=idempotency_pb2.GetKeyUseRequest.FromString,
            response_serializer=idempotency_pb2.GetKeyUseResponse.SerializeToString,
        )
        methods["makeready.common.v1.IdempotencyService"]["GetKeyUse"] = key_use_handler
        lookup_handler = grpc.unary_unary_rpc_method_handler(
            self._lookup(name, ring),
            request_deserializer=lookup_pb2.FindRecordsRequest.FromString,
            response_serializer=lookup_pb2.FindRecordsResponse.SerializeToString,
        )
        methods["makeready.common.v1.LookupService"]["FindRecords"] = lookup_handler
        methods["makeready.common.v1.CompanyClockService"] = self.clocks.handlers(name, ring)
        for service, handlers in methods.items():
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        self.health[name] = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self.health[name], server)
        port = server.add_insecure_port(self.addresses.get(name, "127.0.0.1:0"))
        await server.start()
        self.addresses[name] = f"127.0.0.1:{port}"
        self.servers[name] = server

    async def start_all(self) -> None:
        for name in CONTEXTS:
            await self.start(name)

    async def stop(self, name: str) -> None:
        await self.servers.pop(name).stop(None)

    async def stop_all(self) -> None:
        for name in list(self.servers):
            await self.stop(name)

    async def say(self, name: str, *, serving: bool) -> None:
        status = health_pb2.HealthCheckResponse
        await self.health[name].set("", status.SERVING if serving else status.NOT_SERVING)

    def _key_uses(self, name: str, ring: TokenVerifier) -> Callable[[Any, Any], Awaitable[Any]]:
        rpcs = [operation.route.rpc for operation in OPERATIONS if operation.service == name]

        async def handle(request: Any, context: Any) -> Any:
            who = ring.verify(dict(context.invocation_metadata())["authorization"])
            used = any((who.api_key_id, rpc, request.idempotency_key) in self.bodies for rpc in rpcs)
            use = idempotency_pb2.KEY_USE_USED if used else idempotency_pb2.KEY_USE_FREE
            return idempotency_pb2.GetKeyUseResponse(use=use)

        return handle

    def _lookup(self, name: str, ring: TokenVerifier) -> Callable[[Any, Any], Awaitable[Any]]:
        async def handle(request: Any, context: Any) -> Any:
            who = ring.verify(dict(context.invocation_metadata())["authorization"])
            self.looked_up.append((name, who.company_id, request.external_id))
            if request.external_id != "found" or name not in OWNERS:
                return lookup_pb2.FindRecordsResponse()
            kind = request.kind or OWNERS[name][0]
            record = lookup_pb2.FoundRecord(kind=kind, entity_id=first_id(who.company_id))
            return lookup_pb2.FindRecordsResponse(records=[record])

        return handle

    def _handler(self, operation: Operation, ring: TokenVerifier) -> Callable[[Any, Any], Awaitable[Any]]:
        async def handle(request: Any, context: Any) -> Any:
            metadata = dict(context.invocation_metadata())
            identity = ring.verify(metadata["authorization"])
            assert identity.kind == "caller"
            self.seen.append(Seen(operation, identity, request, metadata["x-request-id"]))
            try:
                behave = self.behaviours.get(operation.route.rpc)
                if behave is not None:
                    await behave(context)
                return self._answer(operation, identity, request)
            except Refusal as refusal:
                await context.abort(
                    grpc.StatusCode.FAILED_PRECONDITION, refusal.code, ((REFUSAL, refusal_message(refusal)),)
                )

        return handle

    def _answer(self, operation: Operation, who: Identity, request: Any) -> Any:
        first = first_id(who.company_id)
        if operation.id_field:
            entity_id = getattr(request, operation.id_field)
            if not first <= entity_id < first + RECORDS:
                raise refusals.not_found(operation.id_field.removesuffix("_id"))
        if operation.kind in ("list", "snapshot"):
            filters = {
                filter_field.name: str(getattr(request, filter_field.name)) for filter_field in operation.filters
            }
            filter_values = {name: value for name, value in filters.items() if request.HasField(name)}
            after_id = int(request.position or b"0") if operation.is_by_position else request.after_id
            ids = [record_id for record_id in range(first, first + RECORDS) if record_id > after_id]
            records: list[dict[str, Any]] = [
                {"entity_id": record_id, "filters": filter_values} for record_id in ids[: request.limit]
            ]
            page = documents_pb2.Page(data=json.dumps(records).encode())
            if len(ids) > request.limit and operation.is_by_position:
                page.next_position = b"%d" % records[-1]["entity_id"]
            elif len(ids) > request.limit:
                page.next_after_id = records[-1]["entity_id"]
            return operation.response(page=page)
        if operation.kind == "feed":
            after_id = int(request.position or b"0")
            record_ids = [record_id for record_id in range(first, first + RECORDS) if record_id > after_id]
            served = [] if request.from_now else record_ids[: request.limit]
            documents = [b'{ "entity_id": %d }' % record_id for record_id in served]
            position = b"%d" % (served[-1] if served else after_id)
            return operation.response(
                feed=documents_pb2.Feed(documents=documents, position=position, more=len(record_ids) > len(served))
            )
        if operation.kind == "delete":
            return operation.response()
        if operation.kind == "report":
            return operation.response(document={"json": b'{ "name": "figures",  "total": [] }'})
        if operation.kind == "fetch":
            # Spaces and key order prove that the gateway passes the bytes on unchanged.
            record = b'{ "entity_id": %d,  "b":1,"a":"\xc3\xa9" }' % entity_id
            return operation.response(document={"json": record, "entity_id": entity_id})
        idempotency.claim_of(request, who, operation.route.rpc, request.body)
        key = (who.api_key_id, operation.route.rpc, request.idempotency_key)
        body = b'{"sha256":"%s","bytes":%d}' % (hashlib.sha256(request.body).hexdigest().encode(), len(request.body))
        replayed = key in self.bodies
        if self.bodies.setdefault(key, body) != body:
            raise refusals.idempotency_mismatch()
        return operation.response(reply={"status": 201, "body": body, "replayed": replayed})


async def hang(_context: Any) -> None:
    """Never answers."""
    await asyncio.sleep(60)


async def fail(_context: Any) -> None:
    raise RuntimeError("a fault of the service")
