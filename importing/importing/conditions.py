"""Conditions on the columns of a row: which rows are imported, and when a field has a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

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
    """A condition on one column. clean: makes its text as the fields see it."""

    column: str
    clean: Callable[[str], str]
    holds_for: Callable[[str], bool]

    def holds(self, row: Columns) -> bool:
        return self.holds_for(self.clean(row[self.column]))


def condition(given: Any) -> Callable[[str], bool]:
    """The function that decides about a text. Raises ValueError, whose text says what is allowed."""
    if isinstance(given, str):
        if given not in WORDS:
            raise ValueError(f'"{given[:60]}" is no condition; {ALLOWED}')
        return WORDS[given]
    if isinstance(given, list) and given and all(isinstance(one, str) for one in given):
        return _among(frozenset(given))
    if isinstance(given, Mapping) and len(given) == 1:
        if "pattern" in given and isinstance(given["pattern"], str):
            return _matching(given["pattern"])
        if "not" in given:
            return _negated(condition(given["not"]))
    raise ValueError(ALLOWED)


def _among(wanted: Collection[str]) -> Callable[[str], bool]:
    return lambda text: text in wanted


def _matching(pattern: str) -> Callable[[str], bool]:
    try:
        return Pattern(pattern).matches
    except ValueError as error:
        raise ValueError(f"pattern {error}") from None


def _negated(inner: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda text: not inner(text)
