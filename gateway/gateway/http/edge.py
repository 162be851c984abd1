"""The edge: checks a request in a fixed order, makes one RPC, replies. Every error is in the error envelope.

The order: path, verb, bearer, company, rate, scope, query, Idempotency-Key, body. The service that owns the answer then
checks the record and its rules.
"""

from __future__ import annotations

import functools
import logging
import time
from typing import Any, NoReturn
from urllib.parse import unquote

import structlog
from prometheus_client import Counter, Histogram

from chassis.app.server import SECONDS_BUCKETS, App
from chassis.db.database import DatabaseFull
from chassis.http.bodies import BodyBroken
from chassis.http.replies import Reply, json
from chassis.http.requests import Request
from chassis.records.bodies import BODY_BYTES_MAX
from chassis.refusals import Refusal, Unavailable, invalid_request
from chassis.runtime import traces
from gateway.http import bearer, encoding, filters, replies
from gateway.http.bearer import Caller, Keys
from gateway.http.calls import Calls
from gateway.http.cursors import Cursors
from gateway.http.limits import REQUESTS_A_MINUTE, WINDOW_SECONDS, Limits
from gateway.http.reference import Reference
from gateway.http.replies import ApiError
from gateway.http.routes import AFTER_ID, CHANGES, PUBLIC, SNAPSHOTS, Operation, operation_at, resource_of
from gateway.http.snapshots import Snapshots, lines
from gateway.http.usage import Usage
from gateway.http.waiting import Question, Waiting
from gateway.http.writes import Writes

IDEMPOTENCY_KEY_CHARACTERS_MAX = 64
READINESS = "/readyz"
# A request that comes while the process starts waits so long: a client that lost its connection to the process before
# would get 500 on every attempt until the database is open. Within the deadline of every operation.
OPENS_SECONDS_MAX = 4.0

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
_EXPIRED = "This API key expired on {}; stop retrying and ask an administrator for a new one."
_INACTIVE = (
    403,
    "company_inactive",
    "The company account of this key is inactive; have it activated before you try again.",
)
_NDJSON = b"Content-Type: application/x-ndjson\r\n"
_SUPERSEDED = b"Service-Wait: superseded\r\n"
_LIMIT_POLICY = f'RateLimit-Policy: "key";q={REQUESTS_A_MINUTE};w={WINDOW_SECONDS}\r\n'


class Edge:
    """Answers the requests of all connections."""

    def __init__(
        self,
        keys: Keys,
        limits: Limits,
        cursors: Cursors,
        calls: Calls,
        writes: Writes,
        reference: Reference,
        usage: Usage,
        waiting: Waiting,
        snapshots: Snapshots,
        app: App,
        *,
        debug: bool,
    ) -> None:
        self._keys = keys
        self._limits = limits
        self._cursors = cursors
        self._calls = calls
        self._writes = writes
        self._reference = reference
        self._usage = usage
        self._waiting = waiting
        self._snapshots = snapshots
        self._app = app
        self._debug = debug
        self._counters: dict[tuple[str, str, int], Any] = {}
        self._clocks: dict[str, Any] = {}

    async def answer(self, request: Request) -> Reply:
        started = time.perf_counter()
        traces.enter(request.headers.getall(traces.HEADER, ()))
        route = ["unknown"]
        code = ""
        try:
            reply = await self._answer(request, route)
        except Refusal as refusal:
            code = refusal.code
            reply = replies.of_refusal(refusal)
        except BodyBroken as broken:
            code = "invalid_request"
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
        if reply.is_read:
            reply = encoding.encoded(reply, request.headers.getall("Accept-Encoding", ()))
        seconds = time.perf_counter() - started - request.idle_seconds
        self._count(request, route[0], reply.status, seconds)
        if request.caller is not None:
            self._usage.count(request.caller, request, route[0], reply.status, code)
        return reply

    async def _answer(self, request: Request, route: list[str]) -> Reply:
        path, query = request.target()
        if "%" in path:
            path = _decoded(path)
        found = resource_of(path)
        if found is None:
            return self._outside(request, path, route)
        resource, ids = found
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
            return await self._list(operation, caller, ids, query, request.id)
        if operation.kind in ("feed", "snapshot"):
            answer = self._feed if operation.kind == "feed" else self._snapshot
            return await answer(operation, caller, query, request)
        filters.pairs(query, ())
        if operation.kind == "own":
            return replies.read(caller.whoami)
        message = operation.request()
        filters.set_ids(message, operation.ids, ids)
        if operation.kind == "write":
            message.idempotency_key = _idempotency_key(request, operation)
            message.body = await request.body(BODY_BYTES_MAX)
            response = await self._writes.call(operation, message, caller, request.id)
        else:
            response = await self._calls.call(operation, message, caller, request.id)
        return _rendered(operation, response)

    async def _known(self, request: Request) -> Caller:
        """The authenticated caller. Raises Refusal for a missing or ended key, or an inactive company."""
        key = bearer.presented(request.headers.getall("Authorization", ()))
        if key is not None and not self._app.is_open and not await self._app.wait_until_open(OPENS_SECONDS_MAX):
            raise Unavailable("the database is not open yet")
        caller = None if key is None else await self._keys.find(key)
        if caller is None:
            raise ApiError(*_UNAUTHORIZED)
        request.caller = caller
        if caller.revoked:
            raise ApiError(*_REVOKED)
        if caller.expires_at <= time.time():
            ended = time.strftime("%Y-%m-%d at %H:%M:%S UTC", time.gmtime(caller.expires_at))
            raise ApiError(401, "key_revoked", _EXPIRED.format(ended), replies.CHALLENGE)
        if not caller.company_active:
            raise Refusal(*_INACTIVE)
        return caller

    async def _caller(self, request: Request) -> Caller:
        """The authenticated caller, whose request is counted. Raises Refusal as `_known`, and for too many requests."""
        caller = await self._known(request)
        admitted, remaining, reset_seconds = await self._limits.take(caller.api_key_id)
        request.is_known = True
        request.limit_headers = f'RateLimit: "key";r={remaining};t={reset_seconds}\r\n{_LIMIT_POLICY}'.encode()
        if not admitted:
            raise ApiError(
                429,
                "rate_limited",
                f"This key's {REQUESTS_A_MINUTE} requests a minute are used up; wait for Retry-After seconds.",
                f"Retry-After: {reset_seconds}\r\n".encode(),
            )
        return caller

    async def _list(
        self, operation: Operation, caller: Caller, ids: tuple[str, ...], query: str, request_id: str
    ) -> Reply:
        message = operation.request()
        filters.set_ids(message, operation.ids, ids)
        path = operation.route.path
        for name in operation.ids:
            path = path.replace(f"{{{name}}}", str(getattr(message, name)))
        given, bound_to = _asked(operation, path, caller, query, message)
        if (cursor := given.get("cursor")) is not None:
            find = self._cursors.position if operation.is_by_position else self._cursors.after_id
            found = find(cursor, bound_to)
            if found is None:
                raise _no_cursor()
            setattr(message, "position" if operation.is_by_position else "after_id", found)
        page = (await self._calls.call(operation, message, caller, request_id)).page
        following = b"null"
        if page.HasField("next_after_id"):
            following = b'"%b"' % self._cursors.issue(page.next_after_id, bound_to).encode()
        elif page.next_position:
            following = b'"%b"' % self._cursors.issue_at(page.next_position, bound_to).encode()
        return replies.read(b'{"data":%b,"next_cursor":%b,"limit":%d}' % (page.data, following, message.limit))

    async def _feed(self, operation: Operation, caller: Caller, query: str, request: Request) -> Reply:
        message = operation.request()
        path = operation.route.path
        given, bound_to = _asked(operation, path, caller, query, message)
        seconds = filters.wait(given.get("wait"))
        if (cursor := given.get("cursor")) is not None:
            position = self._cursors.position(cursor, bound_to)
            if position is None:
                raise _no_cursor()
            message.position = position
        ask = functools.partial(self._calls.call, operation, message, caller, request.id)
        headers = b""
        if seconds:
            same = operation.rpc_path, message.SerializeToString(deterministic=True)
            question = Question(operation.service, caller.identity.company_id, same, ask, _is_news)
            awaited = await self._waiting.answer(request, f"{caller.api_key_id}:{path}", seconds, question)
            response = awaited.answer
            headers = _SUPERSEDED if awaited.is_superseded else b""
            await self._known(request)  # the key may have ended meanwhile
        else:
            response = await ask()
        feed = response.feed
        resume = b'"%b"' % self._cursors.issue_at(feed.position, bound_to).encode()
        return replies.read(
            b'{"data":[%b],%b"next_cursor":%b,"resume_cursor":%b,"limit":%d}'
            % (
                b",".join(feed.documents),
                b'"positions":[%b],' % ",".join(map(str, response.positions)).encode()
                if operation.has_positions
                else b"",
                resume if feed.more else b"null",
                resume,
                message.limit,
            ),
            headers,
        )

    async def _snapshot(self, operation: Operation, caller: Caller, query: str, request: Request) -> Reply:
        given = filters.pairs(query, operation.allowed_query)
        after = {name: filters.after_id(name, text) for name, text in given.items()}
        if len(after) not in (0, len(operation.allowed_query)):
            raise invalid_request(f"{' and '.join(operation.allowed_query)} go together; give both.")
        message = operation.request(limit=filters.LIMIT_MAX, **after)
        ask = functools.partial(self._calls.call, operation, message, caller, request.id)

        async def following(answer: Any) -> Any:
            if not answer.page.HasField("next_after_id"):
                return None
            await self._known(request)  # the key may have ended meanwhile
            for name in operation.allowed_query:
                source = answer.page if name == AFTER_ID else answer
                setattr(message, name, getattr(source, f"next_{name}"))
            return await ask()

        is_compressed, _ = encoding.accepted(request.headers.getall("Accept-Encoding", ()))
        headers = _NDJSON + (encoding.GZIP if is_compressed else encoding.VARY)
        async with self._snapshots.place(caller.identity.company_id, operation.route.path) as place:
            if not any(after.values()):
                headers += await self._resume_cursor(operation, caller, request.id)
            pieces = lines(await ask(), following, is_compressed=is_compressed)
            try:
                await place.stream(request, Reply(200, b"", headers), pieces)
            except ConnectionError as error:
                log.info("snapshot_broken_off", request_id=request.id, reason=str(error) or type(error).__name__)
        return Reply(200, b"")  # which is sent already

    async def _resume_cursor(self, operation: Operation, caller: Caller, request_id: str) -> bytes:
        """The header with the cursor at which the changes since now begin."""
        changes = operation_at("GET", operation.route.path.replace(SNAPSHOTS, CHANGES))
        now = await self._calls.call(changes, changes.request(from_now=True), caller, request_id)
        cursor = self._cursors.issue_at(now.feed.position, _bound_to(changes.route.path, caller, {}))
        return f"Service-Resume-Cursor: {cursor}\r\n".encode()

    def _outside(self, request: Request, path: str, route: list[str]) -> Reply:
        """Paths outside the namespace: the pages for people, liveness and readiness. Nothing that is away makes a
        gateway unready once it has started: it would be away for all gateways, and callers would get no envelope."""
        page = self._reference.pages.get(path)
        if page is not None:
            if request.method not in ("GET", "HEAD"):
                _refuse_verb("GET, HEAD")
            route[0] = path
            return page
        if path not in ("/healthz", READINESS):
            raise Refusal(404, "not_found", "There is nothing at this path; check it against the API's reference.")
        if request.method != "GET":
            _refuse_verb("GET")
        route[0] = path
        if path == "/healthz" or self._app.is_ready:
            return json(b'{"status":"ok"}')
        return json(b'{"status":"not ready"}', 503)

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
        is_fault = status >= 500 and route != READINESS
        if self._debug or is_fault:
            log.log(
                logging.ERROR if is_fault else logging.DEBUG,
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
        return replies.read(response.document.json)
    if operation.kind == "delete":
        return replies.NO_CONTENT
    reply = response.reply
    return json(reply.body, reply.status, b"X-Idempotent-Replay: 1\r\n" if reply.replayed else b"")


def _is_news(answer: Any) -> bool:
    return bool(answer.feed.documents) or answer.feed.more


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


def _asked(operation: Operation, path: str, caller: Caller, query: str, message: Any) -> tuple[dict[str, str], bytes]:
    """Sets limit and filters in the request of a list or a feed. Returns the query's values by key, and what a cursor
    is bound to: see `_bound_to`. Raises Refusal."""
    given = filters.pairs(query, operation.allowed_query, operation.may_be_empty)
    message.limit = filters.limit(given.get("limit"))
    found = filters.read_filters(operation.filters, given)
    for name, value in found.items():
        if isinstance(value, int):
            setattr(message, name, value)
        else:
            getattr(message, name).CopyFrom(value)
    return given, _bound_to(path, caller, found)


def _no_cursor() -> Refusal:
    return Refusal(
        400,
        "invalid_cursor",
        "cursor was not issued for this list with these filters; start again without a cursor.",
    )


def _bound_to(path: str, caller: Caller, found: dict[str, Any]) -> bytes:
    """What a cursor is bound to. path: of the list, with the id of the record that owns it."""
    return f"{caller.identity.company_id} {path}?{filters.canonical(found)}".encode()
