"""What a browser stores on a person's device, and what it needs to work without a network.

`GET /device-key` has the key with which its scripts seal what they store (`static/store.js`). The others have nothing
of anybody: `/worker.js`, the service worker (`static/worker.js`) with the lists that pages.py gives it, `/offline`, the
page that it shows without a network, and the manifest, with which a phone takes the console for an application.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping

from aiohttp import web

from console.kit.context import Page, PageContext, Render
from console.kit.statics import Statics
from console.kit.texts import _

KEY_PATH, WORKER_PATH, OFFLINE_PATH, MANIFEST_PATH = "/device-key", "/worker.js", "/offline", "/manifest.webmanifest"
FREE = (WORKER_PATH, OFFLINE_PATH, MANIFEST_PATH)
"""Served without a session."""
SHELL = ("console.css", "pages.js", "vendor/htmx.js", "vendor/hx-sse.js", "icons.svg", "mark.svg")


def answers(statics: Statics, pages: Iterable[Page]) -> Mapping[str, Render]:
    """What answers each path."""
    texts = {
        WORKER_PATH: (worker(statics, pages), "text/javascript"),
        MANIFEST_PATH: (manifest(statics), "application/manifest+json"),
    }

    async def offline(context: PageContext) -> web.Response:
        return context.render("offline.html", here="")

    async def text_of(context: PageContext) -> web.Response:
        text, content_type = texts[context.request.path]
        return web.Response(text=text, content_type=content_type)

    return {KEY_PATH: key, OFFLINE_PATH: offline, **dict.fromkeys(texts, text_of)}


async def key(context: PageContext) -> web.Response:
    """`GET /device-key`: 32 bytes in base64, of this person, in this company and this browser. Raises
    HTTPUnauthorized."""
    who = context.session.who
    if who is None or who.second_factor_due:
        raise web.HTTPUnauthorized
    secret = context.session.browser.key(context.site.key, "store", who)
    return web.Response(text=base64.b64encode(secret).decode(), headers={"X-Owner": context.owner})


def worker(statics: Statics, pages: Iterable[Page]) -> str:
    """The service worker. A new release has another text, so browsers take it by themselves."""
    kept = [page for page in pages if page.on_device]
    lists = {
        "SHELL": [statics.path(name) for name in SHELL],
        "KEPT": sorted(_pattern(page.path) for page in kept if page.method == "GET"),
        "WAITING": sorted(_pattern(page.path) for page in kept if page.method == "POST"),
    }
    lists["VERSION"] = [hashlib.sha256(json.dumps(lists).encode()).hexdigest()[:16]]
    head = "".join(f"const {name} = {json.dumps(values)};\n" for name, values in lists.items())
    return head + statics.source("store.js") + statics.source("worker.js")


def _pattern(path: str) -> str:
    return re.sub(r"\{\w+_id\}", "[0-9]{1,19}", path)


def manifest(statics: Statics) -> str:
    icons = [
        {"src": statics.path("mark.svg"), "sizes": "any", "type": "image/svg+xml", "purpose": "any"},
        *(
            {"src": statics.path(f"mark-{side}.png"), "sizes": f"{side}x{side}", "type": "image/png", "purpose": use}
            for side, use in ((192, "any"), (512, "any"), (512, "maskable"))
        ),
    ]
    return json.dumps(
        {
            "id": "/", "name": "Makeready", "short_name": "Makeready", "start_url": "/", "scope": "/",
            "display": "standalone", "background_color": "#f6f5f1", "theme_color": "#0b5f5b", "icons": icons,
            "shortcuts": [
                {"name": _("My work"), "url": "/my-work"},
                {"name": _("Tickets"), "url": "/tickets"},
                {"name": _("Inspections"), "url": "/inspections"},
            ],
        }
    )  # fmt: skip
