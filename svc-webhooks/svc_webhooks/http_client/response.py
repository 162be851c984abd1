"""One HTTP/1.1 response as it comes in: its status, an excerpt of its body, and whether the connection can be kept.

A receiver that has said 2xx has accepted the delivery. Whatever follows (two lengths, a body that a 204 may not have, a
malformed chunk, bytes of nobody's) takes that back no more: it only ends the connection.
"""

from __future__ import annotations

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

EXCERPT_BYTES_MAX = 4096
HEAD_BYTES_MAX = 65536  # of the status line and headers, interim responses included
DRAIN_BYTES_MAX = 65536  # beyond it a connection is dropped, not read to its end and kept

SWITCHING_PROTOCOLS = 101


class Malformed(Exception):  # noqa: N818 - the receiver's fault
    """What came is no head of a response, or one without end."""


class Response:
    """The answer to one request; made anew for each."""

    __slots__ = ("_body_bytes", "_head_bytes", "_parser", "_status_said", "ended", "excerpt", "reusable", "status")

    def __init__(self) -> None:
        self.status: int | None = None
        """None until the head is there as a whole, or turns out to be malformed after its first line."""
        self.ended = False
        """Nothing more is read: the response is complete, broken after its head, or longer than what is read."""
        self.reusable = False
        """Whether the connection may serve another request."""
        self.excerpt = bytearray()
        self._head_bytes = 0
        self._body_bytes = 0
        self._status_said = False
        self._parser = HttpResponseParser(self)
        # What browsers and clients put up with in responses. It can mix up one connection's responses, never two
        # receivers'.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def feed(self, data: bytes) -> None:
        """Takes in what came, cut anywhere. Raises Malformed as long as there is no status."""
        if self.ended:
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
        """The receiver has closed the connection: the end of a body without a length, or of one that is cut off."""
        if self.status is not None:
            self._end(reusable=False)

    def _end(self, *, reusable: bool) -> None:
        self.ended, self.reusable = True, reusable

    # Called by the parser

    def on_message_begin(self) -> None:
        self._status_said = False
        if self.ended:  # another response, unasked for, in the same piece
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
