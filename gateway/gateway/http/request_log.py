"""Logs the answered requests of API keys: appends each to a bounded list in memory, and stores the list every second.

A request neither waits nor fails because of the log. While the database is away, or slower than requests come, up to
WAITING_MAX requests wait; what comes then is not logged, but counted. A part whose answer was lost is sent again and
stored once. A process that is killed loses about a second. The gateway logs what it has a key and an operation for:
paths that do not exist, and verbs that they do not take, are answered before anybody looks for the key.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import hashlib
import re
import time
import uuid
from collections import deque
from collections.abc import Callable
from itertools import islice
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
from gateway.http.limits import REQUESTS_A_MINUTE, WINDOW_SECONDS
from gateway.http.routes import Operation
from gateway.identity.requests import queries, records, rules

PERIOD_SECONDS = 1.0
WAITING_MAX = 10_000
"""Requests that wait in memory: some megabytes."""
# A part's rows are made without a pause: a thousand take about 10 ms.
PART_ROWS_MAX = 1000
AGENT_CHARACTERS_MAX = 200
HASH_BYTES = 8

log = structlog.stdlib.get_logger(__name__)
DROPPED = Counter(
    "makeready_request_log_dropped_total",
    "Requests that were not logged: memory was full, the process stopped, or a key went on far above its limit",
)

# An id, a state or an instant. Anything else in a path or a query may be a person's.
_ID = re.compile(r"[0-9]{1,20}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[-+ ]\d\d:?\d\d)?)?", re.ASCII)
# A reply to a write begins with the record's kind and id.
_RECORD = re.compile(rb'\{"schema_version":1,"entity_type":"([a-z_]+)","entity_id":([0-9]+)')
_RECORD_BYTES = 100


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
    operation: Operation
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


class RequestLog:
    """The requests that are not stored yet."""

    def __init__(self, database: Database, kept: Kept, secret: bytes, clock: Callable[[], float] = time.time) -> None:
        """secret: keys the hashes of what callers sent."""
        self._database = database
        self._kept = kept
        self._clock = clock
        self._hash = functools.partial(_hash, secret[:64])
        self._queries = functools.lru_cache(1024)(self._safe_query)
        self._waiting: deque[Answered] = deque()
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
        """Notes an answered request of a known key. query: as it was sent; field: the one that the refusal names."""
        if not rules.keeps(self._kept, reply.status, request.method):
            return
        is_write = operation.kind == "write"
        headers, caller = request.headers, request.caller
        # Such refusals have no limit of their own: a key that does not wait would fill the disk.
        is_unlimited = reply.status == 429 or not request.limit_headers
        if len(self._waiting) >= WAITING_MAX or (is_unlimited and not self._has_place(caller.api_key_id)):
            DROPPED.inc()
            return
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
            )
        )

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
        while self._part is not None or self._waiting:
            if self._part is None:
                self._part = [self._row(answered) for answered in islice(self._waiting, PART_ROWS_MAX)]
                self._number += 1
                for _ in self._part:
                    self._waiting.popleft()
            try:
                await queries.store(self._database, self._writer, self._number, self._part)
            except asyncpg.CheckViolationError as error:
                raise DatabaseUnavailable("the day's partition is not made yet") from error
            except asyncpg.PostgresError:  # the same part would fail again
                log.exception("requests_not_logged", requests=len(self._part))
                DROPPED.inc(len(self._part))
            self._part = None

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
        details = records.Details(
            tuple([text if _ID.fullmatch(text) else self._hash(text) for text in answered.ids]),
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
            operation.route.path,
            answered.status,
            error.code,
            records.encode(details).decode(),
        )

    def _safe_query(self, operation: Operation, query: str) -> str:
        """The query without what may be a person's: a value that is no id, state or instant, and a name that the
        operation does not take."""
        filters = {query_filter.name: query_filter for query_filter in operation.filters}
        pairs = []
        for name, value in parse_qsl(query[:2000], keep_blank_values=True):
            if name not in operation.allowed_query:
                pairs.append(f"{self._hash(name)}={self._hash(value)}")
                continue
            query_filter = filters.get(name)
            is_safe = value in ("true", "false") or (query_filter is not None and value in query_filter.labels)
            if query_filter is None or not query_filter.is_text:
                is_safe = is_safe or bool(_ID.fullmatch(value) or _INSTANT.fullmatch(value))
            pairs.append(f"{name}={value if is_safe else self._hash(value)}")
        return "&".join(pairs)


def _error(body: bytes) -> _Error:
    """What the caller was told."""
    try:
        return _envelope(body).error
    except msgspec.DecodeError:
        return _Error()


def _hash(secret: bytes, text: str) -> str:
    """A mark that is the same for the same text, and does not tell it."""
    return "~" + hashlib.blake2b(text.encode(errors="replace"), digest_size=HASH_BYTES, key=secret).hexdigest()
