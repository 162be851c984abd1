"""Bytes of requests and answers, as text that a page can show."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable

from markupsafe import Markup, escape

# A string with the colon that makes it a key, a string, or a number and the like.
_TOKENS = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*|true|false|null)|([^"\dtfn-]+|.)', re.DOTALL)
COLOURED_CHARACTERS_MAX = 64 * 1024
# The client makes these by itself.
OF_CONNECTION = frozenset({"host", "content-length", "connection", "accept-encoding"})


def coloured(text: str) -> Markup:
    """JSON with its keys, strings and values marked; the characters stay exactly as they are."""
    if len(text) > COLOURED_CHARACTERS_MAX or not text.startswith(("{", "[")):
        return escape(text)
    parts = []
    for match in _TOKENS.finditer(text):
        string, colon, value, punctuation = match.groups()
        if string is not None:
            tag = "b" if colon else "i"
            parts.append(f"<{tag}>{escape(string)}</{tag}>{colon or ''}")
        elif value is not None:
            parts.append(f"<u>{value}</u>")
        else:
            parts.append(str(escape(punctuation)))
    return Markup("".join(parts))  # noqa: S704 (each part was escaped)


def indented(text: str) -> str:
    """The same JSON with an indent; empty if it is none."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return ""


def curl(url: str, headers: Iterable[tuple[str, str]], body: str) -> str:
    """A POST as a command of a POSIX shell, with the body's exact bytes."""
    lines = [f"curl {shlex.quote(url)}"]
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers if name.lower() not in OF_CONNECTION]
    return " \\\n  ".join([*lines, f"--data-binary {shlex.quote(body)}"])
