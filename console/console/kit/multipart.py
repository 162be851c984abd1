"""Forms in parts (RFC 7578), read as they arrive: a part's bytes are handed on, and a little of the body is held."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.message import Message

from aiohttp import content_disposition_filename, parse_content_disposition

HEADERS_BYTES_MAX = 8 * 1024
BOUNDARY_CHARACTERS_MAX = 70  # RFC 2046, 5.1.1
_HEADERS_END = b"\r\n\r\n"


class MultipartError(ValueError):
    """The body is not what its headers say."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a form. name: its field's; filename: None where it is no file. `content` can be read once."""

    name: str
    filename: str | None
    content: AsyncIterator[bytes]


class Multipart:
    """The parts of a body. Its methods raise MultipartError, and whatever `pieces` raises."""

    def __init__(self, content_type: str, pieces: AsyncIterator[bytes]) -> None:
        boundary = boundary_of(content_type)
        if not boundary:
            raise MultipartError("it has no boundary")
        self._delimiter = b"\r\n--" + boundary.encode()
        self._pieces = pieces
        self._held = bytearray(b"\r\n")  # the first delimiter may be the first line
        self._content = self._to_delimiter()
        """What is left of the present part; at first, what stands before all parts."""
        self._has_ended = False

    async def next(self) -> Part | None:
        """The next part, None behind the last one. What is left of the part before is skipped."""
        if self._has_ended:
            return None
        async for _ in self._content:
            pass
        while len(self._held) < 2:
            await self._fill()
        if self._held.startswith(b"--"):
            self._has_ended = True
            return None
        name, filename = _named(await self._headers())
        self._content = self._to_delimiter()
        return Part(name, filename, self._content)

    async def _headers(self) -> bytes:
        """A part's headers, with what is left of the line of the delimiter."""
        while (end := self._held.find(_HEADERS_END)) < 0:
            if len(self._held) > HEADERS_BYTES_MAX:
                break
            await self._fill()
        if not 0 <= end <= HEADERS_BYTES_MAX:
            raise MultipartError("a part's headers are too long")
        headers = bytes(self._held[:end])
        del self._held[: end + len(_HEADERS_END)]
        return headers

    async def _to_delimiter(self) -> AsyncIterator[bytes]:
        while (end := self._held.find(self._delimiter)) < 0:
            # The last bytes may be the beginning of a delimiter.
            size = len(self._held) - len(self._delimiter) + 1
            if size > 0:
                content = bytes(self._held[:size])
                del self._held[:size]
                yield content
            await self._fill()
        content = bytes(self._held[:end])
        del self._held[: end + len(self._delimiter)]
        if content:
            yield content

    async def _fill(self) -> None:
        piece = await anext(self._pieces, None)
        if piece is None:
            raise MultipartError("it ends before its last part does")
        self._held += piece


def boundary_of(content_type: str) -> str:
    """The boundary that the header names; empty if it is none."""
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_boundary("") or ""
    return boundary if len(boundary) <= BOUNDARY_CHARACTERS_MAX and boundary.isascii() else ""


def _named(headers: bytes) -> tuple[str, str | None]:
    """The field's name, and the file's."""
    first, *lines = headers.split(b"\r\n")
    if first.strip(b" \t"):
        raise MultipartError("a delimiter does not stand on a line of its own")
    for line in lines:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-disposition":
            with warnings.catch_warnings(action="ignore"):
                kind, parameters = parse_content_disposition(value.strip().decode(errors="replace"))
            try:
                filename = content_disposition_filename(parameters)
            except ValueError:
                raise MultipartError("the name of a part's file cannot be read") from None
            if kind == "form-data":
                return parameters.get("name", ""), filename
    raise MultipartError("a part does not say which field it is")
