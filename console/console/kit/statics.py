"""Static files: read, hashed and compressed once at start, served under their hash and never asked for again."""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

FOLDER = Path(__file__).resolve().parents[1] / "static"
PREFIX = "/static/"
PAGE_SCRIPTS = ("console.js", "live.js", "writing.js", "store.js", "drafts.js", "offline.js", "keyboard.js")
STYLE = "console.css"
WORKER_SCRIPT = "worker.js"
"""Our own scripts of each page, which are served as one file: PAGE_SCRIPT."""
PAGE_SCRIPT = "pages.js"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
HEADERS = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}


@dataclass(frozen=True, slots=True)
class File:
    path: str
    content_type: str
    plain: bytes
    compressed: bytes


class Statics:
    """The files of the folder `static` whose endings TYPES has."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._by_name: dict[str, File] = {}
        for file in sorted(folder.rglob("*")):
            name = file.relative_to(folder).as_posix()
            if file.suffix in TYPES and name not in (*PAGE_SCRIPTS, WORKER_SCRIPT):
                plain = file.read_bytes()
                self._add(name, _lean(plain) if name == STYLE else plain)
        scripts = [_lean((folder / name).read_bytes()) for name in PAGE_SCRIPTS if (folder / name).exists()]
        self._add(PAGE_SCRIPT, b"".join(scripts))
        self.by_path = {file.path: file for file in self._by_name.values()}

    def _add(self, name: str, plain: bytes) -> None:
        path = f"{PREFIX}{hashlib.sha256(plain).hexdigest()[:16]}/{name}"
        self._by_name[name] = File(path, TYPES[Path(name).suffix], plain, gzip.compress(plain, 9, mtime=0))

    def source(self, name: str) -> str:
        """The text of a script that is served as a part of another one."""
        return (self._folder / name).read_text()

    def path(self, name: str) -> str:
        """The path under which a file is served, for example of "console.css"."""
        return self._by_name[name].path

    async def answer(self, request: web.Request) -> web.Response:
        """Raises HTTPNotFound, also for the hash of an older file."""
        file = self.by_path.get(request.path)
        if file is None:
            raise web.HTTPNotFound
        headers = {**HEADERS, "Content-Type": file.content_type}
        if accepts_gzip(request):
            return web.Response(body=file.compressed, headers={**headers, "Content-Encoding": "gzip"})
        return web.Response(body=file.plain, headers=headers)


def _lean(source: bytes) -> bytes:
    """A script or a style of ours without indentation and lines of comment. None has a text of several lines."""
    return re.sub(rb"(?m)^ *(//.*|/\*[^*]*\*/)\n|^ +", b"", source)


def accepts_gzip(request: web.Request) -> bool:
    """Whether the browser takes gzip, as every browser does."""
    accepted = [part.replace(" ", "") for part in request.headers.get("Accept-Encoding", "").lower().split(",")]
    return any(part == "gzip" or (part.startswith("gzip;q=") and not part.startswith("gzip;q=0")) for part in accepted)
