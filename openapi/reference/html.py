"""HTML in small pieces: escaped text, tables, Markdown, the type of a schema as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt

Schema = dict[str, Any]

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_SCHEMAS = "#/components/schemas/"


def markdown(text: str) -> str:
    """Paragraphs, lists and tables."""
    return _scrolling(_MARKDOWN.render(text))


def inline(text: str) -> str:
    """One line of Markdown: code and emphasis, without a paragraph around it."""
    return str(_MARKDOWN.renderInline(text))


def _scrolling(html: str) -> str:
    """Makes a wide table scroll by itself, so that the page never does."""
    return html.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. heads: text; rows: HTML."""
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    return _scrolling(f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n")


def code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def block(text: str) -> str:
    return f'<pre tabindex="0"><code>{escape(text)}</code></pre>\n'


def folded(summary: str, inside: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>\n{inside}</details>\n"


def json_block(found: Any) -> str:
    return block(json.dumps(found, indent=2, ensure_ascii=False))


def link(name: str) -> str:
    """A link to a schema of the page."""
    return f'<a href="#schema-{escape(name)}">{escape(name)}</a>'


def type_of(schema: Schema) -> str:
    """The type of a schema as text, in HTML."""
    if "$ref" in schema:
        return link(schema["$ref"].removeprefix(_SCHEMAS))
    if "anyOf" in schema:
        arms = [one for one in schema["anyOf"] if one != {"type": "string"} or len(schema["anyOf"]) == 1]
        return " or ".join("null" if one == {"type": "null"} else type_of(one) for one in arms)
    if "const" in schema:
        return "always " + code(json.dumps(schema["const"]))
    if "enum" in schema:
        return "one of " + ", ".join(code(str(one)) for one in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {type_of(schema['items'])}{_bounds(schema)}"
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    form = f", {schema['format']}" if schema.get("format") in ("date", "date-time", "uri") else ""
    return escape(" or ".join(types)) + form + _bounds(schema)


def _bounds(schema: Schema) -> str:
    details = []
    if "minItems" in schema:
        details.append(f"at least {schema['minItems']}")
    if "maxItems" in schema:
        details.append(f"{schema['maxItems']} at most")
    if "pattern" in schema and schema["pattern"] == r"\S":
        details.append("not blank")
    if "maxLength" in schema:
        details.append(f"{schema['maxLength']:,} characters at most")
    if "minimum" in schema and "maximum" in schema:
        details.append(f"{schema['minimum']:,} to {schema['maximum']:,}")
    return "".join(f", {one}" for one in details)


def document(title: str, body: str, *, style: str) -> str:
    """A whole page. style: the path of its style sheet, relative to it."""
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n"
        f'<link rel="stylesheet" href="{style}">\n'
        f"</head>\n<body>\n{body}</body>\n</html>\n"
    )
