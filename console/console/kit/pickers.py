"""Pickers: inputs of a form in which a person chooses a record of any area, such as a unit or a member of staff.

A picker is a panel of the area that owns the records; so a form of tickets has a choice of units, and tickets know
nothing of places. The area's page answers with `read_picker` and `answer`. A form has a `Field` of the kind "picker";
its page calls `fill` before it renders, and the macro `ui.field` does the rest. Without the panel the input takes the
record's number.

Up to CHOICES_MAX records are a list to choose from. More have a search beside it. A list may depend on other inputs of
its form: the units of the property that is chosen. With script it follows them; without, a button asks for the form
anew, and all that was typed stays.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from aiohttp import web

from chassis.refusals import Refusal
from console.kit import links
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.filters import number
from console.kit.forms import Form
from console.kit.panels import Included, include
from console.kit.texts import _

CHOICES_MAX = 200
FOUND_MAX = 50
WORDS_MAX = 100

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Kind:
    """An input's name, and what it chooses. above: the inputs that narrow it, in the same form or in the address."""

    path: str
    noun: str
    above: tuple[str, ...] = ()


KINDS = {
    "property_id": Kind("/places/pick", "property"),
    "unit_id": Kind("/places/pick", "unit", ("property_id",)),
    "asset_id": Kind("/places/pick", "asset", ("property_id", "unit_id")),
    "staff_id": Kind("/people/pick", "member of staff"),
    "assignee_id": Kind("/people/pick", "member of staff"),
    "vendor_id": Kind("/vendors/pick", "vendor"),
}
_PREFIX = re.compile(r"[a-z0-9-]{0,30}")


@dataclass(frozen=True, slots=True)
class Choice:
    """A record to choose. group: the words above it and those beside it, if the list has parts."""

    value: int
    words: str
    group: str = ""


CHOSEN_NOW = _("Current")
"""The group of a chosen record that the list would not have: one that has ended, or does not fit the words."""


@dataclass(frozen=True, slots=True)
class Picker:
    """What the address of a picker asks for. chosen: a record; within: those that narrow it, by input. 0 is none."""

    name: str
    prefix: str
    chosen: int
    words: str
    is_required: bool
    is_wrong: bool
    has_hint: bool
    inputs: tuple[str, ...]
    """Those of `above` that are inputs of the same form."""
    within: Mapping[str, int]
    has_below: bool
    """Whether other inputs of the form depend on this one."""

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    @property
    def id(self) -> str:
        """The id of the input."""
        return f"{self.prefix}f-{self.name}"

    @property
    def missing_above(self) -> str:
        """The noun of what must be chosen first; empty if nothing must."""
        first = next(iter(self.inputs), "")
        return KINDS[first].noun if first and not any(self.within.values()) else ""

    @property
    def says(self) -> str:
        """The ids of what describes the input."""
        parts = (f"{self.id}-e" if self.is_wrong else "", f"{self.id}-h" if self.has_hint else "")
        return " ".join(part for part in parts if part)

    @property
    def address(self) -> str:
        """Where the list is fetched anew; the values of inputs come with the request."""
        fixed = {name: value for name, value in self.within.items() if name not in self.inputs}
        flags = {"required": self.is_required, "wrong": self.is_wrong, "hint": self.has_hint, "below": self.has_below}
        values = {"name": self.name, "prefix": self.prefix, "inputs": " ".join(self.inputs), **fixed}
        return links.with_query(self.kind.path, {**values, **{name: 1 for name, is_on in flags.items() if is_on}})

    def selector(self, *, with_search: bool = True) -> str:
        """The inputs whose values come with the request."""
        inputs = [f"#{self.id}", *([f"#{self.id}-q"] if with_search else [])]
        return ", ".join([*(f"#{self.prefix}f-{name}" for name in self.inputs), *inputs])

    @property
    def trigger(self) -> str:
        """When the list is fetched anew: another record is chosen above."""
        return ", ".join(f"change from:#{self.prefix}f-{name}" for name in self.inputs)


def read_picker(context: PageContext, path: str) -> Picker:
    """Reads the address of a picker. Raises HTTPNotFound for an input that this panel does not have."""
    query = context.query
    name, prefix = query.get("name", ""), query.get("prefix", "")
    if name not in KINDS or KINDS[name].path != path or not _PREFIX.fullmatch(prefix):
        raise web.HTTPNotFound
    above = KINDS[name].above
    words = " ".join(query.get(f"q.{name}", "").replace("\0", " ").split())[:WORDS_MAX]
    return Picker(
        name=name,
        prefix=prefix,
        chosen=number(query.get(name, "")) or 0,
        words=words,
        is_required="required" in query,
        is_wrong="wrong" in query,
        has_hint="hint" in query,
        inputs=tuple(parent for parent in query.get("inputs", "").split() if parent in above),
        within={parent: number(query.get(parent, "")) or 0 for parent in above},
        has_below="below" in query,
    )


async def listed(
    rows: Callable[[str, int], Awaitable[tuple[Sequence[Row], bool]]], picker: Picker
) -> tuple[Sequence[Row], bool]:
    """All records if they are few, else those with the words; and whether they are many.

    rows: given words and a limit, the records and whether there are more.
    """
    several, is_many = await rows("", CHOICES_MAX)
    if not is_many:
        return several, False
    return ((await rows(picker.words, FOUND_MAX))[0] if picker.words else ()), True


async def record_or_none(work: Awaitable[Row]) -> Row | None:
    """The answer about the chosen record; None if the company has no such record."""
    try:
        return await work
    except Refusal as refusal:
        if refusal.status == web.HTTPNotFound.status_code:
            return None
        raise


def answer(
    context: PageContext, picker: Picker, choices: Sequence[Choice], *, is_searched: bool = False, none: str = ""
) -> web.Response:
    """The picker. is_searched: there are more records than can be listed; choices are those that fit the words.
    none: a sentence for a list without any."""
    groups: dict[str, list[Choice]] = {}
    for choice in choices:
        groups.setdefault(choice.group, []).append(choice)
    return context.render(
        "picker.html", picker=picker, groups=groups, is_searched=is_searched, none=none,
        listed=sum(choice.group != CHOSEN_NOW for choice in choices),
    )  # fmt: skip


async def fill(context: PageContext, form: Form, *, prefix: str = "", **narrowing: int | None) -> Form:
    """Gets the pickers of a form, all at once; returns the form.

    prefix: as in `ui.field`. narrowing: records that narrow them and are no inputs of this form: `property_id=4`.
    """
    names = [name for name, field in form.fields.items() if field.kind == "picker"]
    panels = await together(*(_included(context, form, name, prefix, narrowing) for name in names))
    form.pickers = dict(zip(names, panels, strict=True))
    return form


async def _included(
    context: PageContext, form: Form, name: str, prefix: str, narrowing: Mapping[str, int | None]
) -> Included:
    above = KINDS[name].above
    names = [other for other, field in form.fields.items() if field.kind == "picker"]
    inputs = [parent for parent in above if parent in names]
    has_below = any(name in KINDS[other].above for other in names)
    field = form.fields[name]
    return await include(
        context,
        KINDS[name].path,
        **{
            "name": name,
            "prefix": prefix,
            name: form.values[name],
            f"q.{name}": form.words.get(name, ""),
            "required": "1" if field.required else None,
            "wrong": "1" if form.errors.get(name) else None,
            "hint": "1" if field.hint else None,
            "below": "1" if has_below else None,
            "inputs": " ".join(inputs),
            **{parent: form.values[parent] if parent in inputs else narrowing.get(parent) for parent in above},
        },
    )
