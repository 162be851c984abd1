"""The administrator port. It serves one placeholder page until the administrator app exists; links of records lead to
it."""

from __future__ import annotations

import html

from gateway.http import replies
from gateway.http.connection import Request
from gateway.http.replies import Reply

_HEADERS = (
    b"Content-Type: text/html; charset=utf-8\r\n"
    b"Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
    b"X-Content-Type-Options: nosniff\r\n"
    b"Referrer-Policy: no-referrer\r\n"
)
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Makeready</title>
<style>
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 15vh auto; padding: 0 1rem; color: #222 }}
  code {{ background: #f2f2f2; padding: .1em .3em }}
  @media (prefers-color-scheme: dark) {{ body {{ background: #181818; color: #ddd }} code {{ background: #333 }} }}
</style>
<h1>Makeready</h1>
<p>The administrator app will be here. Until then, companies, administrators and keys are managed with the operator's
command line, <code>makeready</code>.</p>
<p>The API is at <code>{api_url}</code>.</p>
</html>
"""


class AdminPage:
    """Answers every GET with the placeholder page."""

    def __init__(self, api_url: str) -> None:
        self._page = Reply(200, _PAGE.format(api_url=html.escape(api_url)).encode(), _HEADERS)

    async def answer(self, request: Request) -> Reply:
        if request.method in ("GET", "HEAD"):
            return self._page
        return replies.error(405, "method_not_allowed", "This page can only be read; use GET.", b"Allow: GET, HEAD\r\n")
