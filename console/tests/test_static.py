"""Static files, what a page weighs, and what markup may not have."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
import tomllib
from pathlib import Path

import pytest

import console
from console import vendor
from console.kit.statics import FOLDER, Statics

from .browsing import Browser

TEMPLATES = sorted(Path(console.__file__).parent.rglob("*.html"))
# What needs eval, or another host, or what the policy forbids.
FORBIDDEN = re.compile(r"hx-on|js:|javascript:|hx-trigger=\"[^\"]*\[|\sstyle=|\son[a-z]+=|<style|\|safe|https?://")


def test_vendored_files_are_those_that_were_fetched() -> None:
    listed = {"vendor.toml"}
    for package in vendor.packages(vendor.LIST.read_text()).values():
        assert package["integrity"].startswith("sha512-")
        for name, file in package["files"].items():
            assert vendor.digest((vendor.FOLDER / name).read_bytes()) == file["sha256"], name
            listed.add(name)
    assert {path.name for path in vendor.FOLDER.iterdir()} == listed
    assert tomllib.loads(vendor.LIST.read_text())["package"]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_have_nothing_that_the_policy_forbids(template: Path) -> None:
    text = re.sub(r"\{#.*?#\}", "", template.read_text(), flags=re.DOTALL)
    assert not FORBIDDEN.search(text), FORBIDDEN.search(text)


def test_our_own_script_stays_small() -> None:
    for name, most in (
        ("console.js", 150),
        ("live.js", 50),
        ("writing.js", 60),
        ("store.js", 260),
        ("drafts.js", 190),
        ("offline.js", 150),
        ("worker.js", 190),
        ("keyboard.js", 90),
        ("palette.js", 130),
    ):
        script = (FOLDER / name).read_text()
        assert len(script.splitlines()) <= most
        assert "eval(" not in script and "innerHTML" not in script


async def test_files_are_served_under_their_hash_for_good(nobody: Browser) -> None:
    for path, file in Statics().by_path.items():
        async with nobody.http.get(nobody.url + path, headers={"Accept-Encoding": "gzip"}) as answer:
            assert answer.status == 200 and await answer.read() == file.plain
            assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
            assert answer.headers["Content-Encoding"] == "gzip"
            assert "Set-Cookie" not in answer.headers
        assert hashlib.sha256(file.plain).hexdigest()[:16] in path
        wrong = path.replace(path.split("/")[2], "0" * 16)
        assert (await nobody.get(wrong)).status == 404


async def test_a_first_visit_is_light(administrator: Browser) -> None:
    for path, most in (("/keys", 12_000), ("/account", 12_000), ("/audit", 12_000), ("/", 12_000)):
        page = await administrator.get(path)
        assert len(gzip.compress(page.text.encode(), 5)) <= most
        later = "palette.js"  # fetched when it is opened
        files = {
            file.path: file for file in Statics().by_path.values() if file.path in page.text and later not in file.path
        }
        assert {"console.css", "pages.js", "htmx.js", "icons.svg"} <= {path.rpartition("/")[2] for path in files}
        assert sum(len(file.compressed) for file in files.values()) + most <= 60_000


async def test_no_answer_says_which_server_it_is(administrator: Browser) -> None:
    """A page, what is missing, static files, health, an act that is refused, a stream, and what is no HTTP."""
    page = await administrator.get("/")
    style = re.search(r'href="(/static/[^"]+\.css)"', page.text)
    assert style is not None
    headers = [
        (await administrator.get(path)).headers
        for path in ("/", "/keys", "/nothing", style[1], "/static/none", "/healthz", "/files/none", "/live?topics=x+y")
    ]
    headers.append((await administrator.post("/keys/new", {})).headers)
    assert not any("Server" in answered for answered in headers)
    port = int(administrator.url.rpartition(":")[2])
    for sent in (b"GET / HTTP/9.9\r\n\r\n", b"\x00\r\n\r\n", b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 4") and b"\r\nserver:" not in answer.lower(), answer
