"""The contract as the gateway serves it: public, read-only, with this installation's address."""

from __future__ import annotations

import re

import pytest

from gateway.http.reference import BASE_URL, Reference
from testkit.gateways import Operator
from testkit.raw_http import Api

VERBS = ("HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE")


async def test_the_document_needs_no_key_and_looks_at_none(api: Api, operator: Operator) -> None:
    document = await api.get("/openapi.json")
    assert document.status == 200 and document.json["openapi"].startswith("3.1")
    assert document.header("Content-Type") == "application/json"
    assert document.header("Cache-Control") == "no-store"
    assert document.header("RateLimit") is None
    assert not [name for name, _ in document.headers if name.lower().startswith("access-control")]
    key_id, revoked = await operator.minted(await operator.company())
    await operator.revoke(key_id)
    for key in ("mk_nonsense", revoked):
        assert (await api.get("/openapi.json", key)).body == document.body


async def test_the_document_names_the_installation(api: Api) -> None:
    document = (await api.get("/openapi.json")).json
    assert [server["url"] for server in document["servers"]] == [f"http://127.0.0.1:{api.port}/api/v1"]
    assert BASE_URL not in (await api.get("/openapi.json")).body.decode()


def test_an_address_is_quoted_where_it_stands() -> None:
    reference = Reference('https://example.org/a"b/api/v1')
    assert rb'"https://example.org/a\"b/api/v1"' in reference.document.body


async def test_the_document_takes_no_query(api: Api) -> None:
    for query in ("?x=1", "?limit=1", "?key=mk_x"):
        response = await api.get("/openapi.json" + query)
        assert (response.status, response.code) == (400, "invalid_request")
    assert (await api.get("/openapi.json?")).status == 200


@pytest.mark.parametrize("verb", VERBS)
async def test_the_document_can_only_be_read(api: Api, verb: str) -> None:
    response = await api.request(verb, "/openapi.json")
    assert (response.status, response.header("Allow")) == (405, "GET")


FILES = ("receiver.py", "receiver.ts", "receiver.sh", "vectors.json")
PAGES = {"//docs": "text/html", "//docs/changes": "text/html", "//docs/style.css": "text/css"}
PAGES |= {"//docs/events": "text/html", "//docs/sync": "text/html", "//docs/sync/copy.py": "text/plain"}
PAGES |= {"//llms.txt": "text/plain", "//docs/sync.md": "text/plain"}
PAGES |= {"//docs/feed": "text/html", "//docs/feed/feed.py": "text/plain"}
PAGES |= {
    "//docs/api/tickets": "text/html",
    "//docs/index.js": "text/javascript",
    "//docs/script.js": "text/javascript",
}
PAGES |= {"//docs/webhooks": "text/html"} | {f"//docs/webhooks/{name}": "text/plain" for name in FILES}


@pytest.mark.parametrize(("path", "kind"), PAGES.items())
async def test_a_page_may_load_its_own_style_and_script_and_nothing_else(api: Api, path: str, kind: str) -> None:
    page = await api.get(path)
    assert page.status == 200 and page.header("Content-Type") == f"{kind}; charset=utf-8"
    policy = (page.header("Content-Security-Policy") or "").split("; ")
    assert {"default-src 'none'", "script-src 'self'", "style-src 'self'"} <= set(policy)
    assert "unsafe" not in str(policy)
    assert page.header("X-Content-Type-Options") == "nosniff"
    assert (await api.request("HEAD", path)).header("Content-Length") == str(len(page.body))
    refused = await api.request("POST", path)
    assert (refused.status, refused.header("Allow")) == (405, "GET, HEAD")


async def test_the_page_shows_the_installations_address(api: Api) -> None:
    page = (await api.get("//docs")).body.decode()
    assert f"export MAKEREADY_BASE_URL=&#x27;http://127.0.0.1:{api.port}/api/v1&#x27;" in page
    meta = (await api.get("//docs/api/meta")).body.decode()
    assert f"curl &#x27;http://127.0.0.1:{api.port}/api/v1/whoami&#x27;" in meta
    assert BASE_URL not in page


def test_an_address_is_no_markup() -> None:
    reference = Reference("https://example.org/a<b&c/api/v1")
    assert b"https://example.org/a&lt;b&amp;c/api/v1" in reference.pages["/docs"].body
    assert b"a<b" not in reference.pages["/docs"].body


async def test_the_index_leads_to_each_guide_and_operation(api: Api) -> None:
    index = (await api.get("//llms.txt")).body.decode()
    places = re.findall(r"^- \[.*?\]\((\S+)\)", index, re.MULTILINE)
    pages = {place.partition("#")[0] for place in places if place.startswith("/")}
    texts = {place: (await api.get(f"/{place}")) for place in sorted(pages)}
    assert {page.status for page in texts.values()} == {200} and "/docs/webhooks.md" in texts
    for place in places:
        path, _, anchor = place.partition("#")
        assert not anchor or f'id="{anchor}"' in texts[path].body.decode(), place
    document = (await api.get("/openapi.json")).json
    operations = [f"{verb.upper()} {path}" for path, verbs in document["paths"].items() for verb in verbs]
    assert sorted(re.findall(r"^- \[([A-Z]+ /\S+)\]", index, re.MULTILINE)) == sorted(operations)
    assert f"http://127.0.0.1:{api.port}/api/v1/openapi.json" in places


@pytest.mark.parametrize("name", ["changes", "events", "feed", "sync", "webhooks"])
async def test_a_guide_is_served_as_markdown(api: Api, name: str) -> None:
    guide = (await api.get(f"//docs/{name}.md")).body.decode()
    assert guide.startswith("# ") and BASE_URL not in guide
    page = (await api.get(f"//docs/{name}")).body.decode()
    headings = re.findall(r"^## (.+)$", guide, re.MULTILINE)
    assert headings and len(headings) <= page.count("<h2")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", guide):
        assert (await api.get(f"//docs/{target}")).status == 200, target


async def test_the_short_address_of_the_errors_leads_to_them(api: Api) -> None:
    response = await api.get("//docs/errors")
    assert (response.status, response.header("Location")) == (302, "/docs/api/errors")
    assert b'id="not_found"' in (await api.get("//docs/api/errors")).body


@pytest.mark.parametrize("path", ["//", "//docs/"])
async def test_the_root_leads_to_the_reference(api: Api, path: str) -> None:
    for method in ("GET", "HEAD"):
        response = await api.request(method, path)
        assert (response.status, response.header("Location")) == (302, "/docs")
    response = await api.request("POST", path)
    assert (response.status, response.header("Allow")) == (405, "GET, HEAD")


async def test_a_browser_gets_a_page_where_the_reference_has_none(api: Api) -> None:
    browser = "text/html,application/xhtml+xml,*/*;q=0.8"
    response = await api.request("GET", "//docs/no-such-page", Accept=browser)
    assert (response.status, response.header("Content-Type")) == (404, "text/html; charset=utf-8")
    assert b"href=/docs>" in response.body
    program = await api.request("GET", "//docs/no-such-page")
    elsewhere = await api.request("GET", "/no-such-path", Accept=browser)
    assert [answer.json["error"]["code"] for answer in (program, elsewhere)] == ["not_found"] * 2
