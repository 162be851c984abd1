"""The head of a request, which goes to aiohttp's parser once all of it has arrived."""

from __future__ import annotations

from typing import NamedTuple

from chassis.http.framing import HEAD_BYTES_MAX, HEAD_END, begins_with_verb, for_parser, is_request_line

LINE_BYTES_MAX = 8190
HEADERS_MAX = 100


class MalformedHead(Exception):  # noqa: N818 - says what is the matter
    """What has arrived is no head that is spoken here. The text says why, for the client."""


class WholeHead(NamedTuple):
    """A head for the parser. Of it `size` bytes have arrived, and behind it `following`."""

    head: bytes
    size: int
    following: bytes


class Head:
    """The part of a head that has arrived."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun: bytearray | None = None

    @property
    def size(self) -> int:
        """How many bytes have arrived; 0 before the first one."""
        return 0 if self._begun is None else len(self._begun)

    def take(self, data: bytes) -> WholeHead | None:
        """Takes the next bytes; None while some are missing. Raises MalformedHead."""
        begun = self.size
        arrived: bytes | bytearray
        if self._begun is not None:
            self._begun += data
            arrived = self._begun
        else:
            arrived = data.lstrip(b"\r\n")  # which RFC 9112 lets a server skip
            if not arrived:
                return None
        end = arrived.find(HEAD_END, max(0, begun - len(HEAD_END))) + len(HEAD_END)
        is_whole = end >= len(HEAD_END)
        if (end if is_whole else len(arrived)) > HEAD_BYTES_MAX:
            raise MalformedHead(
                f"its first line and headers are longer than {HEAD_BYTES_MAX} bytes together; shorten them"
            )
        if is_whole:
            self._begun = None
            return WholeHead(_checked(bytes(arrived[:end])), end, bytes(arrived[end:]))
        if self._begun is None:
            if not begins_with_verb(arrived):
                raise MalformedHead(
                    "it begins with no method; check that your client speaks HTTP, and not TLS, on this port"
                )
            self._begun = bytearray(arrived)
        return None

    def forget(self) -> None:
        self._begun = None


def _checked(head: bytes) -> bytes:
    """A whole head as the parser may have it. Raises MalformedHead."""
    line = head[: head.index(b"\r\n")]
    if len(line) > LINE_BYTES_MAX:
        return head  # the parser's to refuse
    if not is_request_line(line):
        raise MalformedHead("its first line must be a method, a target and HTTP/1.1, with one blank between them")
    return for_parser(head)
