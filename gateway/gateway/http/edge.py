"""The edge: checks a request in a fixed order, makes one RPC, replies. Every error is in the error envelope.

The order: path, verb, bearer, company, rate, scope, query, Idempotency-Key, body. The service that owns the answer then
checks the record and its rules.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, NoReturn
from urllib.parse import unquote

import structlog
from prometheus_client import Counter, Histogram

from chassis.app.server import SECONDS_BUCKETS
from chassis.db.database import DatabaseFull
from chassis.refusals import Refusal, Unavailable, invalid_request
from chassis.runtime.failpoints import failpoint
from gateway.http import bearer, filters, replies
from gateway.http.bearer import Caller, Keys
from gateway.http.calls import Calls
from gateway.http.connection import BodyBroken, Request
from gateway.http.cursors import Cursors
from gateway.http.limits import REQUESTS_A_MINUTE, WINDOW_SECONDS, Limits
from gateway.http.reference import Reference
from gateway.http.replies import ApiError, Reply
from gateway.http.routes import PUBLIC, Operation, resource_of

IDEMPOTENCY_KEY_CHARACTERS_MAX = 64

log = structlog.stdlib.get_logger(__name__)
ANSWERED = Counter("makeready_http_requests_total", "Requests answered", ["route", "method", "status"])
SECONDS = Histogram("makeready_http_request_seconds", "Time to answer a request", ["route"], buckets=SECONDS_BUCKETS)

_UNAUTHORIZED = (
    401,
    "unauthorized",
    "The request bears no API key that is known here; send the header Authorization: Bearer and an active key.",
    replies.CHALLENGE,
)
_REVOKED = (
    401,
    "key_revoked",
    "This API key was revoked; stop retrying and ask an administrator for a new one.",
    replies.CHALLENGE,
)
_INACTIVE = (
    403,
    "company_inactive",
    "The company account of this key is inactive; have it activated before you try again.",
)
_LIMIT_POLICY = f'RateLimit-Policy: "key";q={REQUESTS_A_MINUTE};w={WINDOW_SECONDS}\r\n'


class Edge:
    """Answers the requests of all connections."""

    def __init__(
        self,
        keys: Keys,
        limits: Limits,
        cursors: Cursors,
        calls: Calls,
        reference: Reference,
        is_ready: Callable[[], bool],
        *,
        debug: bool,
    ) -> None:
        self._keys = keys
        self._limits = limits
        self._cursors = cursors
        self._calls = calls
        self._reference = reference
        self._is_ready = is_ready
        self._debug = debug
        self._counters: dict[tuple[str, str, int], Any] = {}
        self._clocks: dict[str, Any] = {}

    async def answer(self, request: Request) -> Reply:
        started = time.perf_counter()
        route = ["unknown"]
        try:
            reply = await self._answer(request, route)
        except Refusal as refusal:
            reply = replies.of_refusal(refusal)
        except BodyBroken as broken:
            reply = replies.error(400, "invalid_request", f"The body can't be read: {broken}; send it whole.")
        except Unavailable as fault:
            if fault.disk_full or isinstance(fault, DatabaseFull):
                database = fault.disk_full or "gateway"
                log.error("disk_full", database=database, route=route[0], request_id=request.id, reason=str(fault))
            else:
                log.warning("unavailable", route=route[0], request_id=request.id, reason=str(fault))
            reply = replies.FAULT
        except Exception:
            log.exception("fault", route=route[0], request_id=request.id)
            reply = replies.FAULT
        self._count(request, route[0], reply.status, time.perf_counter() - started)
        return reply

    async def _answer(self, request: Request, route: list[str]) -> Reply:
        path, query = request.target()
        if "%" in path:
            path = _decoded(path)
        found = resource_of(path)
        if found is None:
            return self._outside(request, path, route)
        resource, id_text = found
        operation = resource.operations.get(request.method)
        if operation is None:
            _refuse_verb(resource.allow)
        route[0] = operation.route.path
        if operation.scope == PUBLIC:
            filters.pairs(query, ())
            return self._reference.document
        caller = await self._caller(request)
        if caller.scope not in operation.opened_by:
            raise Refusal(
                403,
                "insufficient_scope",
                "This key's scope does not cover this operation; use a key with the scope "
                f"{' or '.join(sorted(operation.opened_by))}.",
            )
        if operation.kind == "list":
            return await self._list(operation, caller, id_text, query, request.id)
        filters.pairs(query, ())
        if operation.kind == "own":
            return replies.json(caller.whoami)
        message = operation.request()
        if operation.id_field:
            setattr(message, operation.id_field, filters.entity_id(id_text))
        if operation.kind == "write":
            message.idempotency_key = _idempotency_key(request, operation)
            message.body = await request.body()
            failpoint("edge-before-call")
            response = await self._calls.call(operation, message, caller, request.id)
            failpoint("edge-after-call")
        else:
            response = await self._calls.call(operation, message, caller, request.id)
        return _rendered(operation, response)

    async def _caller(self, request: Request) -> Caller:
        """The authenticated caller. Raises Refusal for a missing or revoked key, an inactive company, or too many
        requests."""
        key = bearer.presented(request.headers.getall("Authorization", ()))
        caller = None if key is None else await self._keys.find(key)
        if caller is None:
            raise ApiError(*_UNAUTHORIZED)
        if caller.revoked:
            raise ApiError(*_REVOKED)
        if not caller.company_active:
            raise Refusal(*_INACTIVE)
        admitted, remaining, reset_seconds = await self._limits.take(caller.api_key_id)
        request.limit_headers = f'RateLimit: "key";r={remaining};t={reset_seconds}\r\n{_LIMIT_POLICY}'.encode()
        if not admitted:
            raise ApiError(
                429,
                "rate_limited",
                f"This key's {REQUESTS_A_MINUTE} requests a minute are used up; wait for Retry-After seconds.",
                f"Retry-After: {reset_seconds}\r\n".encode(),
            )
        return caller

    async def _list(self, operation: Operation, caller: Caller, id_text: str, query: str, request_id: str) -> Reply:
        message = operation.request(limit=filters.LIMIT_DEFAULT)
        path = operation.route.path
        if operation.id_field:
            entity_id = filters.entity_id(id_text)
            setattr(message, operation.id_field, entity_id)
            path = path.replace(f"{{{operation.id_field}}}", str(entity_id))
        found: dict[str, Any] = {}
        cursor = None
        if query:
            given = filters.pairs(query, operation.allowed_query)
            message.limit = filters.limit(given.get("limit"))
            found = filters.read_filters(operation.filters, given)
            for name, value in found.items():
                if isinstance(value, int):
                    setattr(message, name, value)
                else:
                    getattr(message, name).CopyFrom(value)
            cursor = given.get("cursor")
        if cursor is not None:
            after_id = self._cursors.after_id(cursor, _bound_to(path, caller, found))
            if after_id is None:
                raise Refusal(
                    400,
                    "invalid_cursor",
                    "cursor was not issued for this list with these filters; start again without a cursor.",
                )
            message.after_id = after_id
        page = (await self._calls.call(operation, message, caller, request_id)).page
        following = b"null"
        if page.HasField("next_after_id"):
            following = f'"{self._cursors.issue(page.next_after_id, _bound_to(path, caller, found))}"'.encode()
        return replies.json(b'{"data":%b,"next_cursor":%b,"limit":%d}' % (page.data, following, message.limit))

    def _outside(self, request: Request, path: str, route: list[str]) -> Reply:
        """Paths outside the namespace: the pages for people, liveness and readiness. A service that is down does not
        make the gateway unready: the routes of the others still work."""
        page = self._reference.pages.get(path)
        if page is not None:
            if request.method not in ("GET", "HEAD"):
                _refuse_verb("GET, HEAD")
            route[0] = path
            return page
        if path not in ("/healthz", "/readyz"):
            raise Refusal(404, "not_found", "There is nothing at this path; check it against the API's reference.")
        if request.method != "GET":
            _refuse_verb("GET")
        route[0] = path
        if path == "/healthz" or self._is_ready():
            return replies.json(b'{"status":"ok"}')
        return replies.json(b'{"status":"not ready"}', 503)

    def _count(self, request: Request, route: str, status: int, seconds: float) -> None:
        # Looking up a labelled metric costs more than counting does.
        key = (route, request.method, status)
        counter = self._counters.get(key)
        if counter is None:
            method = request.method if route != "unknown" else ""
            counter = self._counters[key] = ANSWERED.labels(route, method, str(status))
        counter.inc()
        clock = self._clocks.get(route)
        if clock is None:
            clock = self._clocks[route] = SECONDS.labels(route)
        clock.observe(seconds)
        if self._debug or status >= 500:
            log.log(
                logging.ERROR if status >= 500 else logging.DEBUG,
                "answered",
                route=route,
                method=request.method,
                status=status,
                request_id=request.id,
                milliseconds=round(seconds * 1000, 1),
            )


def _rendered(operation: Operation, response: Any) -> Reply:
    """The service's response as the reply to the caller."""
    if operation.kind == "fetch":
        return replies.json(response.document.json)
    if operation.kind == "delete":
        return replies.NO_CONTENT
    reply = response.reply
    return replies.json(reply.body, reply.status, b"X-Idempotent-Replay: 1\r\n" if reply.replayed else b"")


def _decoded(path: str) -> str:
    """The path without percent-encoding; "" where an encoded slash would change its segments."""
    return "" if "%2f" in path.lower() else unquote(path)


def _refuse_verb(allow: str) -> NoReturn:
    raise ApiError(
        405,
        "method_not_allowed",
        "This path does not support the request's verb; use one that the Allow header lists.",
        f"Allow: {allow}\r\n".encode(),
    )


def _idempotency_key(request: Request, operation: Operation) -> str:
    given = request.headers.getall("Idempotency-Key", ())
    if not given or given == [""]:
        raise Refusal(400, "idempotency_key_required", operation.route.key_sentence)
    if len(given) > 1:
        raise invalid_request("Idempotency-Key is given more than once; send it once.")
    key = given[0]
    if len(key) > IDEMPOTENCY_KEY_CHARACTERS_MAX or not (key.isascii() and key.isprintable()):
        raise invalid_request(
            f"Idempotency-Key must be 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} printable ASCII characters."
        )
    return key


def _bound_to(path: str, caller: Caller, found: dict[str, Any]) -> bytes:
    """What a cursor is bound to. path: of the list, with the id of the record that owns it."""
    return f"{caller.identity.company_id} {path}?{filters.canonical(found)}".encode()
