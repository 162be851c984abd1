"""The gateway's own contract: the OpenAPI document, and the pages made from it."""

from __future__ import annotations

import html
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

from chassis.http.replies import Reply
from gateway.http.encoding import compressed_once

# The committed files have it in place of each installation's base URL.
BASE_URL = "https://makeready.example/api/v1"
CLIENTS_URL = "https://makeready.example/docs/clients/"

_PROGRAMS = ("sync/copy.py", "feed/feed.py")
_GUIDES = ("changes", "clients", "events", "feed", "paging", "sync", "testing", "webhooks")
_RECEIVERS = ("receiver.py", "receiver.ts", "receiver.sh", "vectors.json")
_SAFE = (
    b"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'\r\n"
    b"X-Content-Type-Options: nosniff\r\n"
    b"Referrer-Policy: no-referrer\r\n"
)
_HTML = b"Content-Type: text/html; charset=utf-8\r\n" + _SAFE
_TEXT = b"Content-Type: text/plain; charset=utf-8\r\n" + _SAFE
_JSON = b"Content-Type: application/json\r\n" + _SAFE
_CSS = b"Content-Type: text/css; charset=utf-8\r\n" + _SAFE
_ARCHIVE = b"Content-Type: application/octet-stream\r\n" + _SAFE
_SCRIPT = b"Content-Type: text/javascript; charset=utf-8\r\n" + _SAFE
_TO_DOCS = Reply(302, b"The reference is at /docs.\n", b"Location: /docs\r\n" + _TEXT)
_TO_ERRORS = Reply(302, b"The errors by code are at /docs/api/errors.\n", b"Location: /docs/api/errors\r\n" + _TEXT)


class Reference:
    """The pages, read and compressed once at the start."""

    def __init__(self, api_url: str) -> None:
        quoted = msgspec.json.encode(api_url)[1:-1]
        document = Reply(200, _file("openapi.json").replace(BASE_URL.encode(), quoted), is_shared=True)
        self.document = compressed_once(document)
        escaped = html.escape(api_url).encode()
        texts = {"/llms.txt": "llms.txt"} | {f"/docs/{name}.md": f"{name}.md.txt" for name in _GUIDES}
        pages = {
            **{path: Reply(200, _file(name).replace(BASE_URL.encode(), escaped), _HTML) for path, name in _html()},
            **{f"/docs/{guide}": Reply(200, _file(f"{guide.partition('/')[2]}.txt"), _TEXT) for guide in _PROGRAMS},
            **{f"/docs/webhooks/{name}": Reply(200, _file(f"{name}.txt"), _TEXT) for name in _RECEIVERS},
            **{
                path: Reply(200, _file(name).replace(BASE_URL.encode(), api_url.encode()), _TEXT)
                for path, name in texts.items()
            },
            "/docs/asyncapi.json": Reply(200, _file("asyncapi.json").replace(BASE_URL.encode(), quoted), _JSON),
            "/docs/style.css": Reply(200, _file("style.css"), _CSS),
            **{f"/docs/{name}": Reply(200, _file(name), _SCRIPT) for name in ("index.js", "script.js")},
        }
        clients_url = api_url.removesuffix("/api/v1") + "/docs/clients/"
        for path, url in (("/docs/clients", html.escape(clients_url)), ("/docs/clients.md", clients_url)):
            pages[path] = pages[path]._replace(body=pages[path].body.replace(CLIENTS_URL.encode(), url.encode()))
        self.pages = {path: compressed_once(page._replace(is_shared=True)) for path, page in pages.items()}
        self.pages |= dict.fromkeys(("/", "/docs/"), _TO_DOCS._replace(is_shared=True))
        self.pages |= {f"/docs/clients/{file.name}": _archive(file) for file in _distributions()}
        self.pages["/docs/errors"] = _TO_ERRORS._replace(is_shared=True)
        """By path, for the paths outside the namespace."""


def _html() -> Iterator[tuple[str, str]]:
    """The path and the file of each page: docs.api.tickets.html is /docs/api/tickets."""
    for file in (resources.files("gateway") / "pages").iterdir():
        if file.name.endswith(".html"):
            yield "/" + file.name.removesuffix(".html").replace(".", "/"), file.name


def _distributions() -> Iterator[Traversable]:
    """The client libraries, which the installation builds."""
    folder = resources.files("gateway") / "pages" / "clients"
    return (file for file in folder.iterdir() if file.name.endswith((".whl", ".tgz", ".tar.gz")))


def _archive(file: Traversable) -> Reply:
    """A file that is compressed already; npm would not expect another coding around it."""
    return Reply(200, file.read_bytes(), _ARCHIVE, is_shared=True)


def _file(name: str) -> bytes:
    return (resources.files("gateway") / "pages" / name).read_bytes()
