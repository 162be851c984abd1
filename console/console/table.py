"""`make pages`: the table of all pages in docs/console.md, made of pages.py; a test compares them."""

from __future__ import annotations

from pathlib import Path

from console.kit.visit import ADMINISTRATOR, NOBODY, STAFF, Page
from console.pages import PAGES

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "console.md"
BEGIN, END = "<!-- pages: made by `make pages` -->", "<!-- end of pages -->"
LETTERS = {NOBODY: "N", STAFF: "S", ADMINISTRATOR: "A"}


def table() -> str:
    """A Markdown table of all paths by their first word and by who may open them, in the order of pages.py."""
    rows: dict[tuple[str, str], list[str]] = {}
    for page in PAGES:
        area = page.path.split("/")[1] or "home"
        paths = rows.setdefault((area, _who(page)), [])
        if page.path not in paths:
            paths.append(page.path)
    lines = ["| | who | |", "|---|---|---|"]
    lines += [f"| {area} | {who} | {' '.join(f'`{path}`' for path in paths)} |" for (area, who), paths in rows.items()]
    return "\n".join(lines)


def _who(page: Page) -> str:
    return " ".join(letter for kind, letter in LETTERS.items() if kind in page.kinds)


def with_table(text: str) -> str:
    """The document with the table as it is now."""
    before, _, remainder = text.partition(BEGIN)
    _, _, after = remainder.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(with_table(DOCUMENT.read_text()))
