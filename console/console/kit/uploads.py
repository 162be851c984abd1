"""Files that a form brings: read as they arrive, never in memory as a whole.

A page that takes them says `uploads=True` in pages.py. Its form's fields stand before its files, so the form has been
checked before a byte of a file is read: `async for upload in visit.uploads: …`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aiohttp import BodyPartReader, MultipartReader, web
from multidict import MultiDict

FIELD_BYTES_MAX = 64 * 1024
FIELDS_MAX = 100
PART_BYTES = 256 * 1024
PART_SECONDS = 30
"""How long the browser may send nothing."""
NAME_CHARACTERS_MAX = 100


class UploadError(Exception):
    """The form cannot be read: it is broken, or it stopped arriving."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of the form. field: its input's name; name: the file's, on the computer that it comes from.

    `parts` has its bytes, and can be read once, before the next file.
    """

    field: str
    name: str
    parts: AsyncIterator[bytes]


class Uploads:
    """The files of a form, in the order of its inputs. An input without a file is left out. Raises UploadError."""

    def __init__(self, reader: MultipartReader | None = None, first: BodyPartReader | None = None) -> None:
        self._reader, self._next = reader, first

    async def __aiter__(self) -> AsyncIterator[Upload]:
        while self._next is not None and self._reader is not None:
            part = self._next
            if part.filename:
                name = "".join(sign for sign in part.filename if sign.isprintable())
                yield Upload(
                    part.name or "", name.replace("\\", "/").rpartition("/")[2][-NAME_CHARACTERS_MAX:], _parts(part)
                )
            self._next = await _following(self._reader)


async def begin(request: web.Request) -> tuple[MultiDict[str], Uploads]:
    """The fields before the first file, and the files. Raises UploadError."""
    fields: MultiDict[str] = MultiDict()
    try:
        reader = await request.multipart()
    except Exception:
        raise UploadError("It is no form.") from None
    while (part := await _following(reader)) is not None:
        if part.filename is not None:
            return fields, Uploads(reader, part)
        if len(fields) == FIELDS_MAX:
            raise UploadError("It has too many fields.")
        value = bytearray()
        async for one in _parts(part):
            value += one
            if len(value) > FIELD_BYTES_MAX:
                raise UploadError("A field is too long.")
        fields.add(part.name or "", value.decode(errors="replace"))
    return fields, Uploads()


async def _following(reader: MultipartReader) -> BodyPartReader | None:
    """The next part; what is left of the one before is skipped."""
    try:
        async with asyncio.timeout(PART_SECONDS):
            part = await reader.next()
    except Exception as error:  # of many kinds: the reader's own, and those of the connection
        raise UploadError(str(error)) from error
    if part is not None and not isinstance(part, BodyPartReader):
        raise UploadError("It has a form in a form.")
    return part


async def _parts(part: BodyPartReader) -> AsyncIterator[bytes]:
    while True:
        try:
            async with asyncio.timeout(PART_SECONDS):
                found = await part.read_chunk(PART_BYTES)
        except Exception as error:
            raise UploadError(str(error)) from error
        if not found:
            return
        yield bytes(found)
