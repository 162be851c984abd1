"""The pages for people: complete, with working links, and without anything from other hosts."""

from __future__ import annotations

import json
import shlex
from html.parser import HTMLParser

import pytest

from gateway.http.reference import BASE_URL
from reference import catalogue, document, page

DOCUMENT = document.made()
EVENTS = catalogue.markdown(DOCUMENT["webhooks"], DOCUMENT["components"]["schemas"])
PAGES = {
    "docs": page.reference(DOCUMENT),
    "docs/changes": page.changes(document.CHANGES.read_text()),
    "docs/webhooks": page.guide(page.GUIDE.read_text()),
    "docs/events": page.catalogue(EVENTS),
    "docs/sync": page.sync(page.SYNC.read_text()),
}
FILES = {f"webhooks/{file.name}" for file in page.GUIDE_FILES}
VOID = {"meta", "link", "br", "hr"}


class Reader(HTMLParser):
    """Collects anchors, links and blocks, and checks that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.tags: set[str] = set()
        self.blocks: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        assert not any(name.startswith("on") or name == "style" for name in given)
        if "id" in given:
            self.ids.append(given["id"] or "")
        if tag == "a":
            self.links.append(given["href"] or "")
        self.loads += [given[name] or "" for name in ("src", "href") if name in given and tag != "a"]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "pre":
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "pre" in self.open:
            self.blocks[-1] += data


READ = {path: Reader(text) for path, text in PAGES.items()}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_asks_no_other_host_and_runs_nothing(path: str) -> None:
    reader = READ[path]
    assert reader.loads in (["docs/style.css"], ["style.css"])
    assert not reader.tags & {"script", "img", "iframe", "style", "object", "form", "base"}


@pytest.mark.parametrize("path", PAGES)
def test_every_link_leads_somewhere(path: str) -> None:
    reader = READ[path]
    assert len(set(reader.ids)) == len(reader.ids)
    for link in reader.links:
        elsewhere = {
            "docs/changes",
            "docs/events",
            "docs/sync",
            "docs/webhooks",
            "../docs",
            "webhooks",
            "events",
            "sync",
            f"{BASE_URL}/openapi.json",
        }
        elsewhere |= {"docs/webhooks": FILES, "docs/sync": {"sync/copy.py"}}.get(path, set())
        assert link.removeprefix("#") in reader.ids or link in elsewhere


def test_the_guide_to_a_copy_has_the_program_as_the_tests_run_it() -> None:
    assert page.SYNC_FILE.read_text() in READ["docs/sync"].blocks


def test_every_operation_event_and_object_has_an_anchor() -> None:
    ids = set(READ["docs"].ids)
    for item in DOCUMENT["paths"].values():
        assert {operation["operationId"] for operation in item.values()} <= ids
    assert {f"event-{key}" for key in DOCUMENT["webhooks"]} <= ids
    assert {f"schema-{name}" for name in DOCUMENT["components"]["schemas"]} <= ids
    assert {"errors", "signature"} <= ids


def test_the_catalogue_describes_each_event_completely() -> None:
    parts = dict(zip(DOCUMENT["webhooks"], EVENTS.split("\n## ")[1:], strict=True))
    for key, part in parts.items():
        assert part.startswith(f"{key}\n") and f"| [`{key}`](#{key.replace('.', '')}) |" in EVENTS
        assert all(f"**{of}" in part for of in ("How often", "`data`", "`change`"))
        found = json.loads(part.partition("```json\n")[2].partition("\n```")[0])
        (example,) = DOCUMENT["webhooks"][key]["post"]["requestBody"]["content"]["application/json"][
            "examples"
        ].values()
        assert found == example["value"] and found["event"] == key


def test_every_operation_has_a_curl_line_that_a_shell_understands() -> None:
    lines = [block for block in READ["docs"].blocks if block.startswith("curl ")]
    assert len(lines) == sum(len(item) for item in DOCUMENT["paths"].values())
    for line in lines:
        words = shlex.split(line)
        assert any(word.startswith(BASE_URL) for word in words) and "{" not in "".join(words[:4])
        if "-d" in words:
            assert isinstance(json.loads(words[words.index("-d") + 1]), dict)


def test_the_sample_distinguishes_genuine_deliveries() -> None:
    import hashlib
    import hmac
    import time

    found: dict[str, object] = {}
    exec(page.VERIFYING, found)
    is_genuine = found["is_genuine"]
    assert callable(is_genuine)
    body, now = b'{"a":1}', int(time.time())

    def header(at: int) -> str:
        return f"t={at},v1=" + hmac.new(b"secret", b"%d." % at + body, hashlib.sha256).hexdigest()

    assert is_genuine("secret", header(now), body, now)
    assert not is_genuine("secret", header(now), body + b" ", now)
    assert not is_genuine("other", header(now), body, now)
    assert not is_genuine("secret", header(now - 400), body, now)


def test_the_changes_state_the_rule_of_ninety_days() -> None:
    assert "at least 90 days" in PAGES["docs/changes"]
