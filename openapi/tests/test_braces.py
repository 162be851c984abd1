"""No generated text has braces that were to be filled in, such as those of an f-string without its f."""

from __future__ import annotations

import ast
import html
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.http.routes import ROUTES
from reference import document, imports
from reference.__main__ import _made
from reference.words import FEED_FILE, GUIDE_FILES, SYNC_FILE

# `{MORNING}`, `{count:,}`, `{error!r}`, `{row.name}`: what str.format and an f-string would fill in. `${name}` is
# filled in when TypeScript runs.
BRACES = re.compile(r"(?<!\$)\{[A-Za-z_]\w*(?:\.\w+|\[\w+\])*(?:![rsa])?(?::[^{}\"\s]*)?\}")
# The paths of the API, and how the documents write those of all kinds of records.
PATHS = sorted({*(route.path for route in ROUTES), "/changes/{kind}", "/snapshots/{kind}"}, key=len, reverse=True)
PATH = re.compile("|".join(f"{re.escape(path)}(?![/\\w{{])" for path in PATHS))
# Programs that are served as they are.
COPIES = {f"{file.name}.txt" for file in (*GUIDE_FILES, SYNC_FILE, FEED_FILE)}
MADE = {str(file.relative_to(document.ROOT)): text for file, text in _made() if file.name not in COPIES}


def unfilled(text: str) -> list[str]:
    return BRACES.findall(PATH.sub("", text))


def texts(name: str, content: str) -> Iterator[str]:
    """The parts of a file that are words: no code that fills braces in when it runs."""
    match Path(name).suffix:
        case ".json":
            yield from strings(json.loads(content))
        case ".html":
            yield html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"(?s)<pre.*?</pre>", "", content)))
        case ".md":
            if imports.BEGIN in content:  # the rest of docs/imports.md is written by hand
                content = content.partition(imports.BEGIN)[2].partition(imports.END)[0]
            yield re.sub(r"(?ms)^```.*?^```", "", content)
        case ".py":
            yield from words_of_python(content)
        case ".ts" | ".js":
            yield content
        case other:
            raise AssertionError(f"{name}: how are the words of a {other} told from its code?")


def strings(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        yield from document
        yield from (text for value in document.values() for text in strings(value))
    elif isinstance(document, list):
        yield from (text for value in document for text in strings(value))


def words_of_python(content: str) -> Iterator[str]:
    """Comments, docstrings and other plain strings."""
    tree = ast.parse(content)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@pytest.mark.parametrize("name", MADE)
def test_all_braces_of_a_generated_file_are_filled_in(name: str) -> None:
    assert [brace for text in texts(name, MADE[name]) for brace in unfilled(text)] == []


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.json", '{"paths": {"/x": {"description": "Or {MORNING}."}}}', ["{MORNING}"]),
        (
            "a.json",
            '{"a": "`GET /tickets/{ticket_id}`, `/changes/{kind}` and `{\\"photo_url\\": …}`, {field, from}"}',
            [],
        ),
        (
            "a.json",
            '{"a": "`/tickets/{ticket}` and /tickets/{ticket_id}/{KIND}"}',
            ["{ticket}", "{ticket_id}", "{KIND}"],
        ),
        ("a.html", "<p>Or {MORNING}, <code>/turns/{turn_id}</code></p><pre>print(f'{x}')</pre>", ["{MORNING}"]),
        ("docs/imports.md", f"{{a}} {imports.BEGIN} {{b}} {imports.END} {{c}}", ["{b}"]),
        ("a.md", "# A\n\n```\n{x}\n```\n\nOr {MORNING} of {count:,}.", ["{MORNING}", "{count:,}"]),
        ("a.py", 'def a():\n    """Or {MORNING}."""\n    return f"{x!r}"  # not {Y}', ["{MORNING}", "{Y}"]),
        ("a.ts", "/** Or {MORNING}, `a`. */\nconst a = `${b}`; // {c}", ["{MORNING}", "{c}"]),
        ("a.ts", 'const a = "{b}", c = `/tickets/${d}`, e = "/tickets/{ticket_id}";', ["{b}"]),
    ],
)
def test_braces_are_told_from_paths_and_code(name: str, content: str, expected: list[str]) -> None:
    assert [brace for text in texts(name, content) for brace in unfilled(text)] == expected
