"""All records of one kind in one answer, a line each."""

from __future__ import annotations

import functools
from typing import Any

import structlog

from chassis.http.replies import Reply
from chassis.refusals import invalid_request
from gateway.http import encoding, filters
from gateway.http.admission import Admission
from gateway.http.answers.pages import bound_to
from gateway.http.answers.requests import ApiRequest
from gateway.http.calls import Calls
from gateway.http.cursors import Cursors
from gateway.http.routes import AFTER_ID, CHANGES, SNAPSHOTS, operation_at
from gateway.http.snapshots import Snapshots, lines

_NDJSON = b"Content-Type: application/x-ndjson\r\n"

log = structlog.stdlib.get_logger(__name__)


class SnapshotStreams:
    """The snapshots of all services."""

    def __init__(self, calls: Calls, cursors: Cursors, snapshots: Snapshots, admission: Admission) -> None:
        self._calls = calls
        self._cursors = cursors
        self._snapshots = snapshots
        self._admission = admission

    async def answer(self, request: ApiRequest) -> Reply:
        """The reply, whose lines are sent already."""
        operation, caller, http = request.operation, request.caller, request.http
        texts = filters.pairs(request.query, operation.allowed_query)
        after = {name: filters.after_id(name, text) for name, text in texts.items()}
        if len(after) not in (0, len(operation.allowed_query)):
            raise invalid_request(f"{' and '.join(operation.allowed_query)} go together; give both.")
        message = operation.request(limit=filters.LIMIT_MAX, **after)
        ask = functools.partial(self._calls.call, operation, message, caller, http.id)

        async def following(response: Any) -> Any:
            if not response.page.HasField("next_after_id"):
                return None
            await self._admission.active_caller(http)  # the key may have ended meanwhile
            for name in operation.allowed_query:
                source = response.page if name == AFTER_ID else response
                setattr(message, name, getattr(source, f"next_{name}"))
            return await ask()

        is_compressed, _ = encoding.accepted(http.headers.getall("Accept-Encoding", ()))
        headers = _NDJSON + (encoding.GZIP if is_compressed else encoding.VARY)
        async with self._snapshots.begin(caller.identity.company_id, operation.route.path) as snapshot:
            if not any(after.values()):
                headers += await self._resume_cursor(request)
            pieces = lines(await ask(), following, is_compressed=is_compressed)
            try:
                await snapshot.stream(http, Reply(200, b"", headers), pieces)
            except ConnectionError as error:
                log.info("snapshot_broken_off", request_id=http.id, reason=str(error) or type(error).__name__)
        return Reply(200, b"")

    async def _resume_cursor(self, request: ApiRequest) -> bytes:
        """The header with the cursor at which the changes since now begin."""
        changes = operation_at("GET", request.operation.route.path.replace(SNAPSHOTS, CHANGES))
        now = await self._calls.call(changes, changes.request(from_now=True), request.caller, request.http.id)
        cursor = self._cursors.issue_at(now.feed.position, bound_to(changes.route.path, request.caller, {}))
        return f"Service-Resume-Cursor: {cursor}\r\n".encode()
