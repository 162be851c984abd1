"""The templates: `AREA/NAME.html` from an area's folder `templates`, all others from the kit's."""

from __future__ import annotations

from pathlib import Path

import jinja2

from console.kit import attempt_words, body_text, charts, links, texts, times
from console.kit.statics import Statics

FOLDER = Path(__file__).resolve().parents[1]


def environment(statics: Statics) -> jinja2.Environment:
    """Escapes everything, and fails on a name that a page did not give."""
    areas = {
        folder.name: jinja2.FileSystemLoader(folder / "templates")
        for folder in sorted((FOLDER / "areas").iterdir())
        if (folder / "templates").is_dir()
    }
    templates = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PrefixLoader(areas), jinja2.FileSystemLoader(FOLDER / "kit" / "templates")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
        extensions=["jinja2.ext.i18n"],
    )
    # A text's values are parameters, which are escaped; line ends and indents of a block are none of its text.
    templates.policies["ext.i18n.trimmed"] = True
    templates.install_gettext_translations(texts.TRANSLATIONS, newstyle=True)  # type: ignore[attr-defined]
    templates.globals.update(static=statics.path, count=times.count, amount=times.amount, charts=charts, links=links)
    templates.globals.update(address=links.address, attempt_words=attempt_words, body_text=body_text)
    templates.filters.update(initials=initials, browser=browser)
    return templates


BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrom", "Chrome"), ("Safari", "Safari"))
SYSTEMS = (("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"), ("Mac OS", "macOS"))


def browser(user_agent: str) -> str:
    """ "Firefox on Windows", as far as the browser's header says so."""
    name = next((name for mark, name in BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in (*SYSTEMS, ("Linux", "Linux")) if mark in user_agent), "")
    return " on ".join(part for part in (name, system) if part) or user_agent[:60] or "unknown"


def initials(name: str) -> str:
    """Two letters for a face: "Dana Adler" has DA, "José" has J."""
    words = name.split()
    return "".join(word[0] for word in (words[:1] + words[-1:] if len(words) > 1 else words))[:2].upper() or "?"
