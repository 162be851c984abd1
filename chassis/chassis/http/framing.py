"""Where a request's head and body end in the bytes of a connection, so that the parser gets one request at a time."""

from __future__ import annotations

import re

# A request's first line and all its headers together.
HEAD_BYTES_MAX = 32 * 1024
HEAD_END = b"\r\n\r\n"
TRAILER_BYTES_MAX = 8 * 1024
SMALL_HEAD_BYTES = 4 * 1024
SMALL_BODY_BYTES = 1024

_VERSIONS = (b" HTTP/1.1", b" HTTP/1.0")
_SIZE_LINE_BYTES_MAX = 256
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")

# Verbs that are handed to the parser as they are. It refuses most others, which are verbs all the same (RFC 9110, 9.1).
_VERBS = rb"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|CONNECT)"
_KNOWN_VERB = re.compile(_VERBS + rb" ")
_ANY_VERB = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+(?: |\Z)")
# A verb that the parser knows, that frames a body as any other, and that no route has.
_OTHER_VERB = b"PURGE "
_FIRST_LINE = re.compile(_VERBS + rb" [^ \r\n]+ HTTP/1\.[01]\r\n")
_CONTENT_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength:[ \t]*([0-9]{1,4})\r\n")


class MalformedChunks(Exception):  # noqa: N818 - says what is the matter
    pass


def is_request_line(line: bytes | bytearray) -> bool:
    """Whether a first line has three parts set apart by one blank each, the last one a version that is spoken here.

    The parser takes several blanks for one, and versions 0.9 and 2.0 for 1.0.
    """
    return line.endswith(_VERSIONS) and line.count(b" ") == 2 and begins_with_verb(line)


def begins_with_verb(head: bytes | bytearray) -> bool:
    """Whether the first bytes of a request can be a verb."""
    return _ANY_VERB.match(head) is not None


def for_parser(head: bytes | bytearray) -> bytes:
    """A head that begins with a request line; a verb that the parser may not know is replaced, as no route has it."""
    return bytes(head) if _KNOWN_VERB.match(head) else _OTHER_VERB + head[head.index(b" ") + 1 :]


def is_whole_and_small(data: bytes) -> bool:
    """Whether bytes are the whole head of one request, and all of its body or none: nothing of another request.

    False where that takes a closer look, as with most malformed requests.
    """
    end = data.find(HEAD_END) + len(HEAD_END)
    if not len(HEAD_END) <= end <= SMALL_HEAD_BYTES or _FIRST_LINE.match(data) is None:
        return False
    if end == len(data):
        return True
    length = _CONTENT_LENGTH.search(data, 0, end)
    return length is not None and int(length[1]) == len(data) - end <= SMALL_BODY_BYTES


class Length:
    """A body of a declared length."""

    def __init__(self, length: int) -> None:
        self._left = length

    @property
    def has_ended(self) -> bool:
        return self._left == 0

    def take(self, data: bytes) -> int:
        """How many of the next bytes are the body's."""
        size = min(self._left, len(data))
        self._left -= size
        return size


class Chunks:
    """A body in chunks."""

    def __init__(self) -> None:
        self._skip = 0
        """Bytes of the chunk that are still to come."""
        self._line = b""
        """What has arrived of a line of the framing."""
        self._follows_chunk = False
        """The line is the end of a chunk's line, which is empty."""
        self._trailers: int | None = None
        """The bytes of the trailers, once the last chunk has come."""
        self.has_ended = False

    def take(self, data: bytes) -> int:
        """How many of the next bytes are the body's. Raises MalformedChunks."""
        at = 0
        while at < len(data) and not self.has_ended:
            if self._skip:
                size = min(self._skip, len(data) - at)
                self._skip -= size
                at += size
                continue
            end = data.find(b"\n", at) + 1
            line = self._line + data[at : end or len(data)]
            at = end or len(data)
            if len(line) > (_SIZE_LINE_BYTES_MAX if self._trailers is None else TRAILER_BYTES_MAX):
                raise MalformedChunks
            if end:
                self._line = b""
                self._take_line(line)
            else:
                self._line = line
        return at

    def _take_line(self, line: bytes) -> None:
        if self._follows_chunk:
            if line != b"\r\n":
                raise MalformedChunks
            self._follows_chunk = False
        elif self._trailers is not None:
            self._trailers += len(line)
            if self._trailers > TRAILER_BYTES_MAX or not line.endswith(b"\r\n"):
                raise MalformedChunks
            self.has_ended = line == b"\r\n"
        else:
            match = _SIZE_LINE.fullmatch(line)
            if match is None:
                raise MalformedChunks
            self._skip = int(match[1], 16)
            if self._skip:
                self._follows_chunk = True
            else:
                self._trailers = 0
