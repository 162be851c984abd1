"""Numbers as people write them: with a decimal comma, with separators of thousands, with the sign of a currency."""

from __future__ import annotations

import re
from collections.abc import Sequence

from importing.patterns import Pattern, escaped
from importing.values import Unreadable

DECIMALS = (".", ",")
# A blank stands for every space that separates thousands: the usual one, and those that do not break a line.
THOUSANDS = (".", ",", "'", "\u2019", " ")
_SPACES = "[ \u00a0\u202f\u2009]"
_MINUS = "\u2212"


class Number:
    """A format of numbers. `decimal` is one of DECIMALS; `thousands` is one of THOUSANDS, or empty. The texts of
    `currency` may stand before or behind a number."""

    def __init__(self, decimal: str, thousands: str, currency: Sequence[str]) -> None:
        """Raises ValueError if the two separators are the same."""
        if decimal == thousands:
            raise ValueError(f'has "{decimal}" as both decimal and thousands')
        group = _SPACES if thousands == " " else escaped(thousands)
        # Groups of two occur in India; the last one always has three digits.
        whole = rf"[0-9]{{1,3}}(?:{group}[0-9]{{2,3}})*{group}[0-9]{{3}}|[0-9]+" if thousands else "[0-9]+"
        signs = "|".join(escaped(symbol) for symbol in sorted(currency, key=len, reverse=True))
        sign = rf"(?:(?:{signs}){_SPACES}*)?" if signs else ""
        behind = rf"(?:{_SPACES}*(?:{signs}))?" if signs else ""
        self._pattern = Pattern(
            rf"(\()?([+{_MINUS}-])?{_SPACES}*{sign}([+{_MINUS}-])?"
            rf"({whole})?(?:{escaped(decimal)}([0-9]*))?{behind}([{_MINUS}-])?(\))?"
        )

    def read(self, text: str) -> str:
        """`1.234,50 €` as `1234.50`. A minus may stand on either side; so may brackets, which mean one too. Raises
        Unreadable."""
        bracket, minus, inner, whole, part, last, close = self._pattern.groups_of(text) or [""] * 7
        if not (whole or part) or bool(bracket) != bool(close):
            raise Unreadable("is not a number in the format of the mapping")
        signs = [sign for sign in (minus, inner, last, bracket) if sign]
        if len(signs) > 1:
            raise Unreadable("has more than one sign")
        digits = re.sub(r"[^0-9]", "", whole or "0")
        return f"{'-' if signs and signs != ['+'] else ''}{digits}{'.' if part else ''}{part}"
