"""A first look at a file: its columns with samples, and the kind of record that it probably has."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from importing.errors import ImportFault
from importing.kinds import KINDS, Column, Kind
from importing.opening import opened
from importing.rows import Reading

SAMPLES, SAMPLE_CHARACTERS, ROWS, COLUMNS_MAX = 5, 80, 500, 600
# The formats of dates that files have, in the order in which they are tried. A day before a month first where a value
# shows it.
FORMATS = (
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%m/%d/%y",
    "%Y%m%d",
    "%b %d, %Y",
    "%d-%b-%Y",
)
# What files call the fields, besides their own names.
OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "external_id": ("id", "key", "number", "reference", "ref", "code", "uid", "guid"),
    "property": ("propertyid", "propertycode", "building", "buildingid", "site", "community"),
    "unit": ("unitid", "apartment", "flat", "suite"),
    "asset": ("assetid", "equipment"),
    "meter": ("meterid",),
    "turn": ("turnid",),
    "name": ("title", "label", "description"),
    "title": ("subject", "summary", "name"),
    "address": ("street", "streetaddress", "siteaddress", "address1"),
    "postal_code": ("zip", "zipcode", "postcode"),
    "created_at": ("created", "opened", "createdon", "opendate", "opendt", "datecreated"),
    "completed_at": ("completed", "closed", "closedate", "closeddt", "completedon"),
    "category": ("type", "problemtype"),
    "description": ("details", "notes", "comments"),
    "email": ("mail", "emailaddress"),
    "assignee": ("assignedto", "technician"),
    "due_date": ("due", "dueon"),
    "task_name": ("task", "name", "title"),
    "consumption": ("usage", "amount", "quantity", "value"),
    "period_start": ("start", "from", "startdate"),
    "period_end": ("end", "to", "enddate"),
    "body": ("text", "message"),
    "subject": ("title", "headline"),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A column of a file. samples: up to five different values, shortened."""

    name: str
    samples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What a first look shows. description: how the file is read; empty if that needs no word. rows: the number of the
    file's rows, up to ROWS. kind: the probable one. is_plain: the columns have that kind's names. more: the number of
    columns past COLUMNS_MAX, which are left out: a form with thousands of choices a field is of use to no one."""

    columns: tuple[Seen, ...] = ()
    description: str = ""
    rows: int = 0
    kind: str = ""
    is_plain: bool = False
    reading: Reading = field(default_factory=Reading)
    more: int = 0


def look(path: Path, reading: Reading) -> Facts:
    """Reads the beginning of a file. Raises ImportFault."""
    samples: dict[str, dict[str, None]] = {}
    count = 0
    with opened(path, reading) as opened_file:
        header = opened_file.source.columns or ()
        samples = {name: {} for name in header[:COLUMNS_MAX]}
        more = set(header[COLUMNS_MAX:])
        for row in opened_file.source.rows():
            count += 1
            for name, value in row.values.items():
                if len(samples) == COLUMNS_MAX and name not in samples:
                    more.add(name)
                else:
                    texts = samples.setdefault(name, {})
                    text = "" if value is None else str(value).strip()
                    if text and len(texts) < SAMPLES:
                        texts.setdefault(text[:SAMPLE_CHARACTERS])
            if count >= ROWS:
                break
        description = opened_file.description
        reading = opened_file.reading
    if not samples:
        raise ImportFault(f"{path.name} has no row that can be read.")
    columns = tuple(Seen(name, tuple(_printable(text) for text in texts)) for name, texts in samples.items())
    kind = guessed(list(samples))
    is_plain = kind is not None and not more and set(samples) <= set(kind.fields) and set(kind.required) <= set(samples)
    return Facts(columns, description, count, kind.name if kind else "", is_plain, reading, len(more))


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def guessed(columns: Sequence[str]) -> Kind | None:
    """The kind whose fields the columns fit best; None if none fits."""
    best, most = None, 0.0
    for kind in KINDS.values():
        sources = matched(kind, columns)
        named = sum(1 for name in sources if name in columns)
        required = sum(1 for name in kind.required if name in sources) / len(kind.required)
        score = 3 * required + len(sources) / 4 + named / 2
        if required >= 0.5 and score > most:
            best, most = kind, score
    return best


def matched(kind: Kind, columns: Sequence[str]) -> dict[str, str]:
    """The column that each field probably comes from."""
    plain: dict[str, str] = {}
    for name in columns:
        plain.setdefault(_plain(name), name)
    sources: dict[str, str] = {}

    def is_free(name: str) -> bool:
        return name not in sources.values()

    def take(field: str, source: str | None) -> None:
        if source is not None and field not in sources:
            sources[field] = source

    # A field's own name goes before what others call it, and that before names whose last words it is: "Site Code".
    for field_name in kind.fields:
        take(field_name, plain.get(_plain(field_name)))
    for field_name in kind.fields:
        take(
            field_name,
            next(
                (plain[text] for text in OTHER_NAMES.get(field_name, ()) if text in plain and is_free(plain[text])),
                None,
            ),
        )
    ends = {name: _ends(name) for name in plain.values()}
    for field_name in kind.fields:
        others = {_plain(field_name), *OTHER_NAMES.get(field_name, ())}
        take(
            field_name, next((name for name, last_words in ends.items() if last_words & others and is_free(name)), None)
        )
    return sources


def _ends(name: str) -> set[str]:
    """The last one, two and three words of a name, each as `_plain` has it."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+", name)
    return {_plain("".join(words[-count:])) for count in (1, 2, 3)}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def date_format(column: Column, samples: Sequence[str]) -> str:
    """The format in which the samples are dates; empty if they need none, or fit none."""
    if column.type not in ("date", "date-time") or not samples:
        return ""
    try:
        for text in samples:
            datetime.date.fromisoformat(text) if column.type == "date" else _zoned(text)
    except ValueError:
        return next((form for form in FORMATS if all(_fits(text, form) for text in samples)), "")
    return ""


def _zoned(text: str) -> None:
    at = datetime.datetime.fromisoformat(text)
    if at.tzinfo is None and len(text) > len("2026-01-01"):
        raise ValueError


def _fits(text: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)
    except ValueError:
        return False
    return True
