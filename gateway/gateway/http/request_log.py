"""Logs the answered requests of API keys: appends each to a bounded list in memory, and stores the list every second.

A request neither waits nor fails because of the log. While the database is away, or slower than requests come, up to
WAITING_MAX requests wait; what comes then is not logged, but counted. A part whose answer was lost is sent again and
stored once. A process that is killed loses about a second.

Paths that do not exist, and verbs that they do not take, are answered before anybody looks for the key: the log looks
for it before it stores them.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import hashlib
import re
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import asyncpg
import msgspec
import structlog
from prometheus_client import Counter

from chassis.db.database import Database, DatabaseUnavailable
from chassis.http.replies import Reply
from chassis.http.requests import Request
from chassis.runtime import traces
from gateway.config import RequestLog as Kept
from gateway.http import bearer
from gateway.http.bearer import Caller
from gateway.http.limits import REQUESTS_A_MINUTE, WINDOW_SECONDS
from gateway.http.logged_bodies import READ_BYTES_MAX, LoggedBodies
from gateway.http.routes import PREFIX, ROUTES, Operation, resource_of
from gateway.identity.requests import queries, records, rules

PERIOD_SECONDS = 1.0
WAITING_MAX = 10_000
"""Requests that wait in memory: some megabytes."""
BODIES_BYTES_MAX = 8 * 1024 * 1024
"""Bodies of sandboxes that wait in memory. What comes then is logged without them."""
CALLERLESS_MAX = 1000
"""Requests without an operation that wait for their key to be looked for. What comes then is not logged."""
# A part's rows are made without a pause: a thousand take about 10 ms, and so do the bodies.
PART_ROWS_MAX, PART_BODIES_BYTES_MAX = 1000, READ_BYTES_MAX
AGENT_CHARACTERS_MAX, PATH_CHARACTERS_MAX = 200, 200
HASH_BYTES = 8

log = structlog.stdlib.get_logger(__name__)
DROPPED = Counter(
    "makeready_request_log_dropped_total",
    "Requests that were not logged: memory was full, the process stopped, or a key went on far above its limit",
)

# An id, a state or an instant. Anything else in a path or a query may be a person's.
_ID = re.compile(r"[0-9]{1,20}|[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[-+ ]\d\d:?\d\d)?)?", re.ASCII)
# A reply to a write begins with the record's kind and id.
_RECORD = re.compile(rb'\{"schema_version":1,"entity_type":"([a-z_]+)","entity_id":([0-9]+)')
_RECORD_BYTES = 100


# What the segments of paths may be besides ids.
_SEGMENTS = frozenset("/".join((PREFIX, *(route.path for route in ROUTES))).split("/"))
# The log's own answers have nothing that is not in it.
_OWN = "/requests"


class _Error(msgspec.Struct):
    code: str = ""
    message: str = ""


class _Envelope(msgspec.Struct):
    error: _Error


_envelope = msgspec.json.Decoder(_Envelope).decode


class Answered(NamedTuple):
    """An answered request, as it waits in memory."""

    requested_at: float
    api_key_id: int
    company_id: int
    request_id: str
    method: str
    operation: Operation | None
    """None if there is none: `ids` then has the path alone."""
    ids: tuple[str, ...]
    query: str
    field: str
    status: int
    seconds: float
    bytes_in: str
    bytes_out: int
    reply_begins: bytes
    """Of an error the whole body."""
    is_replay: bool
    address: str
    user_agent: str
    idempotency_key: str
    traceparent: str
    request_body: bytes = b""
    """In a sandbox, and so is the next one."""
    response_body: bytes = b""

    @property
    def bodies_bytes(self) -> int:
        return len(self.request_body) + len(self.response_body)


class _Callerless(NamedTuple):
    """An answered request without an operation, whose key was not looked for."""

    key: str
    answered: Answered


class RequestLog:
    """The requests that are not stored yet."""

    def __init__(
        self,
        database: Database,
        kept: Kept,
        secret: bytes,
        document: bytes,
        find: Callable[[str], Awaitable[Caller | None]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """secret: keys the hashes of what callers sent; document: the OpenAPI document; find: finds a key's caller."""
        self._database = database
        self._find = find
        self._kept = kept
        self._clock = clock
        self._hash = functools.partial(_hash, secret[:64])
        self._bodies = LoggedBodies(document, self._hash)
        self._queries = functools.lru_cache(1024)(self._safe_query)
        self._waiting: deque[Answered] = deque()
        self._bodies_bytes = 0
        """Of those that wait."""
        self._callerless: deque[_Callerless] = deque()
        self._writer = uuid.uuid4()
        self._number = 0
        self._unlimited: dict[int, int] = {}
        """How many requests beside the limit each key had since the minute began."""
        self._minute = 0
        self._part: list[tuple[Any, ...]] | None = None
        """The rows that are being stored, or of which it is not known whether they were."""

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(
        self,
        request: Request,
        operation: Operation,
        ids: tuple[str, ...],
        query: str,
        reply: Reply,
        field: str,
        seconds: float,
    ) -> None:
        """Notes an answered request of a known key. query: as it was sent; reply: before it was compressed; field: the
        one that the refusal names."""
        if not rules.keeps(self._kept, reply.status, request.method):
            return
        is_write = operation.kind == "write"
        headers, caller = request.headers, request.caller
        # Such refusals have no limit of their own: a key that does not wait would fill the disk.
        is_unlimited = reply.status == 429 or not request.limit_headers
        if len(self._waiting) >= WAITING_MAX or (is_unlimited and not self._has_place(caller.api_key_id)):
            DROPPED.inc()
            return
        sent = answer = b""
        if caller.identity.is_sandbox and not operation.route.path.startswith(_OWN):
            sent, answer = self._kept_bodies(request.logged_body, reply.body)
        self._waiting.append(
            Answered(
                self._clock() - seconds - request.idle_seconds,
                caller.api_key_id,
                caller.identity.company_id,
                request.id,
                request.method,
                operation,
                ids,
                query,
                field,
                reply.status,
                seconds,
                headers.get("Content-Length", "") if is_write else "",
                len(reply.body),
                reply.body if reply.status >= 400 else reply.body[:_RECORD_BYTES] if is_write else b"",
                is_write and b"X-Idempotent-Replay" in reply.headers,
                request.address,
                headers.get("User-Agent", ""),
                headers.get("Idempotency-Key", "") if is_write else "",
                traces.current(),
                sent,
                answer,
            )
        )

    def _kept_bodies(self, *bodies: bytes) -> Sequence[bytes]:
        """The bodies, if there is memory for them. Of one that is too long to be read a byte more than that is kept."""
        bodies = tuple(body[: READ_BYTES_MAX + 1] for body in bodies)
        size = sum(map(len, bodies))
        if self._bodies_bytes + size > BODIES_BYTES_MAX:
            return b"", b""
        self._bodies_bytes += size
        return bodies

    def add_without_operation(self, request: Request, path: str, query: str, reply: Reply, seconds: float) -> None:
        """Notes the refusal of a path that does not exist or does not take the verb, if the request has a key."""
        key = bearer.presented(request.headers.getall("Authorization", ()))
        if key is None or not rules.keeps(self._kept, reply.status, request.method):
            return
        if len(self._callerless) >= CALLERLESS_MAX:
            DROPPED.inc()
            return
        answered = Answered(
            self._clock() - seconds, 0, 0, request.id, request.method, None, (path,), query, "", reply.status, seconds,
            "", len(reply.body), reply.body, False, request.address, request.headers.get("User-Agent", ""), "",
            traces.current(),
        )  # fmt: skip
        self._callerless.append(_Callerless(key, answered))

    async def _find_callers(self) -> None:
        """Lets the requests without an operation wait with the others, if their keys exist. Gives up after a second:
        the others do not wait for that."""
        with contextlib.suppress(TimeoutError, DatabaseUnavailable):
            async with asyncio.timeout(PERIOD_SECONDS):
                while self._callerless:
                    key, answered = self._callerless[0]
                    caller = await self._find(key)
                    self._callerless.popleft()
                    if caller is not None:
                        self._add_of(caller, answered)
        if self._callerless:
            DROPPED.inc(len(self._callerless))
            self._callerless.clear()

    def _add_of(self, caller: Caller, answered: Answered) -> None:
        if len(self._waiting) >= WAITING_MAX or not self._has_place(caller.api_key_id):
            DROPPED.inc()
            return
        company_id = caller.identity.company_id
        self._waiting.append(answered._replace(api_key_id=caller.api_key_id, company_id=company_id))

    def _has_place(self, api_key_id: int) -> bool:
        """Whether one more request of the key that the limit does not bound is logged in this minute."""
        minute = int(self._clock()) // WINDOW_SECONDS
        if minute != self._minute:
            self._minute = minute
            self._unlimited.clear()
        count = self._unlimited[api_key_id] = self._unlimited.get(api_key_id, 0) + 1
        return count <= REQUESTS_A_MINUTE

    async def run(self) -> None:
        """Stores what was noted every PERIOD_SECONDS, until cancelled. Raises DatabaseUnavailable."""
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            await self.store()

    async def store(self) -> None:
        """Stores all that was noted. Raises DatabaseUnavailable; what is not stored then stays."""
        await self._find_callers()
        while self._part is not None or self._waiting:
            if self._part is None:
                self._part = self._next_part()
                self._number += 1
            try:
                await queries.store(self._database, self._writer, self._number, self._part)
            except asyncpg.CheckViolationError as error:
                raise DatabaseUnavailable("the day's partition is not made yet") from error
            except asyncpg.PostgresError:  # the same part would fail again
                log.exception("requests_not_logged", requests=len(self._part))
                DROPPED.inc(len(self._part))
            self._part = None

    def _next_part(self) -> list[tuple[Any, ...]]:
        part: list[tuple[Any, ...]] = []
        bodies_bytes = 0
        while self._waiting and len(part) < PART_ROWS_MAX and bodies_bytes < PART_BODIES_BYTES_MAX:
            answered = self._waiting.popleft()
            bodies_bytes += answered.bodies_bytes
            part.append(self._row(answered))
        self._bodies_bytes -= bodies_bytes
        return part

    async def stop(self) -> None:
        """Stores what is left before the process ends."""
        try:
            await self.store()
        except DatabaseUnavailable as error:
            lost = len(self._part or ()) + len(self._waiting)
            DROPPED.inc(lost)
            log.warning("requests_not_logged", requests=lost, reason=str(error))

    def _row(self, answered: Answered) -> tuple[Any, ...]:
        record = _RECORD.match(answered.reply_begins)
        error = _error(answered.reply_begins) if answered.status >= 400 else _Error()
        operation = answered.operation
        route, ids = (operation.route.path, answered.ids) if operation is not None else _place(answered.ids[0])
        details = records.Details(
            tuple([text if _ID.fullmatch(text) else self._hash(text) for text in ids])
            if route
            else (self._path(ids[0]),),
            self._queries(operation, answered.query) if answered.query else "",
            error.message,
            answered.field,
            round(answered.seconds * 1000, 1),
            int(answered.bytes_in) if answered.bytes_in.isascii() and answered.bytes_in.isdigit() else 0,
            answered.bytes_out,
            answered.address,
            # A header may be no UTF-8.
            answered.user_agent.encode(errors="replace").decode()[:AGENT_CHARACTERS_MAX],
            self._hash(answered.idempotency_key) if answered.idempotency_key else "",
            answered.is_replay,
            record[1].decode() if record else "",
            int(record[2]) if record else 0,
            traces.id_of(answered.traceparent),
        )
        return (
            answered.company_id,
            answered.api_key_id,
            datetime.datetime.fromtimestamp(answered.requested_at, datetime.UTC),
            answered.request_id,
            answered.method,
            route,
            answered.status,
            error.code,
            records.encode(details).decode(),
            operation and self._bodies.request(operation, answered.request_body),
            operation and self._bodies.answer(operation, answered.status, answered.response_body),
        )

    def _path(self, path: str) -> str:
        """A path that does not exist, without what may be a person's: a segment that no path has, and that is no id."""
        segments = path.removeprefix(PREFIX)[:PATH_CHARACTERS_MAX].split("/")
        return "/".join(text if text in _SEGMENTS or _ID.fullmatch(text) else self._hash(text) for text in segments)

    def _safe_query(self, operation: Operation | None, query: str) -> str:
        """The query without what may be a person's: a value that is no id, state or instant, and a name that the
        operation does not take."""
        filters = {query_filter.name: query_filter for query_filter in operation.filters} if operation else {}
        allowed = operation.allowed_query if operation else ()
        pairs = []
        for name, value in parse_qsl(query[:2000], keep_blank_values=True):
            if name not in allowed:
                pairs.append(f"{self._hash(name)}={self._hash(value)}")
                continue
            query_filter = filters.get(name)
            is_safe = value in ("true", "false") or (query_filter is not None and value in query_filter.labels)
            if query_filter is None or not query_filter.is_text:
                is_safe = is_safe or bool(_ID.fullmatch(value) or _INSTANT.fullmatch(value))
            pairs.append(f"{name}={value if is_safe else self._hash(value)}")
        return "&".join(pairs)


def _place(path: str) -> tuple[str, tuple[str, ...]]:
    """The route and the ids of a path whose verb is refused; of a path that does not exist no route, and the path."""
    place = resource_of(path)
    if place is None:
        return "", (path,)
    resource, ids = place
    return next(iter(resource.operations.values())).route.path, ids


def _error(body: bytes) -> _Error:
    """What the caller was told."""
    try:
        return _envelope(body).error
    except msgspec.DecodeError:
        return _Error()


def _hash(secret: bytes, text: str) -> str:
    """A mark that is the same for the same text, and does not tell it."""
    return "~" + hashlib.blake2b(text.encode(errors="replace"), digest_size=HASH_BYTES, key=secret).hexdigest()
