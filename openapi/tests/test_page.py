"""The pages for people: complete, with working links, and without anything from other hosts."""

from __future__ import annotations

import gzip
import json
import posixpath
import re
from html.parser import HTMLParser

import pytest

from gateway.http.reference import BASE_URL
from reference import catalogue, document, page, resources, site, words
from reference.errors import ERRORS

DOCUMENT = document.made()
EVENTS = catalogue.markdown(DOCUMENT["components"]["schemas"])
PAGES = page.pages(DOCUMENT, EVENTS, document.CHANGES.read_text())
REFERENCE = [path for path in PAGES if path.startswith(site.API)]
FILES = {f"docs/webhooks/{file.name}" for file in words.GUIDE_FILES} | {
    "docs/sync/copy.py",
    "docs/feed/feed.py",
    site.ASYNCAPI,
}
OUTSIDE = {f"{BASE_URL}/openapi.json", "https://www.standardwebhooks.com"}
VOID = {"meta", "link", "br", "hr", "input"}


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
        attributes = dict(attrs)
        self.tags.add(tag)
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        if "id" in attributes:
            self.ids.append(attributes["id"] or "")
        if tag == "a":
            self.links.append(attributes["href"] or "")
        self.loads += [attributes[name] or "" for name in ("src", "href") if name in attributes and tag != "a"]
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
def test_a_page_loads_its_own_style_and_scripts_and_nothing_else(path: str) -> None:
    reader = READ[path]
    loaded = [posixpath.normpath(posixpath.join(posixpath.dirname(path), address)) for address in reader.loads]
    assert loaded == ["docs/style.css", "docs/index.js", "docs/script.js"]
    assert not reader.tags & {"img", "iframe", "style", "object", "form", "base"}


@pytest.mark.parametrize("path", PAGES)
def test_every_link_leads_somewhere(path: str) -> None:
    reader = READ[path]
    assert len(set(reader.ids)) == len(reader.ids)
    for link in set(reader.links) - OUTSIDE:
        place, _, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), place)) if place else path
        assert target in PAGES or target in FILES, link
        assert not anchor or anchor in READ[target].ids, link


def test_the_search_finds_every_operation_object_error_and_heading() -> None:
    script = site.search_index(DOCUMENT, PAGES)
    entries = json.loads(script.partition("const INDEX = ")[2].rstrip().removesuffix(";"))
    for _, _, where, *_ in entries:
        place, _, anchor = where.partition("#")
        assert anchor in READ[place].ids, where
    places = {where for _, _, where, *_ in entries}
    for tag in DOCUMENT["tags"]:
        place = site.place_of_tag(tag["name"])
        assert {
            f"{place}#{operation['operationId']}" for _, _, operation in site.operations(DOCUMENT, tag["name"])
        } <= places
    assert {where.partition("#")[2] for where in places} >= {
        f"schema-{schema}" for schema in DOCUMENT["components"]["schemas"]
    }
    assert {title for title, _, where, *_ in entries if where.startswith("docs/events")} >= set(DOCUMENT["webhooks"])
    assert {title for title, *_ in entries} >= set(ERRORS)
    (ticket,) = (names for title, kind, _, names, _ in entries if (title, kind) == ("Ticket", "Object"))
    assert "permission_to_enter" in ticket.split()


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("pagination", "docs/paging#pages"),
        ("429", "docs/api/errors#rate_limited"),
        ("cors", "docs#introduction"),
        ("timeout", "docs/webhooks#when-deliveries-arrive"),
        ("resident", "docs/api/units#recordNotice"),
        ("backup", "docs/sync#changes"),
    ],
)
def test_the_search_knows_the_words_of_each_section(word: str, place: str) -> None:
    script = site.search_index(DOCUMENT, PAGES)
    index = json.loads(script.partition("const INDEX = ")[2].rstrip().removesuffix(";"))
    assert word in next(f"{names} {text}" for _, _, where, names, text in index if where == place).split()
    assert len(gzip.compress(script.encode(), 7)) < 32_000  # a page that is read for the first time brings it


def test_guides_have_their_programs_as_the_tests_run_them() -> None:
    assert words.SYNC_FILE.read_text() in READ["docs/sync"].blocks
    assert words.FEED_FILE.read_text() in READ["docs/feed"].blocks


def test_every_operation_event_and_object_has_an_anchor_on_one_page() -> None:
    ids = [element_id for path in REFERENCE for element_id in READ[path].ids]
    anchors = [operation["operationId"] for item in DOCUMENT["paths"].values() for operation in item.values()]
    anchors += [f"event-{key}" for key in DOCUMENT["webhooks"]]
    anchors += [f"schema-{name}" for name in DOCUMENT["components"]["schemas"]]
    assert [ids.count(anchor) for anchor in anchors] == [1] * len(anchors)
    assert "signature" in ids


def test_what_differs_in_the_records_alone_is_folded_behind_the_first() -> None:
    folded = {path: re.findall(r"<details><summary><code>(.*?)</code>", PAGES[path]) for path in REFERENCE}
    of_changes = folded.pop(site.API + "changes")
    nouns = [path.removeprefix("/changes/") for path in DOCUMENT["paths"] if path.startswith("/changes/")]
    assert [operation for operation in of_changes if operation.startswith("GET")] == [
        *(f"GET /changes/{noun}" for noun in nouns[1:]),
        # That of readings has a parameter of its own.
        *(f"GET /snapshots/{noun}" for noun in nouns[1:] if noun != "readings"),
    ]
    assert len([summary for summary in of_changes if summary.endswith("ChangePage")]) == len(nouns) - 1
    assert not [name for names in folded.values() for name in names if " /" in name], (
        "operations that differ are folded"
    )


def test_the_quickstart_is_on_the_first_screen_and_is_the_programs_that_run() -> None:
    blocks = READ["docs"].blocks
    for file in words.QUICKSTART_FILES:
        parts = re.split(r"(?m)^(?:#|//) \d\. .*\n", file.read_text())[1:]
        assert [part.rstrip("\n") in blocks for part in parts] == [True] * 4
    assert PAGES["docs"].index('<ol class="steps">') < PAGES["docs"].index('id="resources"')


def test_the_catalogue_describes_each_event_completely() -> None:
    parts = dict(zip(DOCUMENT["webhooks"], EVENTS.split("\n## ")[1:], strict=True))
    examples = dict(zip(DOCUMENT["webhooks"], READ["docs/events"].blocks, strict=True))
    for key, part in parts.items():
        assert part.startswith(f"{key}\n") and f"| [`{key}`](#{key.replace('.', '')}) |" in EVENTS
        assert all(f"**{label}" in part for label in ("How often", "`data`", "`change`"))
        envelope = json.loads(examples[key])
        (example,) = DOCUMENT["webhooks"][key]["post"]["requestBody"]["content"]["application/json"][
            "examples"
        ].values()
        assert envelope == example["value"] and envelope["event"] == key


def test_every_operation_shows_its_examples_in_three_languages() -> None:
    blocks = [block for path in REFERENCE for block in READ[path].blocks]
    sources = [
        sample["source"]
        for item in DOCUMENT["paths"].values()
        for op in item.values()
        for sample in op["x-codeSamples"]
    ]
    assert len(sources) == 3 * sum(len(item) for item in DOCUMENT["paths"].values())
    assert not [source for source in sources if source.rstrip("\n") not in blocks]


def test_the_sample_distinguishes_genuine_deliveries() -> None:
    import hashlib
    import hmac
    import time

    names: dict[str, object] = {}
    exec(resources.VERIFYING, names)
    is_genuine = names["is_genuine"]
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
