"""Pages of a list (spec 4.12)."""

from __future__ import annotations

from chassis.http.replies import Reply
from gateway.http import replies
from gateway.http.answers.pages import no_cursor, page_request
from gateway.http.answers.requests import ApiRequest
from gateway.http.calls import Calls
from gateway.http.cursors import Cursors


class Lists:
    """The lists of all services."""

    def __init__(self, calls: Calls, cursors: Cursors) -> None:
        self._calls = calls
        self._cursors = cursors

    async def answer(self, request: ApiRequest) -> Reply:
        operation = request.operation
        message, texts, bound_to = page_request(request)
        if (cursor := texts.get("cursor")) is not None:
            start = self._start(cursor, bound_to, is_by_position=operation.is_by_position)
            setattr(message, "position" if operation.is_by_position else "after_id", start)
        page = (await self._calls.call(operation, message, request.caller, request.http.id)).page
        following = b"null"
        if page.HasField("next_after_id"):
            following = b'"%b"' % self._cursors.issue(page.next_after_id, bound_to).encode()
        elif page.next_position:
            following = b'"%b"' % self._cursors.issue_at(page.next_position, bound_to).encode()
        return replies.read(b'{"data":%b,"next_cursor":%b,"limit":%d}' % (page.data, following, message.limit))

    def _start(self, cursor: str, bound_to: bytes, *, is_by_position: bool) -> bytes | int:
        """The position or the id after which the page begins. Raises Refusal."""
        find = self._cursors.position if is_by_position else self._cursors.after_id
        start = find(cursor, bound_to)
        if start is None:
            raise no_cursor()
        return start
