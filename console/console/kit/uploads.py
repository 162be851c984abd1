"""Bodies of forms: fields, which are read whole and are small together, and files, which are handed on as they arrive.

A page that takes files says in pages.py how many bytes its form may have: `uploads=IMPORT_BYTES_MAX`. Such a form's
fields stand before its files, so the form has been checked before a byte of a file is read:
`async for upload in context.uploads: …`.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl

from aiohttp import web
from multidict import MultiDict

from chassis.http.bodies import BodyBroken
from chassis.http.requests import Request
from console.kit.multipart import Multipart, MultipartError, Part

FIELDS_BYTES_MAX = 256 * 1024
"""Of all fields of a form together, with their names."""
STRANGERS_BYTES_MAX = 64 * 1024
"""Of a form of somebody who is not signed in; the answer of a passkey is the longest."""
FIELDS_MAX = 5000
NAME_CHARACTERS_MAX = 100
PAUSE_SECONDS = 30.0
"""How long the browser may send nothing of a file."""
UPLOAD_SECONDS = 1800.0
"""How long a form with files may take to arrive."""
UPLOADS_MAX, UPLOADS_OF_A_PERSON_MAX = 32, 4
"""Forms with files that arrive at once; each holds some 300 KB of memory."""


class UploadError(Exception):
    """The form did not arrive whole: it is broken, or it stopped arriving."""


class FormError(Exception):
    """The body is no form."""


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

    def __init__(self, parts: Multipart | None = None, first: Part | None = None) -> None:
        self._parts, self._next = parts, first

    async def __aiter__(self) -> AsyncIterator[Upload]:
        while self._next is not None and self._parts is not None:
            if self._next.filename:
                name = "".join(sign for sign in self._next.filename if sign.isprintable())
                name = name.replace("\\", "/").rpartition("/")[2][-NAME_CHARACTERS_MAX:]
                yield Upload(self._next.name, name, _told(self._next.content))
            with _told_as_upload_error():
                self._next = await self._parts.next()


class UploadCapacity:
    """How many forms with files arrive at once, in all and of each person."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    @contextlib.contextmanager
    def reserve(self, person: str) -> Iterator[bool]:
        """Whether one more form may arrive now; it counts until the block ends."""
        if self._taken.total() >= UPLOADS_MAX or self._taken[person] >= UPLOADS_OF_A_PERSON_MAX:
            yield False
            return
        self._taken[person] += 1
        try:
            yield True
        finally:
            self._taken[person] -= 1
            self._taken += Counter()  # drops those that have none


async def fields(request: Request, bytes_max: int) -> MultiDict[str]:
    """The fields of a form without files. Raises FormError, UploadError, and HTTPRequestEntityTooLarge."""
    _check_size(request, bytes_max)
    with _told_as_upload_error():
        body = await request.body(bytes_max)
    if len(body) > bytes_max:
        raise web.HTTPRequestEntityTooLarge(bytes_max, len(body))
    if request.parsed.content_type != "multipart/form-data":
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX)
        except ValueError:
            raise FormError from None
        return MultiDict(pairs)
    try:
        form_fields, file = await _fields(Multipart(request.headers["Content-Type"], _whole(body)))
    except MultipartError:
        raise FormError from None
    if file is not None:
        raise FormError
    return form_fields


async def leading_fields(request: Request, fields_max: int, bytes_max: int) -> MultiDict[str]:
    """The fields of a form, and nothing of its files. fields_max: bytes of the fields; bytes_max: of the whole form.

    Raises FormError, UploadError, and HTTPRequestEntityTooLarge."""
    if request.parsed.content_type != "multipart/form-data":
        return await fields(request, fields_max)
    _check_size(request, bytes_max)
    try:
        parts = Multipart(request.headers["Content-Type"], _bounded(request, bytes_max))
    except MultipartError:
        raise FormError from None
    with _told_as_upload_error():
        return (await _fields(parts, fields_max))[0]


async def begin(request: Request, bytes_max: int) -> tuple[MultiDict[str], Uploads]:
    """The fields before the first file, and the files. bytes_max: of the whole form.

    Raises FormError, UploadError, and HTTPRequestEntityTooLarge, which reading the files may raise too.
    """
    _check_size(request, bytes_max)
    try:
        parts = Multipart(request.headers["Content-Type"], _bounded(request, bytes_max))
    except MultipartError:
        raise FormError from None
    with _told_as_upload_error():
        form_fields, file = await _fields(parts)
    return form_fields, Uploads(parts, file)


async def _fields(parts: Multipart, fields_max: int = FIELDS_BYTES_MAX) -> tuple[MultiDict[str], Part | None]:
    """The fields up to the first file, and that one."""
    form_fields: MultiDict[str] = MultiDict()
    total = 0
    while (part := await parts.next()) is not None and part.filename is None:
        value = bytearray()
        total += len(part.name)
        async for content in part.content:
            value += content
            total += len(content)
            if total > fields_max:
                raise web.HTTPRequestEntityTooLarge(fields_max, total)
        if len(form_fields) == FIELDS_MAX:
            raise FormError
        try:
            form_fields.add(part.name, value.decode())
        except ValueError:
            raise FormError from None
    return form_fields, part


def _check_size(request: Request, bytes_max: int) -> None:
    """Refuses a body that says itself that it is too long, before it is read."""
    size = request.parsed.content_length or 0
    if size > bytes_max:
        raise web.HTTPRequestEntityTooLarge(bytes_max, size)


async def _bounded(request: Request, bytes_max: int) -> AsyncIterator[bytes]:
    size = 0
    async for piece in request.pieces(PAUSE_SECONDS, UPLOAD_SECONDS):
        size += len(piece)
        if size > bytes_max:
            raise web.HTTPRequestEntityTooLarge(bytes_max, size)
        yield piece


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _told(content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    with _told_as_upload_error():
        async for part in content:
            yield part


@contextlib.contextmanager
def _told_as_upload_error() -> Iterator[None]:
    try:
        yield
    except (BodyBroken, MultipartError) as error:
        raise UploadError(str(error)) from error
