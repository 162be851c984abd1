"""The store of files: whole or not at all, once, nowhere else."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chassis.runtime.settings import SettingsError
from console import files
from console.files import FileSizeError, FilesUnavailable, one_part, whole

# Saves a file of two parts, and is killed after the first.
KILLED = """
import asyncio, os, signal, sys
from console import files
async def parts():
    yield b"a" * 300_000
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(files.at(sys.argv[1]).save("imports/1.csv", parts()))
"""


def found(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


async def test_a_file_is_saved_once_read_in_parts_and_deleted(tmp_path: Path) -> None:
    store = files.at(tmp_path.as_uri())
    content = os.urandom(files.PART_BYTES + 7)
    assert await store.save("photos/Zm9v-2048.jpg", one_part(content))
    assert not await store.save("photos/Zm9v-2048.jpg", one_part(b"another"))
    assert await whole(store, "photos/Zm9v-2048.jpg") == content
    assert [len(part) async for part in store.read("photos/Zm9v-2048.jpg")] == [files.PART_BYTES, 7]
    assert [part async for part in store.read("photos/Zm9v-2048.jpg", files.PART_BYTES + 5)] == [content[-2:]]
    assert (tmp_path / "photos/Zm9v-2048.jpg").stat().st_mode & 0o077 == 0
    assert await store.delete("photos/Zm9v-2048.jpg") and not await store.delete("photos/Zm9v-2048.jpg")
    with pytest.raises(FileNotFoundError):
        await whole(store, "photos/Zm9v-2048.jpg")
    assert found(tmp_path) == []


async def test_what_is_too_large_or_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    store = files.at(tmp_path.as_uri())

    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    assert await store.save("a", one_part(b"1234"), bytes_max=4)
    with pytest.raises(FileSizeError):
        await store.save("b", one_part(b"12345"), bytes_max=4)
    with pytest.raises(ConnectionResetError):
        await store.save("c", broken())
    assert found(tmp_path) == ["a"]


async def test_a_kill_in_the_middle_leaves_no_file_and_a_start_tidies_up(tmp_path: Path) -> None:
    killed = await asyncio.create_subprocess_exec(sys.executable, "-P", "-c", KILLED, tmp_path.as_uri())
    assert await killed.wait() == -signal.SIGKILL
    (unfinished,) = found(tmp_path)
    assert unfinished.startswith(".unfinished/")
    files.at(tmp_path.as_uri())
    assert found(tmp_path) == [unfinished]  # it may be another process's
    os.utime(tmp_path / unfinished, (0, 0))
    store = files.at(tmp_path.as_uri())
    assert found(tmp_path) == []
    assert await store.save("imports/1.csv", one_part(b"again"))


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../x", "a/../b", "a//b", ".unfinished/x", "a/.b", "a\0", "a/b/c/d/e", "ä", "a\n", "a/"]
)
async def test_a_name_leads_nowhere_else(name: str, tmp_path: Path) -> None:
    store = files.at(tmp_path.as_uri())
    with pytest.raises(ValueError, match="no name of a file"):
        await store.save(name, one_part(b""))
    with pytest.raises(ValueError, match="no name of a file"):
        await store.delete(name)


async def test_a_store_that_has_gone_is_unavailable(tmp_path: Path) -> None:
    store = files.at((tmp_path / "files").as_uri())
    (tmp_path / "files/.unfinished").rmdir()
    (tmp_path / "files").rmdir()
    with pytest.raises(FilesUnavailable):
        await store.save("a", one_part(b""))


@pytest.mark.parametrize(
    "url", ["", "files", "http://x/y", "s3://bucket/x", "file://elsewhere/x", "file:relative", "file:///proc/x"]
)
def test_a_bad_setting_is_one_line(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^MAKEREADY_FILES_URL [^\n]+\.$"):
        files.at(url)
