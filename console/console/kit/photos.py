"""Photos: taken from a form, decoded in a process of their own, stored, and served at addresses that cannot be guessed.

A photo's address has 128 random bits and needs no session: integrations, which have a key and no cookie, read it in a
record's photo_url. Anyone who has the address may look; deleting the file ends that.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import IO

import structlog
from aiohttp import web

from console import decoding
from console.files import Files, one_part, whole
from console.kit import links
from console.kit.context import PageContext
from console.kit.texts import _
from console.kit.uploads import Upload

PREFIX = "/files/"
ACCEPT = "image/jpeg,image/png,image/webp"
"""For the input: telephones then send a JPEG instead of a format of their own."""
AT_ONCE_MAX = 10
FORM_BYTES_MAX = AT_ONCE_MAX * decoding.BYTES_MAX + 1024 * 1024
DECODED_AT_ONCE = 2
LARGE, SMALL = decoding.SIDES
HEADERS = {
    "Cache-Control": "private, max-age=86400, immutable",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Content-Disposition": 'inline; filename="photo.jpg"',
    # An integration's own pages may show the photo of a record.
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Content-Type": "image/jpeg",
}
_NAME = re.compile(r"([A-Za-z0-9_-]{22})(-400)?\.jpg")
_decoders = asyncio.Semaphore(DECODED_AT_ONCE)
_WHY = {
    decoding.NO_PHOTO: _("Not a JPEG, PNG or WebP photo."),
    decoding.TOO_LARGE: f"It has too many pixels: {decoding.PIXELS_MAX // 1_000_000} million at most, as JPEG.",
    decoding.TWO_THINGS: _("The file contains more than a photo. Save it as JPEG and try again."),
    decoding.DAMAGED: _("The file is damaged or incomplete."),
    "bytes": f"It is too large: {decoding.BYTES_MAX // 1_000_000} MB at most.",
    "empty": _("The file is empty."),
    "many": f"{AT_ONCE_MAX} photos can be added at once: add it after these.",
    "": _("The photo could not be read."),
}
log = structlog.stdlib.get_logger(__name__)


class PhotoError(Exception):
    """Not a photo that the console takes; the text says why."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a file of a form: `address` of the stored photo, or `refused` with the reason.

    index: in the form, from 0; name: the file's. is_new: whether it was stored now, and not by the same form before.
    """

    index: int
    name: str
    address: str = ""
    refused: str = ""
    is_new: bool = False


async def take(context: PageContext) -> AsyncIterator[Taken]:
    """Stores the photos of the form that was sent, one after the other. The same form sent again has the same
    addresses: each photo's is made of the form's token, which nobody else knows. Raises UploadError and
    FilesUnavailable."""
    index = 0
    async for upload in context.uploads:
        if index < AT_ONCE_MAX:
            yield await _taken(context, upload, index)
        else:
            yield Taken(index, upload.name, refused=_WHY["many"])
        index += 1


async def _taken(context: PageContext, upload: Upload, index: int) -> Taken:
    try:
        pictures = await decoded(upload)
    except PhotoError as error:
        return Taken(index, upload.name, refused=str(error))
    photo = photo_id(context.form_token, index)
    is_new = await _store(context, photo, pictures)
    return Taken(index, upload.name, address_of(context.site.url, photo), is_new=is_new)


def photo_id(token: str, index: int) -> str:
    """128 bits in 22 letters, digits, `-` and `_`. A form token has as many random ones."""
    digest = hashlib.sha256(b"photo\0" + token.encode() + b"\0" + str(index).encode()).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")


def address_of(origin: str, photo: str) -> str:
    return f"{origin}{PREFIX}{photo}.jpg"


def photo_at(origin: str, address: str) -> str:
    """The id of the photo at this address of the console; empty for any other address."""
    match = _NAME.fullmatch(address.removeprefix(origin + PREFIX)) if address.startswith(origin + PREFIX) else None
    return match[1] if match and not match[2] else ""


@dataclass(frozen=True, slots=True)
class Shown:
    """A photo as a page shows it: the path of its small picture if the console stores it; else the host where it is,
    empty for an address that is none. path: what opens it large."""

    path: str
    small: str = ""
    host: str = ""


def shown(origin: str, address: str) -> Shown:
    """origin: of the console."""
    if photo := photo_at(origin, address):
        return Shown(f"{PREFIX}{photo}.jpg", small(photo))
    return Shown(address, host=links.host_of(address)) if links.of_another_site(address) else Shown("")


def small(photo: str) -> str:
    """The path of the small picture of a photo."""
    return f"{PREFIX}{photo}-{SMALL}.jpg"


async def _store(context: PageContext, photo: str, pictures: Sequence[bytes]) -> bool:
    """The large picture comes last: when it is there, all is there. Returns whether it is new."""
    files = context.site.files
    owner = {
        "company_id": context.session.person.company_id,
        "actor": context.session.person.actor,
        "at": context.site.now().isoformat(),
    }
    await files.save(f"photos/{photo}.json", one_part(json.dumps(owner).encode()))
    await files.save(f"photos/{photo}-{SMALL}.jpg", one_part(pictures[1]))
    return await files.save(f"photos/{photo}-{LARGE}.jpg", one_part(pictures[0]))


async def delete(context: PageContext, address: str) -> bool:
    """Deletes the photo at this address if the console stores it for the company of who is signed in. Returns whether
    it did. Raises FilesUnavailable."""
    photo, files = photo_at(context.site.url, address), context.site.files
    if not photo:
        return False
    try:
        owner = json.loads(await whole(files, f"photos/{photo}.json"))
    except FileNotFoundError:
        return False
    if owner["company_id"] != context.session.person.company_id:
        return False
    await _delete(files, photo)
    log.info(
        "photo_deleted",
        photo=photo[:6],
        actor=context.session.person.actor,
        company_id=context.session.person.company_id,
    )
    return True


async def delete_of_companies(files: Files, company_ids: Collection[int]) -> Counter[int]:
    """Deletes all photos that are stored for these companies. Returns how many of each. Raises FilesUnavailable."""
    deleted: Counter[int] = Counter()
    for name in await files.names("photos", ".json"):
        with contextlib.suppress(FileNotFoundError):
            company_id = json.loads(await whole(files, name))["company_id"]
            if company_id in company_ids:
                await _delete(files, name.removeprefix("photos/").removesuffix(".json"))
                deleted[company_id] += 1
    return deleted


async def _delete(files: Files, photo: str) -> None:
    for name in (f"{photo}-{LARGE}.jpg", f"{photo}-{SMALL}.jpg", f"{photo}.json"):  # the last one says whose it is
        await files.delete(f"photos/{name}")


async def answer(request: web.Request, files: Files) -> web.Response:
    """Raises HTTPNotFound and FilesUnavailable."""
    match = _NAME.fullmatch(request.match_info["name"])
    if match is None:
        raise web.HTTPNotFound
    try:
        content = await whole(files, f"photos/{match[1]}-{SMALL if match[2] else LARGE}.jpg")
    except FileNotFoundError:
        raise web.HTTPNotFound from None
    return web.Response(body=content, headers=HEADERS)


async def decoded(upload: Upload) -> list[bytes]:
    """The photo in the sizes `decoding.SIDES`. Raises PhotoError and UploadError."""
    with tempfile.TemporaryFile() as file:  # nothing else has a name for it, so nothing is left if this process dies
        total = 0
        async for part in upload.parts:
            total += len(part)
            if total > decoding.BYTES_MAX:
                raise PhotoError(_WHY["bytes"])
            await asyncio.to_thread(file.write, part)
        if not total:
            raise PhotoError(_WHY["empty"])
        file.seek(0)
        async with _decoders:
            return await _decode(file)


async def _decode(file: IO[bytes]) -> list[bytes]:
    program = [sys.executable, "-P", "-m", decoding.__name__]
    process = await asyncio.create_subprocess_exec(
        *program, stdin=file, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={}, cwd="/"
    )
    try:
        async with asyncio.timeout(decoding.SECONDS_MAX):
            out, err = await process.communicate()
    except TimeoutError:
        raise PhotoError(_WHY[""]) from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode == decoding.REFUSED:
        raise PhotoError(_WHY.get(err.decode(errors="replace"), _WHY[""]))
    pictures = _framed(out)
    if process.returncode != 0 or len(pictures) != len(decoding.SIDES):
        log.warning("photo_not_decoded", status=process.returncode, last=err.decode(errors="replace")[-300:])
        raise PhotoError(_WHY[""])
    return pictures


def _framed(out: bytes) -> list[bytes]:
    pictures, at, size = [], 0, decoding.LENGTH.size
    while at + size <= len(out):
        (length,) = decoding.LENGTH.unpack_from(out, at)
        pictures.append(out[at + size : at + size + length])
        at += size + length
    return pictures if at == len(out) else []
