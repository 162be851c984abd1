"""What a browser stores on a person's device: the key with which its scripts seal it (`static/store.js`)."""

from __future__ import annotations

import base64

from aiohttp import web

from console.kit.context import PageContext

KEY_PATH = "/device-key"


async def key(context: PageContext) -> web.Response:
    """`GET /device-key`: 32 bytes in base64, of this person, in this company and this browser. Raises
    HTTPUnauthorized."""
    who = context.session.who
    if who is None or who.second_factor_due:
        raise web.HTTPUnauthorized
    secret = context.session.browser.key(context.site.key, "store", who)
    return web.Response(text=base64.b64encode(secret).decode(), headers={"X-Owner": context.owner})
