"""Pages of a feed, which may wait for something new."""

from __future__ import annotations

import functools
from typing import Any

from chassis.http.replies import Reply
from gateway.http import filters, replies
from gateway.http.admission import Admission
from gateway.http.answers.pages import no_cursor, page_request
from gateway.http.answers.requests import ApiRequest
from gateway.http.calls import Calls
from gateway.http.cursors import Cursors
from gateway.http.waiting import Question, Waiting

_SUPERSEDED = b"Service-Wait: superseded\r\n"


class Feeds:
    """The feeds of all services."""

    def __init__(self, calls: Calls, cursors: Cursors, waiting: Waiting, admission: Admission) -> None:
        self._calls = calls
        self._cursors = cursors
        self._waiting = waiting
        self._admission = admission

    async def answer(self, request: ApiRequest) -> Reply:
        operation, caller = request.operation, request.caller
        message, texts, bound_to = page_request(request)
        seconds = filters.wait(texts.get("wait"))
        if (cursor := texts.get("cursor")) is not None:
            position = self._cursors.position(cursor, bound_to)
            if position is None:
                raise no_cursor()
            message.position = position
        ask = functools.partial(self._calls.call, operation, message, caller, request.http.id)
        headers = b""
        if seconds:
            same = operation.rpc_path, message.SerializeToString(deterministic=True)
            question = Question(operation.service, caller.identity.company_id, same, ask, _is_news)
            queue = f"{caller.api_key_id}:{operation.route.path}"
            awaited = await self._waiting.answer(request.http, queue, seconds, question)
            response = awaited.answer
            headers = _SUPERSEDED if awaited.is_superseded else b""
            await self._admission.active_caller(request.http)  # the key may have ended meanwhile
        else:
            response = await ask()
        feed = response.feed
        resume = b'"%b"' % self._cursors.issue_at(feed.position, bound_to).encode()
        numbers = b""
        if operation.has_positions:
            numbers = b'"positions":[%b],' % ",".join(map(str, response.positions)).encode()
        following = resume if feed.more else b"null"
        page = b",".join(feed.documents), numbers, following, resume, message.limit
        return replies.read(b'{"data":[%b],%b"next_cursor":%b,"resume_cursor":%b,"limit":%d}' % page, headers)


def _is_news(response: Any) -> bool:
    return bool(response.feed.documents) or response.feed.more
