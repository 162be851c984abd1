"""`python -m reference.served` writes what the gateway serves below /docs: the pages, their search, the guides' files.

All of it is made from the committed document and the guides, so it is not in the repository: the installation and the
image's recipe run this. It needs nothing of the product, only the standard library and markdown-it-py.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from reference import asyncapi, page, site, words
from reference.events import Schema

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "gateway" / "gateway" / "pages"
DOCUMENT = FOLDER / "openapi.json"
CATALOGUE = words.DOCS / "events.md"
CHANGES = words.DOCS / "changes.md"
GENERATED = "<!--"  # begins the first line of the catalogue, which is no part of the page


def files() -> dict[str, str]:
    """The text of each file, by its name: docs.api.tickets.html is the page /docs/api/tickets."""
    document = json.loads(DOCUMENT.read_text())
    pages = page.pages(document, _catalogue(), CHANGES.read_text())
    files_by_path = {page_file(place): text for place, text in pages.items()}
    files_by_path["index.js"] = site.search_index(document, pages)
    programs = (*words.GUIDE_FILES, words.SYNC_FILE, words.FEED_FILE)
    files_by_path |= {f"{file.name}.txt": file.read_text() for file in programs}
    markdown = (CHANGES, words.CLIENTS, words.GUIDE, words.PAGING, words.SYNC, words.FEED, words.TESTING)
    guides = {"events": _catalogue().lstrip()} | {file.stem: file.read_text() for file in markdown}
    files_by_path |= {f"{name}.md.txt": text for name, text in guides.items()}
    events = json.dumps(asyncapi.of_events(document), ensure_ascii=False)
    return files_by_path | {"llms.txt": _index(document, guides), "asyncapi.json": events}


def _index(document: Schema, guides: Collection[str]) -> str:
    """/llms.txt: where each guide and each operation is described, in the form of llmstxt.org."""
    titles = {place: title for place, title in site.GUIDES.items() if place != site.HOME}
    assert sorted(titles) == sorted(f"docs/{name}" for name in guides), "a guide is not served as Markdown"
    base = site.base_url(document)
    lines = [f"# {document['info']['title']}", "", f"> The API is below {base}.", "", "## Guides", ""]
    lines += [f"- [{site.GUIDES[site.HOME]}](/{site.HOME})"]
    lines += [f"- [{title}](/{place}.md)" for place, title in titles.items()]
    lines += [f"- [AsyncAPI document of the events](/{site.ASYNCAPI})"]
    lines += ["", "## Operations", "", f"- [OpenAPI document]({base}/openapi.json)"]
    for tag in document["tags"]:
        place = site.place_of_tag(tag["name"])
        lines += [
            f"- [{verb.upper()} {path}](/{place}#{operation['operationId']}): {operation['summary']}"
            for path, verb, operation in site.operations(document, tag["name"])
        ]
    return "\n".join([*lines, f"- [Errors by code](/{site.ERRORS})", ""])


def page_file(place: str) -> str:
    """The name of a page's file."""
    return place.replace("/", ".") + ".html"


def _catalogue() -> str:
    """The event catalogue, without the line that says what wrote it."""
    return "".join(line for line in CATALOGUE.read_text().splitlines(keepends=True) if not line.startswith(GENERATED))


def write() -> None:
    """Writes the files, and removes pages that are none any more: the gateway serves every page that is there."""
    files_to_write = files()
    for file in FOLDER.glob("*.html"):
        if file.name not in files_to_write:
            file.unlink()
    for name, text in files_to_write.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    write()
