"""The API handler: checks each request in a fixed order, and has it answered. Every error is in the error envelope.

The order: path, verb, bearer, company, rate, scope, sandbox, query, Idempotency-Key, body. The service that owns the
answer then checks the record and its rules.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import unquote

import structlog

from chassis.db.database import DatabaseFull
from chassis.http.bodies import BodyBroken
from chassis.http.replies import Reply
from chassis.http.requests import Request
from chassis.refusals import Refusal, Unavailable
from chassis.runtime import traces
from gateway.http import encoding, filters, replies
from gateway.http.admission import Admission
from gateway.http.answered import UNKNOWN, AnsweredRequests
from gateway.http.answers.requests import Answer, ApiRequest
from gateway.http.outside import Outside
from gateway.http.request_log import RequestLog
from gateway.http.routes import PUBLIC, SANDBOX, Kind, Operation, resource_of
from gateway.sandbox.rules import no_sandbox

log = structlog.stdlib.get_logger(__name__)


class ApiHandler:
    """Answers the requests of all connections."""

    def __init__(
        self,
        admission: Admission,
        outside: Outside,
        answers: Mapping[Kind, Answer],
        answered: AnsweredRequests,
        requests: RequestLog,
    ) -> None:
        """answers: what answers each kind of operation."""
        self._admission = admission
        self._outside = outside
        self._answers = answers
        self._answered = answered
        self._requests = requests

    async def answer(self, request: Request) -> Reply:
        started = time.perf_counter()
        traces.enter(request.headers.getall(traces.HEADER, ()))
        route, field = UNKNOWN, ""
        operation: Operation | None = None
        ids: tuple[str, ...] = ()
        path = query = ""
        try:
            path, query = request.target()
            if "%" in path:
                path = _decoded(path)
            place = resource_of(path)
            if place is None:
                reply, route = self._outside.reply(request.method, path, request.headers.getall("Accept", ())), path
            else:
                resource, ids = place
                operation = resource.operations.get(request.method)
                if operation is None:
                    raise replies.verb_not_allowed(resource.allow)
                route = operation.route.path
                reply = await self._answer(operation, ids, query, request)
        except Refusal as refusal:
            field = refusal.field
            reply = replies.of_refusal(refusal)
        except BodyBroken as broken:
            reply = replies.error(400, "invalid_request", f"The body can't be read: {broken}; send it whole.")
        except Unavailable as fault:
            _log_unavailable(fault, route, request.id)
            reply = replies.FAULT
        except Exception:
            log.exception("fault", route=route, request_id=request.id)
            reply = replies.FAULT
        answer = reply
        if reply.is_read:
            reply = encoding.encoded(reply, request.headers.getall("Accept-Encoding", ()))
        seconds = time.perf_counter() - started - request.idle_seconds
        self._answered.count(request, route, reply.status, seconds)
        if request.caller is not None and operation is not None:
            self._requests.add(request, operation, ids, query, answer, field, seconds)
        elif operation is None and reply.status >= 400:
            self._requests.add_without_operation(request, path, query, answer, seconds)
        return reply

    async def _answer(self, operation: Operation, ids: tuple[str, ...], query: str, request: Request) -> Reply:
        if operation.scope == PUBLIC:
            filters.pairs(query, ())
            return self._outside.document
        caller = await self._admission.counted_caller(request)
        if caller.scope not in operation.opened_by:
            raise Refusal(
                403,
                "insufficient_scope",
                "This key's scope does not cover this operation; use a key with the scope "
                f"{' or '.join(sorted(operation.opened_by))}.",
            )
        if operation.route.path.startswith(SANDBOX) and not caller.identity.is_sandbox:
            raise no_sandbox()
        return await self._answers[operation.kind](ApiRequest(operation, caller, ids, query, request))


def _decoded(path: str) -> str:
    """The path without percent-encoding; "" where an encoded slash would change its segments."""
    return "" if "%2f" in path.lower() else unquote(path)


def _log_unavailable(fault: Unavailable, route: str, request_id: str) -> None:
    if fault.disk_full or isinstance(fault, DatabaseFull):
        database = fault.disk_full or "gateway"
        log.error("disk_full", database=database, route=route, request_id=request_id, reason=str(fault))
    else:
        log.warning("unavailable", route=route, request_id=request_id, reason=str(fault))
