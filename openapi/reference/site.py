"""The frame of every page below /docs: its head, the contents of all pages, the search."""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from html import escape, unescape

from reference import errors
from reference.events import Schema

HOME = "docs"
API = "docs/api/"
ERRORS = API + "errors"
EVENTS = API + "events"
ASYNCAPI = "docs/asyncapi.json"
GUIDES = {
    HOME: "Quickstart",
    "docs/clients": "Client libraries",
    "docs/paging": "Pages, limits, retries",
    "docs/sync": "Keeping a copy",
    "docs/feed": "A feed from your PMS",
    "docs/webhooks": "Receiving webhooks",
    "docs/testing": "Testing your integration",
    "docs/events": "Event catalogue",
    "docs/changes": "Changes of the API",
}

# What integrators ask for, by the section that answers in other words.
ALSO_SAID = {
    "docs#introduction": ("authentication",),
    "docs/clients#client-libraries": ("sdk", "pip", "npm", "install"),
    "docs/paging#pages": ("pagination", "paging"),
    "docs/paging#limits": ("throttling",),
}
# A word in a larger share of the sections tells none of them apart.
COMMON_SHARE = 0.25


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
                entries = [
                    (operation["operationId"], operation["summary"])
                    for _, _, operation in operations(document, tag["name"])
                ]
            inside = "<ul>" + "".join(entry(f"{place}#{anchor}", label) for anchor, label in entries) + "</ul>"
        resources.append(entry(place, title_of_tag(tag["name"]), inside))
    return (
        f"<h2>Guides</h2>\n<ul>\n{guides}</ul>\n<h2>Reference</h2>\n<ul>\n{''.join(resources)}{entry(ERRORS, 'Errors')}"
        f'<li><a href="{base_url(document)}/openapi.json">OpenAPI document</a></li>\n'
        f'<li><a href="{href(ASYNCAPI, at)}">AsyncAPI document</a></li>\n</ul>\n'
    )


def operations(document: Schema, tag: str) -> list[tuple[str, str, Schema]]:
    """(path, verb, operation) of each operation of a resource."""
    return [
        (path, verb, operation)
        for path, item in document["paths"].items()
        for verb, operation in item.items()
        if tag in operation["tags"]
    ]


def search_index(document: Schema, pages: Mapping[str, str]) -> str:
    """The script that holds what the search knows: [title, kind, where, names, text] of each entry.

    names: those of an operation or of an object's fields. text: the other words of its section, each once.
    """
    headings = [
        (_text(inside), GUIDES.get(place) or "Object", f"{place}#{anchor}", _fields(text, anchor))
        for place, text in pages.items()
        for anchor, inside in re.findall(r'<h[23] id="([^"]+)">(.*?)</h[23]>', text)
        if anchor not in ("guides", "reference")
    ]
    entries = [
        (
            operation["summary"],
            f"{verb.upper()} {path}",
            f"{place_of_tag(tag['name'])}#{operation['operationId']}",
            operation["operationId"],
        )
        for tag in document["tags"]
        for path, verb, operation in operations(document, tag["name"])
    ]
    entries += [
        (code, "Error", f"{ERRORS}#{code}", " ".join(map(str, error.statuses))) for code, error in errors.ERRORS.items()
    ]
    # Of sections that have a word in their text, guides come first and objects last.
    entries = sorted(headings + entries, key=lambda entry: entry[1] == "Object")
    words_of = {where: _split(text) for where, text in _sections(pages, [entry[2] for entry in entries]).items()}
    counts = Counter(word for words in words_of.values() for word in set(words))
    common = {word for word, count in counts.items() if count > COMMON_SHARE * len(words_of)}
    lines = ",\n".join(
        json.dumps([*entry, " ".join(_further_words(entry, words_of[entry[2]], common))], ensure_ascii=False)
        for entry in entries
    )
    return f"// Made by `make openapi`: what the search of the pages finds.\nconst INDEX = [\n{lines}\n];\n"


def _sections(pages: Mapping[str, str], places: list[str]) -> dict[str, str]:
    """The text of each place, to the next one on its page."""
    starts: dict[str, dict[str, int]] = {}
    for where in places:
        page_of, _, anchor = where.partition("#")
        starts.setdefault(page_of, {})[where] = pages[page_of].index(f'id="{anchor}"')
    sections = {}
    for page_of, starts_of in starts.items():
        text = pages[page_of].partition("</main>")[0]
        ends = [*sorted(starts_of.values()), len(text)]
        for where, start in starts_of.items():
            section = text[start : ends[ends.index(start) + 1]]
            # Samples repeat each other, and what they show stands in the text.
            sections[where] = _text(re.sub("<pre>.*?</pre>", " ", section, flags=re.DOTALL).partition(">")[2])
    return sections


def _further_words(entry: tuple[str, str, str, str], words: Sequence[str], common: Collection[str]) -> list[str]:
    """The words of a section that its title and names do not have."""
    title, kind, where, names = entry
    named = set(_split(f"{title} {kind} {names}"))
    distinct = dict.fromkeys([*words, *ALSO_SAID.get(where, ())])
    return [word for word in distinct if len(word) > 2 and word not in named and word not in common]


def _split(text: str) -> list[str]:
    """The words, as the search's script splits them."""
    return re.findall("[a-z0-9]+", text.lower())


def _text(html: str) -> str:
    return unescape(re.sub("<.*?>", "", html, flags=re.DOTALL))


def _fields(page: str, anchor: str) -> str:
    """The names of fields below a heading of an object."""
    if not anchor.startswith("schema-"):
        return ""
    article = page.partition(f'id="{anchor}"')[2].partition("</article>")[0]
    return " ".join(re.findall(r"<dt><code>(\w+)</code>", article))
