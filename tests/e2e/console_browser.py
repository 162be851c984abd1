"""A browser without script before the console of a running system: it holds cookies and sends forms as they stand."""

from __future__ import annotations

import hashlib
import html
import http.client
import re
import time
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode

from testkit.patience import pauses

from .system import System

URL_ENCODED = "application/x-www-form-urlencoded"
MISSING = "navailable right now"  # stands in the place of a part
PASSWORD = "correct horse battery"  # of the administrators that `System.company` makes


@dataclass
class Page:
    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def words(self) -> str:
        """The page's main part without its tags."""
        main = self.text[self.text.index("<main") :]
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", main)).split())

    def element(self, element_id: str) -> str:
        """The text of the element with an id, which holds no other element."""
        match = re.search(rf'id="{element_id}"[^>]*>([^<]*)<', self.text)
        assert match, f"no element has the id {element_id}: {self.words}"
        return html.unescape(match[1])


class _Forms(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[tuple[str, list[tuple[str, str]]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "form":
            self.forms.append((values.get("action") or "" if values.get("method") == "post" else "", []))
        is_sent = values.get("type") not in ("checkbox", "radio") or "checked" in values
        if tag == "input" and self.forms and values.get("name") and is_sent:
            self.forms[-1][1].append((str(values["name"]), values.get("value") or ""))


@dataclass
class Browser:
    """`get`, `post`, and `send` for a form of the last page; redirects are followed."""

    system: System
    cookies: dict[str, str] = field(default_factory=dict)
    page: Page | None = None

    def sign_in(self, email: str) -> Browser:
        self.get("/sign-in")
        page = self.send("/sign-in", email=email, password=PASSWORD)
        assert page.status == 200 and "Sign out" in page.text, page.words
        return self

    def get(self, path: str, *, whole: bool = True) -> Page:
        """whole: looks again while a part is missing, as the console waits for a part only 1.5 s."""
        cookies = dict(self.cookies)  # one of them has the sentence that a page shows once
        for pause in pauses():
            page = self._request("GET", path, None)
            if not (whole and MISSING in page.text):
                break
            time.sleep(pause)
            self.cookies = dict(cookies)
        return page

    def post(self, path: str, values: list[tuple[str, str]]) -> Page:
        return self._request("POST", path, urlencode(values))

    def upload(self, action: str, name: str, content: bytes, field: str = "file", **values: str) -> Page:
        """Sends the last page's form for a path with a file, whose input stands after the fields."""
        boundary = "makeready-" + hashlib.md5(content, usedforsecurity=False).hexdigest()
        lead = f'--{boundary}\r\nContent-Disposition: form-data; name="'
        parts = [
            f'{lead}{control}"\r\n\r\n{value}\r\n' for control, value in self.form(action, **values) if control != field
        ]
        head = f'{lead}{field}"; filename="{name}"\r\nContent-Type: application/octet-stream\r\n\r\n'
        body = "".join([*parts, head]).encode() + content + f"\r\n--{boundary}--\r\n".encode()
        return self._request("POST", action, body, f"multipart/form-data; boundary={boundary}")

    def form(self, action: str, **values: str | list[str]) -> list[tuple[str, str]]:
        """The last page's form that is posted to this path, filled in."""
        assert self.page is not None
        fields = next((sent for path, sent in _Forms(self.page.text).forms if path == action), None)
        assert fields is not None, f"no form for {action}: {self.page.words}"
        kept = [(name, value) for name, value in fields if name not in values]
        for name, value in values.items():
            kept += [(name, entered) for entered in (value if isinstance(value, list) else [value])]
        return kept

    def send(self, action: str, **values: str | list[str]) -> Page:
        return self.post(action, self.form(action, **values))

    def _request(self, method: str, path: str, body: str | bytes | None, form: str = URL_ENCODED) -> Page:
        port = self.system.ports["MAKEREADY_ADMIN_PORT"]
        connection = http.client.HTTPConnection("localhost", int(port), timeout=60)
        sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if body is not None:
            sent |= {"Origin": f"http://localhost:{port}", "Content-Type": form}
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            page = Page(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()
        for cookie in page.headers.get_all("Set-Cookie", []):
            name, _, cookie_value = cookie.partition("=")
            value = cookie_value.partition(";")[0].strip('"')
            if value:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        if page.status == 303:
            return self.get(page.headers["Location"])
        self.page = page
        return page
