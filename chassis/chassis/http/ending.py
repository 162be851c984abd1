"""The end of a connection: a close that does not reset it before its last answer has arrived."""

from __future__ import annotations

import asyncio

from chassis.http import deadlines, replies
from chassis.http.course import Course, State
from chassis.http.deadlines import Deadline
from chassis.http.replies import ErrorReplies, Reply
from chassis.http.requests import new_id

SKIPPED_BYTES_MAX = 1024 * 1024


class End:
    """How one connection ends. After its last answer it lingers: it reads until its client closes, and drops what it
    reads. Bytes left unread would reset it before the answer has arrived."""

    __slots__ = ("_course", "_deadline", "_errors", "_lingers", "_loop", "_skipped")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, course: Course, deadline: Deadline, errors: ErrorReplies
    ) -> None:
        self._loop, self._course, self._deadline, self._errors = loop, course, deadline, errors
        self._lingers: asyncio.Future[None] | None = None
        """Done when the client has closed after the last answer, or when its time is over."""
        self._skipped = 0

    def refuse(self, reason: str) -> None:
        """Answers bytes that are no request, and lingers."""
        transport = self._course.transport
        if transport is not None and not transport.is_closing():
            transport.write(last(self._errors.malformed(reason))[0])
            self.linger()

    def linger(self) -> None:
        """Closes so that the last answer arrives."""
        transport = self._course.transport
        if transport is None or transport.is_closing():
            self._course.state = State.CLOSED
            return
        if self._course.has_half_closed or not transport.can_write_eof():
            self._course.state = State.CLOSED
            self.close()
            return
        self._course.state = State.LINGERING
        self._lingers = self._loop.create_future()
        transport.write_eof()
        transport.resume_reading()
        self._deadline.set(deadlines.LINGER_SECONDS, self.close)

    async def wait(self) -> None:
        """Waits while it lingers."""
        if self._lingers is not None:
            await self._lingers

    def skip(self, size: int) -> None:
        """Drops bytes that have arrived."""
        self._skipped += size
        if self._skipped > SKIPPED_BYTES_MAX:
            self.close()

    def close(self) -> None:
        """Closes when the client has read what was sent, or after UNREAD_SECONDS.

        With TLS a close waits for the client's too. Once nothing is left to send it waits for LINGER_SECONDS only.
        """
        if self._course.state is not State.ANSWERING:  # else the request under way is still to be evicted or aborted
            self._course.state = State.CLOSED
        self.lost()
        wire, transport = self._course.wire, self._course.transport
        if wire is not None and transport is not None:
            seconds = deadlines.UNREAD_SECONDS if transport.get_write_buffer_size() else deadlines.LINGER_SECONDS
            if self._course.was_evicted:
                seconds = deadlines.EVICTION_SECONDS
            self._deadline.set(seconds, transport.abort)
            wire.force_close()

    def evict(self) -> None:
        """Ends a connection without a request to answer at once."""
        transport = self._course.transport
        if transport is not None and not transport.get_write_buffer_size():
            transport.abort()  # a close would wait for the client's, with all its buffers
        else:
            self.close()

    def lost(self) -> None:
        """The client has closed."""
        if self._lingers is not None and not self._lingers.done():
            self._lingers.set_result(None)


def last(reply: Reply) -> tuple[bytes, bytes]:
    """The last answer of a connection, to no request in particular. See `replies.raw`."""
    return replies.raw(reply, new_id(), b"Connection: close\r\n")
