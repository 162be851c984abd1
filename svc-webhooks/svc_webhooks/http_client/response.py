"""Parses one HTTP/1.1 response as it arrives: status, an excerpt of the body, and whether the connection is reusable.

A receiver that sends a 2xx has accepted the delivery. Nothing that follows revokes that (two lengths, a body that a 204
may not have, a malformed chunk, bytes after the end); it only ends the connection.
"""

from __future__ import annotations

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

EXCERPT_BYTES_MAX = 4096
HEAD_BYTES_MAX = 65536  # of the status line and headers, interim responses included
DRAIN_BYTES_MAX = 65536  # a connection with a longer body is dropped, not drained and reused

SWITCHING_PROTOCOLS = 101


class Malformed(Exception):  # noqa: N818 - the receiver's fault
    """The bytes are no head of a response, or the head has no end."""


class Response:
    """The response to one request; made anew for each."""

    __slots__ = ("_body_bytes", "_head_bytes", "_parser", "_status_said", "ended", "excerpt", "reusable", "status")

    def __init__(self) -> None:
        self.status: int | None = None
        """None until the head is complete, or turns out to be malformed after its first line."""
        self.ended = False
        """True once no more is read: the response is complete, broken after its head, or longer than DRAIN_BYTES_MAX.
        """
        self.reusable = False
        """Whether the connection may serve another request."""
        self.excerpt = bytearray()
        self._head_bytes = 0
        self._body_bytes = 0
        self._status_said = False
        self._parser = HttpResponseParser(self)
        # Accepts deviations that browsers and other clients accept. They could at most confuse the responses of one
        # connection, never those of two receivers.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def feed(self, data: bytes) -> None:
        """Parses bytes, cut anywhere. Raises Malformed while there is no status."""
        if self.ended:
            if data.strip(b"\r\n"):  # blank lines are left out, as the parser does in the same piece
                self.reusable = False
            return
        counted = self.status is not None
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            if self._status_said:
                self.on_headers_complete()
            if self.status is None:
                raise Malformed from None
            self._end(reusable=False)
        if self.status is None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                raise Malformed
        elif counted:
            self._body_bytes += len(data)
        if self._body_bytes > DRAIN_BYTES_MAX and not self.ended:
            self._end(reusable=False)

    def closed(self) -> None:
        """Called when the receiver closes the connection, which ends a body without a length or cuts off one with a
        length."""
        if self.status is not None:
            self._end(reusable=False)

    def _end(self, *, reusable: bool) -> None:
        self.ended, self.reusable = True, reusable

    # Called by the parser

    def on_message_begin(self) -> None:
        self._status_said = False
        if self.ended:  # another, unsolicited response in the same bytes
            self.reusable = False

    def on_status(self, _reason: bytes) -> None:
        self._status_said = True

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self.status is None and (status >= 200 or status == SWITCHING_PROTOCOLS):
            self.status = status

    def on_body(self, body: bytes) -> None:
        if not self.ended and len(self.excerpt) < EXCERPT_BYTES_MAX:
            self.excerpt += body[: EXCERPT_BYTES_MAX - len(self.excerpt)]

    def on_message_complete(self) -> None:
        if self.status is not None and not self.ended:
            self._end(reusable=self._parser.should_keep_alive() and self.status != SWITCHING_PROTOCOLS)
