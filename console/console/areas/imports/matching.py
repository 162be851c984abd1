"""The form that matches a file's columns with a kind's fields: from the form to a mapping in TOML, and back."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.imports.looking import SAMPLE_CHARACTERS, Facts, date_format, matched
from console.kit.texts import _
from importing.kinds import Column, Kind
from importing.mapping import DUPLICATES, REJECT

COLUMN, CONSTANT, TEMPLATE = "column:", "constant", "template"
DATE, VALUES, COMMA = "date", "values", "comma"
RULES = {DATE: _("Date format"), VALUES: _("Replace values"), COMMA: _("Numbers like 1.234,50")}
DUPLICATE_WORDS = {
    "reject": _("reject the later row"),
    "skip-identical": _("skip the later row if identical, otherwise reject it"),
    "keep-first": _("keep the first row and skip the others"),
}
CHARACTERS_MAX = 5000
_COMMA = {"decimal": ",", "thousands": "."}


@dataclass(slots=True)
class Choice:
    """Where one field comes from. source: empty, `column:NAME`, `constant` or `template`; text: of the last two; rule:
    empty or one of RULES; detail: the format, or lines of `theirs = ours`."""

    column: Column
    source: str = ""
    text: str = ""
    rule: str = ""
    detail: str = ""
    error: str = ""

    @property
    def name(self) -> str:
        """The column of the file; empty if it comes from none."""
        return self.source.removeprefix(COLUMN) if self.source.startswith(COLUMN) else ""


@dataclass(slots=True)
class Matching:
    """The choices of all fields of a kind."""

    kind: Kind
    choices: list[Choice]
    duplicates: str = REJECT

    @property
    def has_errors(self) -> bool:
        return any(choice.error for choice in self.choices)


def proposed(kind: Kind, facts: Facts) -> Matching:
    """The choices that the names of the columns and their samples suggest."""
    samples = {seen.name: seen.samples for seen in facts.columns}
    sources, choices = matched(kind, list(samples)), []
    for column in kind.columns:
        choice = Choice(column)
        if name := sources.get(column.name):
            choice.source = COLUMN + name
            if form := date_format(column, samples[name], is_workbook=facts.is_workbook):
                choice.rule, choice.detail = DATE, form
            elif column.values and not set(samples[name]) <= set(column.values):
                lines = [f"{text} = " for text in samples[name] if _is_line(text) and len(text) < SAMPLE_CHARACTERS]
                choice.rule, choice.detail = VALUES, "\n".join(lines)
        choices.append(choice)
    return Matching(kind, choices)


def read(kind: Kind, facts: Facts, sent: Mapping[str, str]) -> Matching:
    """What a person chose; `has_errors` if it can't be used."""
    # A browser sends every line end as CRLF, also one in the name of a column.
    names = {_unix_line_ends(COLUMN + seen.name): COLUMN + seen.name for seen in facts.columns}
    choices = []
    for column in kind.columns:
        source = sent.get(f"from.{column.name}", "")
        source = names.get(_unix_line_ends(source), source)
        text, rule, detail = (
            _unix_line_ends(sent.get(f"{part}.{column.name}", "")).strip()[:CHARACTERS_MAX]
            for part in ("text", "rule", "detail")
        )
        choice = Choice(column, source, text, rule if rule in RULES else "", detail)
        if source.startswith(COLUMN) and source not in names.values():
            choice.source, choice.error = "", _("That column is not in the file.")
        elif source and not source.startswith(COLUMN) and source not in (CONSTANT, TEMPLATE):
            choice.source = ""
        if choice.source in (CONSTANT, TEMPLATE) and not text:
            choice.error = _("Enter the text.")
        if column.required and not choice.source:
            choice.error = choice.error or _("Required: choose a column.")
        if choice.rule == DATE and not detail:
            choice.error = _("Enter the date format.")
        if choice.rule == VALUES and any("=" not in line for line in detail.split("\n") if line.strip()):
            choice.error = _("Each line must be: file value = Makeready value.")
        choices.append(choice)
    duplicates = sent.get("duplicates", REJECT)
    return Matching(kind, choices, duplicates if duplicates in DUPLICATES else REJECT)


def written(matching: Matching, timezone: str) -> str:
    """The mapping as TOML. timezone: IANA, of dates with a time but without an offset."""
    lines = [
        f"kind = {_text(matching.kind.name)}",
        'ignore = ["*"]',
        f"duplicates = {_text(matching.duplicates)}",
        "",
        "[fields]",
    ]
    for choice in matching.choices:
        if not choice.source:
            continue
        rules = {"column": _text(choice.name)} if choice.name else {choice.source: _text(choice.text)}
        if choice.rule == DATE:
            forms = [line.strip() for line in choice.detail.split("\n") if line.strip()]
            rules["date"] = _text(forms[0]) if len(forms) == 1 else f"[{', '.join(map(_text, forms))}]"
            if choice.column.type == "date-time" and "%z" not in choice.detail:
                rules["timezone"] = _text(timezone)
        elif choice.rule == VALUES:
            pairs = [line.rpartition("=") for line in choice.detail.split("\n") if line.strip()]
            table = {theirs.strip(): ours.strip() for theirs, _, ours in pairs}
            rules["values"] = "{ " + ", ".join(f"{_text(key)} = {_text(value)}" for key, value in table.items()) + " }"
        elif choice.rule == COMMA:
            rules["number"] = "{ " + ", ".join(f"{key} = {_text(value)}" for key, value in _COMMA.items()) + " }"
        if list(rules) == ["column"]:
            lines.append(f"{choice.column.name} = {rules['column']}")
        else:
            inside = ", ".join(f"{key} = {value}" for key, value in rules.items())
            lines.append(f"{choice.column.name} = {{ {inside} }}")
    return "\n".join(lines) + "\n"


def from_toml(kind: Kind, facts: Facts, mapping: str, timezone: str) -> Matching | None:
    """The choices of a mapping that `written` made, perhaps by way of a file; None for one that says more.

    timezone: the one that `written` would set.
    """
    try:
        top = tomllib.loads(mapping)
    except tomllib.TOMLDecodeError:
        return None
    fields = top.get("fields")
    simple = {"kind", "ignore", "duplicates", "fields"}
    if not isinstance(fields, dict) or not set(top) <= simple or top.get("ignore") != ["*"]:
        return None
    names = {seen.name for seen in facts.columns}
    choices = {column.name: Choice(column) for column in kind.columns}
    for name, rules in fields.items():
        rule = {"column": rules} if isinstance(rules, str) else dict(rules)
        if name not in choices or rule.pop("timezone", timezone) != timezone:
            return None
        if rule.get("column", next(iter(names), "")) not in names or not _is_chosen(choices[name], rule):
            return None
    return Matching(kind, list(choices.values()), str(top.get("duplicates", REJECT)))


def _is_chosen(choice: Choice, rule: dict[str, Any]) -> bool:
    """Makes a choice of a field's rules in a mapping. Returns whether it says all of them."""
    if "column" in rule:
        choice.source = COLUMN + rule.pop("column")
    for source in (CONSTANT, TEMPLATE):
        if source in rule:
            choice.source, choice.text = source, str(rule.pop(source))
    table = rule.get("values")
    if forms := rule.pop("date", None):
        choice.rule, choice.detail = DATE, forms if isinstance(forms, str) else "\n".join(map(str, forms))
    elif isinstance(table, dict) and all(
        _is_line(theirs) and _is_line(str(ours)) and "=" not in str(ours) for theirs, ours in table.items()
    ):
        del rule["values"]
        choice.rule, choice.detail = VALUES, "\n".join(f"{theirs} = {ours}" for theirs, ours in table.items())
    elif rule.get("number") == _COMMA:
        choice.rule = COMMA
        del rule["number"]
    return not rule


def _unix_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n")


def _is_line(text: str) -> bool:
    """Whether the text can stand in a line of `theirs = ours`."""
    return text == text.strip() and "\n" not in text and "\r" not in text


def _text(text: str) -> str:
    """The text as TOML's basic string, whose escapes are JSON's."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
