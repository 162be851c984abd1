"""Every page below /docs: the quickstart, the guides, and the reference."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

from reference import html, site
from reference.events import Schema
from reference.resources import Pages
from reference.words import CLIENTS, FEED, FEED_FILE, GUIDE, PAGING, QUICKSTART_FILES, SYNC, SYNC_FILE, TESTING

# Where a guide's program stands on its page.
PROGRAM = "<!-- The program, {}, stands here in the reference. -->"
LANGUAGES = ("curl", "Python", "TypeScript")
RECEIVING = """\
`GET /events` needs no address of yours. To have events delivered, subscribe an `https` address: the answer has the
secret that [verifies the deliveries](docs/webhooks#verifying). While you develop, `makeready-client listen --forward-to
http://localhost:3000/hooks` posts them to your machine, signed, without a tunnel."""


def pages(document: Schema, catalogue: str, changes: str) -> dict[str, str]:
    """The whole text of each page by its path. catalogue, changes: Markdown."""
    guides = {
        "docs/clients": ("Client libraries", CLIENTS.read_text()),
        "docs/paging": ("Pages, limits and retries", PAGING.read_text()),
        "docs/sync": ("Keeping a copy in step", _with_program(SYNC, SYNC_FILE)),
        "docs/feed": ("A feed from your PMS", _with_program(FEED, FEED_FILE)),
        "docs/webhooks": ("Receiving webhooks", GUIDE.read_text()),
        "docs/testing": ("Testing your integration", TESTING.read_text()),
        "docs/events": ("Events", _with_examples(catalogue, document["webhooks"])),
        "docs/changes": ("Changes of the API", changes),
    }
    pages_by_path = {site.HOME: ("Quickstart", _home(document))}
    pages_by_path |= {at: (title, _guide(text)) for at, (title, text) in guides.items()}
    pages_by_path |= {at: (title, main) for at, title, main in Pages(document).all()}
    return {at: site.page(document, at, title, main) for at, (title, main) in pages_by_path.items()}


def _with_program(guide: Path, program: Path) -> str:
    return guide.read_text().replace(PROGRAM.format(program.name), f"```python\n{program.read_text()}```")


def _with_examples(catalogue: str, webhooks: Schema) -> str:
    """The catalogue with a whole delivery below each event."""
    head, *events = re.split(r"(?m)^## ", catalogue)
    parts = [head]
    for event in events:
        content = webhooks[event.partition("\n")[0]]["post"]["requestBody"]["content"]["application/json"]
        (example,) = content["examples"].values()
        parts.append(
            f"{event.rstrip()}\n\n```json\n{json.dumps(example['value'], indent=2, ensure_ascii=False)}\n```\n\n"
        )
    return "## ".join(parts)


def _guide(text: str) -> str:
    """Links between documents become links between pages."""
    return html.markdown(re.sub(r"\]\((?:\.\./)?([\w/-]+)\.md(#[\w-]+)?\)", r"](\1\2)", text))


def _home(document: Schema) -> str:
    info = document["info"]
    resources = "".join(
        f'<li><a href="{site.href(site.place_of_tag(tag["name"]), site.HOME)}">'
        f"{escape(site.title_of_tag(tag['name']))}</a> {html.inline(tag['description'])}</li>\n"
        for tag in document["tags"]
    )
    return (
        f"<h1>{escape(info['title'])}</h1>\n"
        f'<p class="lead">Version 1, last changed {escape(info["version"])}. '
        f"Base URL {html.code(site.base_url(document))}</p>\n"
        f'<h2 id="quickstart">Quickstart</h2>\n{_quickstart()}{html.markdown(RECEIVING)}'
        f'<h2 id="resources">Resources</h2>\n<ul class="resources">\n{resources}</ul>\n'
        f'<h2 id="introduction">What holds everywhere</h2>\n{html.markdown(info["description"])}'
    )


def _quickstart() -> str:
    """The steps of the quickstart, from the programs that the tests run."""
    steps = [_steps(file.read_text()) for file in QUICKSTART_FILES]
    parts = []
    for number, of_each in enumerate(zip(*steps, strict=True), 1):
        (whole,) = {sentence for sentence, _ in of_each}  # the same in every language
        title, _, about = whole.partition(": ")
        sources = {label: code for label, (_, code) in zip(LANGUAGES, of_each, strict=True)}
        parts.append(
            f"<li><h3>{escape(title)}</h3>\n<p>{escape(about[0].upper() + about[1:])}</p>\n"
            f"{html.samples(f'step-{number}', sources)}</li>\n"
        )
    return f'<ol class="steps">\n{"".join(parts)}</ol>\n'


def _steps(program: str) -> list[tuple[str, str]]:
    """The sentences of the comment that begins each step, and its code."""
    parts = re.split(r"(?m)^(?:#|//) \d\. (.*)\n", program)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))
