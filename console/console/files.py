"""The store of files: photos and the files of imports, at MAKEREADY_FILES_URL.

`save`, `read`, `delete` and `names` are all that the console needs of a store. `file://` is a folder that all
processes of the console share.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import secrets
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import unquote, urlsplit

from chassis.auth.clients import ServiceUnavailable
from chassis.runtime.settings import SettingsError

SETTING = "MAKEREADY_FILES_URL"
PART_BYTES = 256 * 1024
UNFINISHED = ".unfinished"
"""The folder of files that are being saved."""
UNFINISHED_SECONDS = 86400
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}(/[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}){0,3}")

Value = TypeVar("Value")


class FilesUnavailable(ServiceUnavailable):
    """The store cannot be read or written now: its disk is full, or away."""


class FileSizeError(Exception):
    """More bytes than the caller of `save` allows; nothing was saved."""


class Files:
    """A folder as a store. Names are paths of up to four segments of letters, digits, `.`, `_` and `-`, for example
    `photos/Zm9v-2048.jpg`. All methods raise FilesUnavailable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def save(self, name: str, parts: AsyncIterable[bytes], *, bytes_max: int | None = None) -> bool:
        """Saves a file, which is on the disk when this returns. A process that is killed meanwhile leaves none.

        Returns whether it is new: a file of this name that exists stays as it is, so an action that is sent twice saves
        once. Raises FileSizeError, and whatever `parts` raises; then nothing is saved.
        """
        place = self._place(name)
        if await self._run(place.exists):
            return False
        unfinished = self._folder / UNFINISHED / secrets.token_hex(16)
        file: BinaryIO = await self._run(_create, unfinished)
        try:
            with file:
                total = 0
                async for part in parts:
                    total += len(part)
                    if bytes_max is not None and total > bytes_max:
                        raise FileSizeError(name)
                    await self._run(_write, file, part)
                await self._run(_finish, file)
            await self._run(_move, unfinished, place)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        return True

    def read(self, name: str, start: int = 0) -> AsyncIterator[bytes]:
        """The parts of a file, from the byte `start` on. The first one raises FileNotFoundError if there is no file."""
        return self._parts(self._place(name), start)

    async def delete(self, name: str) -> bool:
        """Deletes a file for good. Returns whether there was one."""
        return await self._run(_delete, self._place(name))

    async def names(self, folder: str, ending: str) -> list[str]:
        """The names of the files of one folder that end so."""
        return await self._run(_names, self._place(folder), f"{folder}/", ending)

    async def _parts(self, place: Path, start: int) -> AsyncIterator[bytes]:
        file = await self._run(_open, place)
        if file is None:
            raise FileNotFoundError(place.name)
        with file:
            await self._run(file.seek, start)
            while part := await self._run(file.read, PART_BYTES):
                yield part

    def _place(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a file.")
        return self._folder / name

    async def _run(self, work: Callable[..., Value], *values: object) -> Value:
        """Blocking work, in a thread. A cancellation waits for it: a file is not closed while a thread writes it."""
        running = asyncio.ensure_future(asyncio.to_thread(work, *values))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait({running})
            raise
        except OSError as error:
            raise FilesUnavailable(f"files: {error.strerror or error}") from error


async def whole(files: Files, name: str) -> bytes:
    """All of a small file. Raises FileNotFoundError."""
    return b"".join([part async for part in files.read(name)])


async def one_part(content: bytes) -> AsyncIterator[bytes]:
    """A small file's content, to save it."""
    yield content


def at(url: str) -> Files:
    """The store at a URL; makes its folder. Raises SettingsError with one line."""
    parts = urlsplit(url)
    folder = Path(unquote(parts.path))
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise SettingsError(f"{SETTING} must be the URL of a folder: file:///absolute/path.")
    try:
        unfinished = folder / UNFINISHED
        unfinished.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = unfinished / secrets.token_hex(16)
        _create(probe).close()
        probe.unlink()
        _forget_unfinished(unfinished)
    except OSError as error:
        raise SettingsError(f"{SETTING} names a folder that cannot be written: {error.strerror}.") from None
    return Files(folder)


def _forget_unfinished(folder: Path) -> None:
    """Removes what killed processes have left. Files that another process is saving now are younger."""
    oldest = time.time() - UNFINISHED_SECONDS
    for file in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_mtime < oldest:
                file.unlink()


def _create(place: Path) -> BinaryIO:
    return os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb", buffering=0)


def _open(place: Path) -> BinaryIO | None:
    try:
        return place.open("rb")
    except FileNotFoundError:
        return None


def _write(file: BinaryIO, part: bytes) -> None:
    unwritten = memoryview(part)
    while unwritten:
        unwritten = unwritten[file.write(unwritten) :]


def _finish(file: BinaryIO) -> None:
    os.fsync(file.fileno())


def _move(unfinished: Path, place: Path) -> None:
    """Under its name a file is whole or not at all. The folders are synced too: else a power cut forgets the name."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished.replace(place)
    for folder in (place.parent, place.parent.parent):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:  # a network's file system may have no such call
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(descriptor)


def _names(place: Path, prefix: str, ending: str) -> list[str]:
    try:
        with os.scandir(place) as entries:
            return [prefix + entry.name for entry in entries if entry.name.endswith(ending)]
    except FileNotFoundError:
        return []


def _delete(place: Path) -> bool:
    try:
        place.unlink()
    except FileNotFoundError:
        return False
    return True
