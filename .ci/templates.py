"""Templates have lines of 140 columns at most: `python templates.py [write] [ROOT]`.

`write` breaks longer lines where a page stays the same: inside a tag and inside an expression, at spaces of a text, and
beside tags that begin a block, where a browser ignores blanks. Without it, each longer line is a problem, and the exit
status is 1. A line that fits stays as it was written.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

WIDTH = 140
NARROW = 50  # a line that goes on somewhere else has so many columns, if it can
INDENT = "  "
# The elements beside which blanks are ignored, unless a style makes them part of a line of text.
BLOCKS = {
    "html",
    "head",
    "body",
    "main",
    "section",
    "article",
    "header",
    "footer",
    "nav",
    "aside",
    "div",
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "table",
    "caption",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "th",
    "td",
    "form",
    "fieldset",
    "legend",
    "details",
    "summary",
    "figure",
    "select",
    "optgroup",
    "option",
    "datalist",
    "template",
}
INLINE_CLASSES = {"one", "seg", "chip", "flat", "tag", "row-acts", "live", "person"}
# Each blank counts in these.
KEPT = {"pre", "textarea", "script", "style"}
KEPT_CLASSES = {"words", "text", "raw", "note-text", "code"}
VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "use", "path", "rect", "line", "circle"}
# How good a place for the end of a line is: before a block or after one, between statements, after the tag that begins
# a block, between attributes, in an expression, in a text.
BLOCK, STATEMENT, INSIDE, ATTRIBUTE, EXPRESSION, TEXT = 6, 5, 4, 3, 2, 1
LONG, LONG_TAG = 50, 110  # columns of an expression and of a tag that may well be broken inside
SHORT = 90  # blocks that follow each other share a line of so many columns
_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)|<!")
_JINJA = {"{%": "%}", "{{": "}}", "{#": "#}"}


class Places:
    """Where the text of a template may be broken, by offset; `drop`: the offsets of blanks that a break stands for."""

    def __init__(self, text: str) -> None:
        self.text = text
        # The quality, and below 0 how deep it is in elements and brackets.
        self.best: dict[int, tuple[int, int]] = {}
        # In a text of an expression: its quote. Texts that follow each other are one.
        self.strings: dict[int, str] = {}
        self.drop: set[int] = set()
        self._open: list[tuple[str, bool, bool]] = []  # name, is a block, keeps its blanks
        self._read()

    def _offer(self, at: int, quality: int, depth: int = 0, *, blank: bool = False) -> None:
        if any(keeps for _, _, keeps in self._open):
            return
        self.best[at] = max((quality, -depth - len(self._open)), self.best.get(at, (0, 0)))
        if blank and self.text[at - 2 : at] == "%}" and self.text.startswith("{%", at + 1):
            del self.best[at]  # a newline there would be none of the page
        elif blank:
            self.drop.add(at)

    def _read(self) -> None:
        at, text = 0, self.text
        while at < len(text):
            if text[at : at + 2] in _JINJA:
                at = self._jinja(at, in_text=True)
            elif tag := _TAG.match(text, at):
                at = self._tag(at, tag)
            else:
                if text[at] == " ":
                    self._offer(at, TEXT, blank=True)
                at += 1

    def _jinja(self, at: int, *, in_text: bool) -> int:
        """Reads `{% … %}`, `{{ … }}` or `{# … #}`; returns the offset after it."""
        kind, quote, start, depth = self.text[at : at + 2], "", at, 0
        end = _JINJA[kind]
        blanks: list[tuple[int, int]] = []
        at += 2
        while at < len(self.text) and (quote or not self.text.startswith(end, at)):
            character = self.text[at]
            if quote:
                if character == " ":
                    self.strings[at + 1] = quote
                    self._offer(at + 1, TEXT, 2 * depth + 40)
                quote = "" if character == quote else quote
            elif character in "'\"" and kind != "{#":
                quote = character
            elif character == " " and at > start + 2:
                blanks.append((at, depth))
            depth += (character in "([{" and not quote) - (character in ")]}" and not quote)
            at += 1
        at += 2
        for blank, inside in blanks:
            if not self.text.startswith(end, blank + 1):
                is_word = self.text[blank - 1] != ","
                is_condition = re.match(r"{% ?(if|elif|for)", self.text[start:at])
                quality, deeper = (EXPRESSION, 0) if at - start > LONG and not is_condition else (TEXT, 20)
                self._offer(blank, quality, 2 * inside + is_word + deeper, blank=True)
        # The newline after a statement, and blanks before one that begins a line, are none of the page.
        if in_text and kind == "{%" and self.text.startswith("{%", at):
            self._offer(at, STATEMENT)
        return at

    def _tag(self, at: int, tag: re.Match[str]) -> int:
        """Reads a tag; returns the offset after it."""
        start, closes, name = at, tag[1] == "/", (tag[2] or "").lower()
        at = tag.end()
        quote, blanks = "", list[int]()
        while at < len(self.text) and (quote or self.text[at] != ">"):
            if self.text[at : at + 2] in _JINJA:
                at = self._jinja(at, in_text=False)
                continue
            character = self.text[at]
            if quote:
                quote = "" if character == quote else quote
            elif character in "'\"":
                quote = character
            elif character == " ":
                blanks.append(at)
            at += 1
        at += 1
        for blank in blanks:
            quality, deeper = (ATTRIBUTE, 0) if at - start > LONG_TAG else (TEXT, 20)
            self._offer(blank, quality, deeper, blank=True)
        classes = set(" ".join(re.findall(r'\bclass="([^"]*)"', self.text[start:at])).split())
        is_block = name in BLOCKS and not classes & INLINE_CLASSES
        if closes:
            while self._open:
                opened = self._open.pop()
                if opened[0] == name:
                    is_block = opened[1]
                    break
        if is_block and start and self.text[start - 1] not in " \n":
            self._offer(start, INSIDE if closes else BLOCK)
        if not closes and name and name not in VOID and self.text[at - 2] != "/":
            self._open.append((name, is_block, name in KEPT or bool(classes & KEPT_CLASSES)))
        if is_block and self.text[at : at + 1] not in (" ", "\n", ""):
            self._offer(at, BLOCK if closes else INSIDE)
        return at


def formatted(text: str) -> str:
    """The template with its long lines broken."""
    places = Places(text)
    pieces: list[str] = []
    start = 0
    for line in text.splitlines(keepends=True):
        indent = line[: len(line) - len(line.lstrip(" "))]
        pieces += _pieces(places, start, start + len(line.rstrip("\n")), indent, indent)
        start += len(line)
    return "\n".join(pieces) + "\n" * text.endswith("\n")


def _pieces(places: Places, begin: int, end: int, prefix: str, indent: str) -> Iterator[str]:
    """The lines for a part of a line. prefix: before the first of them, `indent` plus two before the others."""
    part = places.text[begin:end].lstrip(" ")
    begin = end - len(part)
    if len(prefix) + len(part) <= WIDTH:
        yield prefix + part.rstrip(" ")
        return
    offers = {at: places.best[at] for at in range(begin + 1, end) if at in places.best}
    outermost = max(offers.values(), default=(0, 0))
    if outermost[0] >= STATEMENT:
        ends = [at for at, best in offers.items() if best == outermost]
        ends = [at for at, after in zip(ends, [*ends[1:], end], strict=True) if after - at > 0]
        at = begin
        while at < end:
            later = [place for place in ends if place > at]
            short = [place for place in later if place - at <= SHORT]
            stop = short[-1] if short else next(iter(later), end)
            if end - at <= SHORT:
                stop = end
            yield from _pieces(places, at, stop, prefix, indent + INDENT)
            at, prefix = stop, indent + INDENT
        return
    room = begin + WIDTH - len(prefix)
    fitting = [at for at in offers if at + (at in places.strings) <= room]
    wide = [at for at in fitting if at >= begin + NARROW] or fitting or list(offers)[:1]
    if not wide:
        yield prefix + part.rstrip(" ")
        return
    stop = max(wide, key=lambda at: (places.best[at][0], places.best[at][1], at))
    quote = places.strings.get(stop, "")
    yield prefix + (places.text[begin:stop] + quote if quote else places.text[begin:stop].rstrip(" "))
    yield from _pieces(places, stop, end, indent + INDENT + quote, indent)


def templates(root: Path) -> list[Path]:
    """The console's templates."""
    return sorted(root.glob("console/console/**/templates/*.html"))


def main(arguments: list[str]) -> int:
    """Prints a problem a line, or writes the templates."""
    root = Path(arguments[-1]) if arguments and arguments[-1] != "write" else Path(__file__).resolve().parents[1]
    problems = []
    for path in templates(root):
        text = path.read_text()
        if "write" in arguments and (new_text := formatted(text)) != text:
            path.write_text(new_text)
            text = new_text
        problems += [
            f"{path.relative_to(root)}:{number}: {len(line)} columns, more than {WIDTH}: `make templates` breaks it"
            for number, line in enumerate(text.splitlines(), 1)
            if len(line) > WIDTH
        ]
    sys.stdout.write("".join(f"{line}\n" for line in problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
