"""A browser without script, over real HTTP: it holds cookies and sends forms as they stand in a page."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import aiohttp

from console.kit import browser_secret, form_tokens
from console.kit.signing_in import SESSION_COOKIE

from .stubs import NOW, Stubs


@dataclass
class Reply:
    status: int
    headers: Any
    text: str
    path: str

    @property
    def title(self) -> str:
        """The text of the page's h1."""
        heading = re.search(r"<h1[^>]*>(.*?)</h1>", self.text, re.DOTALL)
        return html.unescape(re.sub(r"<[^>]+>", "", heading[1])).strip() if heading else ""

    @property
    def words(self) -> str:
        """The page's text without its tags."""
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", self.text)).split())


class Tags(HTMLParser):
    """The tags of a page with their attributes, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, str, list[tuple[str, str]]]] = []
        self._select = self._area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "form":
            self.forms.append((values.get("method") or "get", values.get("action") or "", []))
        elif tag == "input" and self.forms and values.get("name"):
            if values.get("type") in ("checkbox", "radio") and "checked" not in values:
                return
            self.forms[-1][2].append((str(values["name"]), values.get("value") or ""))
        elif tag == "select":
            self._select = values.get("name") or ""
        elif tag == "option" and self._select and self.forms and "selected" in values:
            self.forms[-1][2].append((self._select, values.get("value") or ""))
        elif tag == "textarea":
            self._area = values.get("name") or ""

    def handle_data(self, data: str) -> None:
        if self._area and self.forms:
            self.forms[-1][2].append((self._area, data))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("select", "textarea"):
            self._select = self._area = ""


CONSOLES: dict[str, tuple[bytes, Stubs]] = {}
"""The keys of the consoles that run, by origin, and the services behind each."""


@dataclass
class Browser:
    """`get`, `post`, and `send` for a form of the last page."""

    url: str
    http: aiohttp.ClientSession
    cookies: dict[str, str] = field(default_factory=dict)
    page: Reply | None = None

    def sign_in(self, session: str) -> Browser:
        self.cookies[SESSION_COOKIE] = session
        return self

    async def get(self, path: str, **headers: str) -> Reply:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.request("GET", path, headers=sent)

    async def post(self, path: str, values: Any, **headers: str) -> Reply:
        """values: pairs or a mapping; the request comes from this site unless headers say otherwise."""
        sent = {"Origin": self.url, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return await self.request("POST", path, data=list(dict(values).items() if isinstance(values, dict) else values),
                                  headers={name: value for name, value in sent.items() if value})  # fmt: skip

    async def request(self, method: str, path: str, **more: Any) -> Reply:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {**more.pop("headers", {}), **({"Cookie": cookie} if cookie else {})}
        async with self.http.request(method, self.url + path, headers=headers, allow_redirects=False, **more) as answer:
            text = await answer.text()
            for name, morsel in answer.cookies.items():
                assert morsel["secure"] and morsel["httponly"] and morsel["samesite"] == "Lax" and morsel["path"] == "/"
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value
            reply = Reply(answer.status, answer.headers.copy(), text, path)
        if method != "HEAD":
            self.page = reply
        return reply

    def form(self, action: str) -> dict[str, str]:
        """The values of the last page's form that is sent to this path."""
        assert self.page is not None
        parser = _Forms()
        parser.feed(self.page.text)
        for method, path, values in parser.forms:
            if method == "post" and path == action:
                return dict(values)
        raise AssertionError(f"{self.page.path} has no form for {action}: {[form[1] for form in parser.forms]}")

    async def send(self, action: str, **values: str) -> Reply:
        """Fills the last page's form for this path in, and sends it."""
        return await self.post(action, {**self.form(action), **values})

    async def token(self, path: str) -> str:
        """A fresh value of the field `act`, as a page would have it in a form for this path."""
        if browser_secret.COOKIE not in self.cookies:
            await self.request("HEAD", "/sign-in")
        key, stubs = CONSOLES[self.url]
        who = stubs.session(self.cookies.get(SESSION_COOKIE, ""))
        secret = browser_secret.read(self.cookies[browser_secret.COOKIE], key, NOW)
        assert secret is not None
        return form_tokens.new_token(secret.key(key, "forms", who), path, NOW)

    async def follow(self, reply: Reply) -> Reply:
        """The page that a redirect leads to."""
        assert reply.status == 303, (reply.status, reply.text)
        return await self.get(reply.headers["Location"])
