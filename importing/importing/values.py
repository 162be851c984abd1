"""Makes one field's value from the columns of a row, by the rules of a mapping.

The steps, in order: take the text (from a column, the first non-blank of several, a template, or a constant); strip
spaces; blank the texts that mean nothing; apply at most one of a table of values, steps, date formats, digits and a
pattern; put the default in place of a blank. `numbers` reads numbers, `conditions` looks at other columns.
"""

from __future__ import annotations

import bisect
import datetime
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from zoneinfo import ZoneInfo

from importing import patterns

Columns = Mapping[str, str]
Read = Callable[[Columns], str]

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NUMBER = re.compile(r"([0-9]+)(?:\.0*)?")
_DECIMAL = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_ADJOINING = re.compile(r"%[YymdHIMSfj]%[YymdHIMSfj]")
_UTC = ZoneInfo("UTC")
# What a rejects file adds to the name of its source: the number of a later one, and the kind of its records if an
# import makes several.
REJECTS_ENDING = r"(\.\d+)?\.rejects(-[a-z0-9-]+)?$"
DAYS_MAX = 366_000
DIRECTIVES = tuple("YymdbBaAjHIpMSfz")
TIMES = frozenset("HIpMSfz")


class Unreadable(Exception):  # noqa: N818
    """The field's rules can't read the text. The message says why, with the text; cause: without it."""

    def __init__(self, reason: str, cause: str = "", text: str | None = None) -> None:
        super().__init__(reason)
        self.cause = cause or reason
        self.text = text


def stripped(text: str) -> str:
    return text.strip()


def collapsed(text: str) -> str:
    """The text without spaces at its ends; each run of spaces and line ends is one space."""
    return " ".join(text.split())


def kept(text: str) -> str:
    return text


SPACES: dict[str, Callable[[str], str]] = {"strip": stripped, "collapse": collapsed, "keep": kept}


class FileName:
    """A form of file names with {PART} in it. Each part matches as little as the rest of the name allows."""

    def __init__(self, text: str) -> None:
        """Raises ValueError for an unmatched brace, for a form without a part, and for a part that it has twice."""
        template = Template(text)
        self.parts = template.columns
        if len(set(self.parts)) < len(self.parts):
            raise ValueError("has a part twice")
        pieces = [*(literal for literal, _ in template.pieces), template.end]
        self._pattern = patterns.Pattern("(?s)" + "(.+?)".join(map(patterns.escaped, pieces)))

    def read(self, name: str) -> dict[str, str] | None:
        """The parts of a file's name; None if the name has another form. It may end with .csv, .jsonl, .ndjson, .xlsx
        or .gz, and may be that of a rejects file."""
        plain = re.sub(r"\.(csv|jsonl|ndjson|xlsx)$", "", name.removesuffix(".gz"), flags=re.IGNORECASE)
        texts = self._pattern.groups_of(re.sub(REJECTS_ENDING, "", plain))
        return None if texts is None else dict(zip(self.parts, texts, strict=True))


class Template:
    """A text with {COLUMN} in it; {{ and }} stand for the braces themselves."""

    def __init__(self, text: str) -> None:
        """Raises ValueError for an unmatched brace, and for a text without a column."""
        self.pieces: list[tuple[str, str]] = []  # each a text and the column after it
        literal, start = "", 0
        for match in _PLACEHOLDER.finditer(text):
            literal += text[start : match.start()]
            start = match.end()
            if match[0] in ("{", "}"):
                raise ValueError("has a brace that belongs to no {COLUMN}; write {{ or }} for the brace itself")
            if match[1] is None:
                literal += match[0][0]
            else:
                self.pieces.append((literal, match[1]))
                literal = ""
        self.end = literal + text[start:]
        if not self.pieces:
            raise ValueError("names no {COLUMN}; write constant for a fixed text")
        self.columns = tuple(column for _, column in self.pieces)
        fixed = [part.replace("%", "%%") for part in (*(literal for literal, _ in self.pieces), self.end)]
        self._form = "%s".join(fixed)

    def filled(self, texts: Sequence[str]) -> str:
        """The template with the columns' texts in place; blank if all of them are."""
        return self._form % tuple(texts) if any(texts) else ""


# Of each date field; 3 MB.
DATES_KEPT = 16_384


@dataclass(frozen=True)
class Dates:
    """Date formats of strptime, tried in order. Texts without an offset are in the timezone; `plus` is added to the
    instant."""

    formats: tuple[str, ...]
    timezone: ZoneInfo | None
    plus: datetime.timedelta = datetime.timedelta()

    @functools.cached_property
    def read(self) -> Callable[..., str]:
        """Reads a text (text, days="0"): `YYYY-MM-DD`; the instant in UTC if there is a time or a timezone. Adds the
        days, each of 24 hours, and only whole ones to a date; if they are blank, so is the result. Raises Unreadable.

        Files repeat their dates: the hours of a year stand there once for each meter.
        """
        return functools.lru_cache(maxsize=DATES_KEPT)(self._read)

    def _read(self, text: str, days: str = "0") -> str:
        if not days:
            return ""
        if not (days.isascii() and _DECIMAL.fullmatch(days)) or abs(Decimal(days)) > DAYS_MAX:
            raise Unreadable(f'can\'t have "{days[:60]}" days added to it', "can't have the days added to it")
        plus = datetime.timedelta(days=float(days))
        for form in self.formats:
            try:
                moment = _usual(form, text) or datetime.datetime.strptime(text, form)
                # strptime accepts one digit for %m and %d: it would read "60409" as %y%m%d.
                if _ADJOINING.search(form) and moment.strftime(form) != text:
                    continue
            except ValueError:
                continue
            if moment.tzinfo is not None or self.timezone is not None:
                return self._instant(moment, plus)
            if plus.seconds or plus.microseconds:
                raise Unreadable("is a date, to which only whole days can be added")
            try:
                return (moment + plus).date().isoformat()
            except OverflowError:
                raise Unreadable("is out of range") from None
        raise Unreadable("matches no date format of the mapping")

    def _instant(self, moment: datetime.datetime, plus: datetime.timedelta) -> str:
        try:
            if moment.tzinfo is None and self.timezone == _UTC:
                instant = moment.replace(tzinfo=datetime.UTC)
            elif moment.tzinfo is None:
                assert self.timezone is not None
                local = moment.replace(tzinfo=self.timezone)
                instant = local.astimezone(datetime.UTC)
                if instant.astimezone(self.timezone).replace(tzinfo=None) != moment:
                    raise Unreadable("never was: the clocks of the timezone went forward then")
            else:
                instant = moment.astimezone(datetime.UTC)
            instant += self.plus + plus
        except OverflowError:
            raise Unreadable("is out of range") from None
        return instant.isoformat(timespec="microseconds")[:26] + "Z"


def _usual(form: str, text: str) -> datetime.datetime | None:
    """The result of strptime for a text with all its digits, in a seventh of the time; None if strptime must decide."""
    pattern, places = _pattern(form)
    match = pattern and pattern.fullmatch(text)
    if not match:
        return None
    digits = match.groups()
    try:
        return datetime.datetime(*(0 if place is None else int(digits[place]) for place in places))  # type: ignore[arg-type]
    except ValueError:
        return None


@functools.cache
def _pattern(form: str) -> tuple[re.Pattern[str] | None, tuple[int | None, ...]]:
    """A pattern for texts of the form with all their digits, and the groups of the year, the month and so on."""
    letters = directives(form)
    if not {"Y", "m", "d"} <= set(letters) <= set("YmdHMS") or "%%" in form:
        return None, ()
    pattern = re.sub("%[mdHMS]", "([0-9]{2})", re.escape(form).replace("%Y", "([0-9]{4})"))
    return re.compile(pattern), tuple(letters.index(letter) if letter in letters else None for letter in "YmdHMS")


def directives(form: str) -> list[str]:
    """The letters after the % signs of a date format, except those of %%; a lone % gives ""."""
    return [letter for letter in re.findall(r"%(.|$)", form, re.DOTALL) if letter != "%"]


def whole_number(text: str, digits: int) -> str:
    """ "2127.0" with five digits: "02127". Raises Unreadable."""
    match = _NUMBER.fullmatch(text)
    if match is None or not text.isascii():
        raise Unreadable("is not a whole number")
    return (match[1].lstrip("0") or "0").rjust(digits, "0")


class Pattern:
    """A regular expression; the value is the text of its groups, joined."""

    def __init__(self, text: str) -> None:
        """Raises ValueError if it is not a valid expression, or has no group."""
        self._pattern = patterns.Pattern(text)
        if not self._pattern.groups:
            raise ValueError("has no group; put what is wanted into ( and )")

    def read(self, text: str) -> str:
        """Raises Unreadable if the expression does not match the whole text."""
        groups = self._pattern.groups_of(text)
        if groups is None:
            raise Unreadable("does not match the pattern of the mapping")
        return "".join(groups)


class Steps:
    """Values by number: each applies from its number up to the next one's."""

    def __init__(self, table: Mapping[str, str]) -> None:
        """Raises ValueError if a key is not a number."""
        if wrong := [key for key in table if not _DECIMAL.fullmatch(key)]:
            raise ValueError(f'may have numbers as keys only, which "{wrong[0]}" is not')
        numbered = sorted((Decimal(key), value) for key, value in table.items())
        self._starts = [start for start, _ in numbered]
        self._values = [value for _, value in numbered]

    def read(self, text: str) -> str:
        """Raises Unreadable."""
        if not (text.isascii() and _DECIMAL.fullmatch(text)):
            raise Unreadable("is not a number")
        step = bisect.bisect_right(self._starts, Decimal(text))
        if step == 0:
            raise Unreadable("is below the first step of the mapping")
        return self._values[step - 1]
