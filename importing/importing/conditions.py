"""Conditions on the columns of a row: which rows are imported, and when a field has a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from importing.patterns import Pattern
from importing.values import Columns

_ZERO = re.compile(r"[+-]?0*(?:[.,]0*)?")
WORDS: dict[str, Callable[[str], bool]] = {
    "blank": lambda text: not text,
    "zero": lambda text: "0" in text and _ZERO.fullmatch(text) is not None,
}
ALLOWED = """a condition is "blank", "zero", a list of texts, { pattern = '…' } or { not = … }"""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one column, whose text `clean` makes as the fields see it."""

    column: str
    clean: Callable[[str], str]
    holds_for: Callable[[str], bool]

    def holds(self, row: Columns) -> bool:
        return self.holds_for(self.clean(row[self.column]))


def condition(spec: object) -> Callable[[str], bool]:
    """The function that decides about a text. Raises ValueError, whose text says what is allowed."""
    if isinstance(spec, str):
        if spec not in WORDS:
            raise ValueError(f'"{spec[:60]}" is no condition; {ALLOWED}')
        return WORDS[spec]
    if isinstance(spec, list) and spec and all(isinstance(text, str) for text in spec):
        return _among(frozenset(spec))
    if isinstance(spec, Mapping) and len(spec) == 1:
        if "pattern" in spec and isinstance(spec["pattern"], str):
            return _matching(spec["pattern"])
        if "not" in spec:
            return _negated(condition(spec["not"]))
    raise ValueError(ALLOWED)


def _among(texts: Collection[str]) -> Callable[[str], bool]:
    return lambda text: text in texts


def _matching(pattern: str) -> Callable[[str], bool]:
    try:
        return Pattern(pattern).matches
    except ValueError as error:
        raise ValueError(f"pattern {error}") from None


def _negated(inner: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda text: not inner(text)
