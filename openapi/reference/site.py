"""The frame of every page below /docs: its head, the contents of all pages, the search."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from html import escape, unescape
from typing import Any

from reference import errors

Schema = dict[str, Any]
HOME = "docs"
API = "docs/api/"
ERRORS = API + "errors"
EVENTS = API + "events"
GUIDES = {
    HOME: "Quickstart",
    "docs/sync": "Keeping a copy",
    "docs/webhooks": "Receiving webhooks",
    "docs/events": "Event catalogue",
    "docs/changes": "Changes of the API",
}


def base_url(document: Schema) -> str:
    """The gateway puts each installation's own in its place."""
    url: str = document["servers"][0]["url"]
    return url


def place_of_tag(tag: str) -> str:
    """The page of a resource."""
    return API + tag.lower()


def title_of_tag(tag: str) -> str:
    """Its page is of what arrives; /docs/events has the events."""
    return "Deliveries" if tag == "Events" else tag


def href(target: str, at: str) -> str:
    """A link from a page to another one, relative: the pages may be served below any prefix."""
    place, mark, anchor = target.partition("#")
    if place == at and mark:
        return mark + anchor
    return posixpath.relpath(place, posixpath.dirname(at)) + mark + anchor


def page(document: Schema, at: str, title: str, main: str) -> str:
    """A whole page. at: its path, without a slash before it."""
    name = document["info"]["title"]
    full = f"{title} · {name}" if at != HOME else name
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(full)}</title>\n"
        f'<link rel="stylesheet" href="{href("docs/style.css", at)}">\n'
        f'<script src="{href("docs/index.js", at)}" defer></script>\n'
        f'<script src="{href("docs/script.js", at)}" defer></script>\n'
        f'</head>\n<body data-root="{href(HOME, at)}">\n'
        '<a class="skip" href="#content">Skip to the content</a>\n'
        f'<header><p><a href="{href(HOME, at)}">Makeready <span>API</span></a></p>\n'
        # The script shows it: without one it could do nothing.
        '<search hidden><label for="search">Search</label>'
        '<input type="search" id="search" placeholder="Search" autocomplete="off" spellcheck="false" role="combobox" '
        'aria-expanded="false" aria-controls="found" aria-autocomplete="list">'
        '<ul id="found" role="listbox" aria-label="Found" hidden></ul><p role="status" class="quietly"></p></search>\n'
        '<p class="to-contents"><a href="#contents">Contents</a></p></header>\n'
        f'<main id="content">\n{main}</main>\n'
        f'<nav id="contents" aria-label="Contents">{_contents(document, at)}</nav>\n'
        "</body>\n</html>\n"
    )


def _contents(document: Schema, at: str) -> str:
    def entry(place: str, label: str, inside: str = "") -> str:
        current = ' aria-current="page"' if place == at else ""
        return f'<li><a href="{href(place, at)}"{current}>{escape(label)}</a>{inside}</li>\n'

    guides = "".join(entry(place, label) for place, label in GUIDES.items())
    resources = []
    for tag in document["tags"]:
        place = place_of_tag(tag["name"])
        inside = ""
        if place == at:
            if tag["name"] == "Events":
                entries = [(f"event-{key}", key) for key in document["webhooks"]]
            else:
                entries = [(one["operationId"], one["summary"]) for _, _, one in operations(document, tag["name"])]
            inside = "<ul>" + "".join(entry(f"{place}#{anchor}", label) for anchor, label in entries) + "</ul>"
        resources.append(entry(place, title_of_tag(tag["name"]), inside))
    return (
        f"<h2>Guides</h2>\n<ul>\n{guides}</ul>\n<h2>Reference</h2>\n<ul>\n{''.join(resources)}{entry(ERRORS, 'Errors')}"
        f'<li><a href="{base_url(document)}/openapi.json">OpenAPI document</a></li>\n</ul>\n'
    )


def operations(document: Schema, tag: str) -> list[tuple[str, str, Schema]]:
    """(path, verb, operation) of each operation of a resource."""
    return [
        (path, verb, one)
        for path, item in document["paths"].items()
        for verb, one in item.items()
        if tag in one["tags"]
    ]


def search_index(document: Schema, pages: Mapping[str, str]) -> str:
    """The script that holds what the search knows: [title, kind, where, words] of each entry."""
    found: list[tuple[str, str, str, str]] = []
    for tag in document["tags"]:
        for path, verb, one in operations(document, tag["name"]):
            where = f"{place_of_tag(tag['name'])}#{one['operationId']}"
            found.append((one["summary"], f"{verb.upper()} {path}", where, one["operationId"]))
    found += [(code, "Error", f"{ERRORS}#{code}", "") for code in errors.ERRORS]
    for place, text in pages.items():
        found += [
            (_text(inside), GUIDES.get(place) or "Object", f"{place}#{anchor}", _words(text, anchor))
            for anchor, inside in re.findall(r'<h[23] id="([^"]+)">(.*?)</h[23]>', text)
            if anchor not in ("guides", "reference")
        ]
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in found)
    return f"// Made by `make openapi`: what the search of the pages finds.\nconst INDEX = [\n{lines}\n];\n"


def _text(html: str) -> str:
    return unescape(re.sub("<.*?>", "", html))


def _words(page: str, anchor: str) -> str:
    """The names of fields below a heading of an object."""
    if not anchor.startswith("schema-"):
        return ""
    article = page.partition(f'id="{anchor}"')[2].partition("</article>")[0]
    return " ".join(re.findall(r"<dt><code>(\w+)</code>", article))
