"""HTML in small pieces: escaped text, tables, fields, samples, Markdown, the type of a schema as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape, unescape

from markdown_it import MarkdownIt

from reference.events import Schema

Link = Callable[[str], str]

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_SCHEMAS = "#/components/schemas/"


def markdown(text: str) -> str:
    """Paragraphs, lists and tables; headings have anchors, as Markdown sites make them."""
    return _tables(
        re.sub(r"<h([23])>(.*?)</h\1>", _heading, _MARKDOWN.render(text)).replace("<pre>", '<pre tabindex="0">')
    )


def _heading(match: re.Match[str]) -> str:
    level, inside = match.groups()
    return f'<h{level} id="{slug(unescape(re.sub("<.*?>", "", inside)))}">{inside}</h{level}>'


def slug(heading: str) -> str:
    """The anchor that Markdown sites make from a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def inline(text: str) -> str:
    """One line of Markdown: code and emphasis, without a paragraph around it."""
    return str(_MARKDOWN.renderInline(text))


def _tables(html: str) -> str:
    """Tables that a narrow screen shows as blocks, each cell under the name of its column.

    The roles keep a table a table where its display is another one.
    """
    return re.sub(r"<table>.*?</table>", lambda table: _labelled(table[0]), html, flags=re.DOTALL)


def _labelled(table: str) -> str:
    heads = [unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<th\b[^>]*>(.*?)</th>", table)]
    number = 0

    def cell(_: re.Match[str]) -> str:
        nonlocal number
        label = heads[number % len(heads)]
        number += 1
        return f'<td role="cell" data-label="{escape(label)}">' if label else '<td role="cell">'

    table = re.sub("<td[^>]*>", cell, table).replace("<th></th>", '<th><span class="quietly">Meaning</span></th>')
    for tag, role in (("table", "table"), ("tr", "row"), ("thead", "rowgroup"), ("tbody", "rowgroup")):
        table = table.replace(f"<{tag}>", f'<{tag} role="{role}">')
    table = re.sub(r"<th\b[^>]*>", '<th role="columnheader" scope="col">', table)
    return f'<div class="wide">{table}</div>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. heads: text; rows: HTML."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    return _labelled(f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>") + "\n"


def fields(rows: Iterable[tuple[str, str, str]]) -> str:
    """Names with what they are and mean. rows: HTML of the name, of its type, of the meaning."""
    inside = "".join(f"<div><dt>{name} <span>{kind}</span></dt><dd>{about}</dd></div>\n" for name, kind, about in rows)
    return f'<dl class="fields">\n{inside}</dl>\n'


def code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def block(text: str) -> str:
    return f'<pre tabindex="0"><code>{escape(text)}</code></pre>\n'


def samples(name: str, sources: Mapping[str, str]) -> str:
    """The same in several languages, of which one is shown: by radio buttons, for there may be no script.

    name: unique on the page; sources: by the language's label.
    """
    choices, blocks = [], []
    for number, (label, source) in enumerate(sources.items()):
        checked = "" if number else " checked"
        choices.append(
            f'<input type="radio" name="{name}" id="{name}-{number}" value="{escape(label)}"{checked}>'
            f'<label for="{name}-{number}">{escape(label)}</label>'
        )
        blocks.append(block(source.rstrip("\n")))
    return f'<fieldset class="sample"><legend>Example in</legend>\n{"".join(choices)}\n{"".join(blocks)}</fieldset>\n'


def folded(summary: str, inside: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>\n{inside}</details>\n"


def folded_article(name: str, remark: str, article: str) -> str:
    """An article behind its name. A link to an anchor in it opens it."""
    about = f" <span>{escape(remark)}</span>" if remark else ""
    return f"<details><summary>{code(name)}{about}</summary>\n{article}</details>\n"


def json_block(document: object) -> str:
    return block(json.dumps(document, indent=2, ensure_ascii=False))


def type_of(schema: Schema, link: Link) -> str:
    """The type of a schema as text, in HTML. link: the address of a schema's name."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_SCHEMAS)
        return f'<a href="{escape(link(name))}">{escape(name)}</a>'
    if "anyOf" in schema:
        arms = [arm for arm in schema["anyOf"] if arm != {"type": "string"} or len(schema["anyOf"]) == 1]
        return " or ".join("null" if arm == {"type": "null"} else type_of(arm, link) for arm in arms)
    if "const" in schema:
        return "always " + code(json.dumps(schema["const"]))
    if "enum" in schema:
        return "one of " + ", ".join(code(str(value)) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {type_of(schema['items'], link)}{_bounds(schema)}"
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
    return "".join(f", {detail}" for detail in details)
