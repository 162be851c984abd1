"""The bytes that a client sends: aiohttp's parser gets one request at a time, and the rest waits here."""

from __future__ import annotations

import asyncio

from chassis.http import deadlines
from chassis.http.bodies import Body
from chassis.http.course import Course, State
from chassis.http.deadlines import Deadline
from chassis.http.ending import End
from chassis.http.framing import MalformedChunks
from chassis.http.heads import Head, MalformedHead
from chassis.http.holder import Holder

# How far aiohttp reads ahead of the body's reader, and a transport takes in ahead of its client.
READ_AHEAD_BYTES = 32 * 1024

_BETWEEN = (State.IDLE, State.HEAD, State.SKIPPING)


class Intake:
    """Heads and bodies of one connection on their way to the parser."""

    __slots__ = ("_ahead", "_body", "_course", "_deadline", "_end", "_head", "_holder", "_loop", "is_full")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        course: Course,
        deadline: Deadline,
        holder: Holder,
        body: Body,
        end: End,
    ) -> None:
        self._loop, self._course, self._deadline, self._holder = loop, course, deadline, holder
        self._head, self._body, self._end = Head(), body, end
        self._ahead = b""
        """What the client sent ahead. While there is any, the connection reads nothing."""
        self.is_full = False
        """aiohttp takes no more of the body until some of it is read."""

    def take(self, data: bytes) -> None:
        """Gives the parser what it may have now, and holds the rest."""
        while data and not self._body.broken:
            if self._ahead or self.is_full:
                self._hold(data)
                return
            if self._body.is_arriving:
                data = self._take_body(data)
            elif self._course.state in _BETWEEN:
                data = self._take_head(data)
            else:
                self._hold(data)
                return

    def _take_head(self, data: bytes) -> bytes:
        """Takes the next bytes of a head, and hands it to the parser when it is whole. Returns the bytes behind it."""
        has_begun = self._head.size > 0
        try:
            whole = self._head.take(data)
        except MalformedHead as malformed:
            self.refuse(str(malformed))
            return b""
        if whole is None:
            if not has_begun and self._head.size:
                self._course.state = State.HEAD
                self._deadline.set(deadlines.HEAD_SECONDS, self._head_is_late)
            self._holder.count(self._head.size)
            return b""
        self._course.state = State.ANSWERING
        self._deadline.clear()
        self._holder.count_parsed(whole.size)
        self._feed(whole.head)
        return whole.following

    def _take_body(self, data: bytes) -> bytes:
        """Hands the next bytes of a body to the parser. Returns the bytes behind it."""
        try:
            size = self._body.take(data)
        except MalformedChunks:
            self.break_body("its chunks are malformed")
            return b""
        if self._course.state is State.ANSWERING:
            self._holder.count(self._body.size)
        if not self._body.broken:
            self._feed(data[:size])
        return data[size:]

    def _feed(self, data: bytes) -> None:
        if self._course.wire is not None:
            self._course.wire.feed(data)

    def _hold(self, data: bytes) -> None:
        self._ahead += data
        self._holder.count(self._body.size + len(self._ahead))
        if len(self._ahead) > READ_AHEAD_BYTES:
            self._stop_reading()

    def go_on(self) -> None:
        """Uses the bytes that were held back, as far as they can be used now."""
        if self._course.transport is None or self._course.state is State.LINGERING:
            return
        ahead, self._ahead = self._ahead, b""
        self.take(ahead)
        transport = self._course.transport
        if not self._ahead and not self.is_full and transport is not None:
            transport.resume_reading()
        if self._course.has_half_closed:
            self.end_body()

    @property
    def holds(self) -> bool:
        """Whether the client has sent bytes ahead."""
        return bool(self._ahead)

    def resume(self) -> None:
        """aiohttp takes more of the body: what was held back follows."""
        if self._ahead:
            self._stop_reading()
            self._loop.call_soon(self.go_on)  # later, because the parser itself calls this

    def _stop_reading(self) -> None:
        transport = self._course.transport
        if transport is not None:
            transport.pause_reading()

    # What is not taken

    def end(self) -> None:
        """The client sends no more, and nothing is under way."""
        if self._head.size:
            self.refuse("it ended before its headers did; send it whole")
        else:
            self._end.close()

    def end_body(self) -> None:
        """Breaks a body of which no more can arrive."""
        if self._body.is_arriving and not self._ahead:
            self.break_body("it ended early")

    def break_body(self, reason: str) -> None:
        """Takes no more of the body, and no request after it."""
        self._ahead = b""
        self._course.end_after_answer()
        self._body.break_off(reason)

    def _head_is_late(self) -> None:
        self.refuse("its headers came too slowly; send them at once")

    def refuse(self, reason: str) -> None:
        """Answers bytes that can't be parsed as a request, and takes no more."""
        self.forget()
        self._holder.uncount()
        self._end.refuse(reason)

    def forget(self) -> None:
        """Drops what it holds."""
        self._ahead = b""
        self._head.forget()
