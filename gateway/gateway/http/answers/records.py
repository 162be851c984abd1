"""One record, one write, and the caller itself."""

from __future__ import annotations

from typing import Any

from chassis.http.replies import Reply, json
from chassis.http.requests import Request
from chassis.records.bodies import BODY_BYTES_MAX
from chassis.refusals import Refusal, invalid_request
from gateway.http import filters, replies
from gateway.http.answers.requests import ApiRequest
from gateway.http.calls import Calls
from gateway.http.routes import Operation
from gateway.http.writes import Writes

IDEMPOTENCY_KEY_CHARACTERS_MAX = 64
_REPLAYED = b"X-Idempotent-Replay: 1\r\n"


class Records:
    """The operations that are about one record."""

    def __init__(self, calls: Calls, writes: Writes) -> None:
        self._calls = calls
        self._writes = writes

    async def whoami(self, request: ApiRequest) -> Reply:
        filters.pairs(request.query, ())
        return replies.read(request.caller.whoami)

    async def fetch(self, request: ApiRequest) -> Reply:
        response = await self._calls.call(request.operation, _message(request), request.caller, request.http.id)
        return replies.read(response.document.json)

    async def report(self, request: ApiRequest) -> Reply:
        operation = request.operation
        texts = filters.pairs(request.query, operation.allowed_query, operation.may_be_empty)
        message = operation.request(**filters.read_filters(operation.filters, texts))
        response = await self._calls.call(operation, message, request.caller, request.http.id)
        return replies.read(response.document.json)

    async def delete(self, request: ApiRequest) -> Reply:
        await self._calls.call(request.operation, _message(request), request.caller, request.http.id)
        return replies.NO_CONTENT

    async def write(self, request: ApiRequest) -> Reply:
        message = _message(request)
        message.idempotency_key = _idempotency_key(request.http, request.operation)
        message.body = body = await request.http.body(BODY_BYTES_MAX)
        if request.caller.identity.is_sandbox:
            request.http.logged_body = body
        reply = (await self._writes.call(request.operation, message, request.caller, request.http.id)).reply
        return json(reply.body, reply.status, _REPLAYED if reply.replayed else b"")


def _message(request: ApiRequest) -> Any:
    """The RPC's request, with the ids of the path. Raises Refusal for a query."""
    filters.pairs(request.query, ())
    message = request.operation.request()
    filters.set_ids(message, request.operation.ids, request.ids)
    return message


def _idempotency_key(request: Request, operation: Operation) -> str:
    """Raises Refusal."""
    keys = request.headers.getall("Idempotency-Key", ())
    if not keys or keys == [""]:
        raise Refusal(400, "idempotency_key_required", operation.route.key_sentence)
    if len(keys) > 1:
        raise invalid_request("Idempotency-Key is given more than once; send it once.")
    key: str = keys[0]
    if len(key) > IDEMPOTENCY_KEY_CHARACTERS_MAX or not (key.isascii() and key.isprintable()):
        raise invalid_request(
            f"Idempotency-Key must be 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} printable ASCII characters."
        )
    return key
