"""Forms made of a request's fields: inputs, labels and checks come from the proto, words and order from the page.

A page makes a `Form`, renders it with the macro `ui.field` and reads what was sent with `read`. It shows the form again
with the sentence of a Refusal beside the field that the refusal names. An `Edit` is a form of a request that changes a
record: it sends the fields that the person has changed, and no other.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from multidict import MultiDictProxy

from chassis.refusals import Refusal
from console.kit import times
from console.kit.texts import _
from makeready.common.v1 import options_pb2

TEXT_CHARACTERS_MAX = 20_000
WORDS_CHARACTERS_MAX = 200
DIGITS_MAX = 9
ID_DIGITS_MAX = 18
FIND = "find"
"""The button of a picker: it asks for the form anew, and does nothing else."""
SEEN = "seen."
"""The hidden field beside an input of an `Edit`: the value that the person saw."""
INTEGERS = (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64)
DECIMALS = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)
_NAME = re.compile(r"\b[a-z]+(_[a-z]+)*\b")
_NUMBER = re.compile(r"-?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Field:
    """One input. name: the request's field; choices: (value, words), by default those of the field's enum; kind: by
    default as the proto's field is; more: further attributes of the input.

    kinds: text, area, lines (a repeated text, one a line), email, password, url, tel, date, datetime, number, decimal,
    select, radios, checkbox, checkboxes, and picker: the choice of a record of any area (`kit.pickers`). A `date` of a
    string is sent as YYYY-MM-DD, a `datetime` with the offset of the form's zone; of a Timestamp both are instants.
    """

    name: str
    label: str
    hint: str = ""
    kind: str = ""
    choices: Sequence[tuple[str, str]] = ()
    required: bool = False
    more: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Form:
    """The inputs of one form, with their values and errors."""

    def __init__(self, message: Any, fields: Iterable[Field], zone: datetime.tzinfo = datetime.UTC) -> None:
        """message: a request; its values are the inputs' first ones. zone: of the dates that people enter."""
        self.message, self.zone = message, zone
        self.fields = {field.name: _completed(field, message.DESCRIPTOR.fields_by_name[field.name]) for field in fields}
        self.values = {name: self._written(name) for name in self.fields}
        self.errors: dict[str, str] = {}
        self.fault = ""
        """An error of the whole form."""
        self.seen: Mapping[str, Any] | None = None
        """The values that the person saw before they changed them; None for a form that changes no record."""
        self.pickers: dict[str, Any] = {}
        """The inputs of the kind `picker`, as `kit.pickers.fill` got them."""
        self.words: dict[str, str] = {}
        """What the person looks for in a picker, by field."""
        self.is_finding = False
        """Whether the form was sent to look for something in a picker."""

    @property
    def status(self) -> int:
        """Of the page that shows the form again."""
        return 200 if self.is_finding else 422

    def read(self, sent: MultiDictProxy[str]) -> bool:
        """Writes what was sent into the message. Returns whether all of it could be read; else `errors` say what.

        A form that was sent by the button of a picker is no action: it has no errors, and the answer is False.
        """
        self.errors, self.fault, self.is_finding = {}, "", FIND in sent
        for name, field in self.fields.items():
            # Browsers send the line breaks of a text area as CR LF.
            texts = [text.replace("\r\n", "\n").strip() for text in sent.getall(name, [])]
            self.values[name] = texts if field.kind == "checkboxes" else (texts or [""])[0]
            if field.kind == "picker":
                self.words[name] = sent.get(f"q.{name}", "").strip()[:WORDS_CHARACTERS_MAX]
            if field.required and not any(texts):
                self.errors[name] = _("%(field)s is required.") % {"field": field.label}
                continue
            if any(len(text) > TEXT_CHARACTERS_MAX for text in texts):
                self.errors[name] = f"{field.label} may have {TEXT_CHARACTERS_MAX:,} characters at most."
                continue
            if self.words.get(name) and not any(texts):
                self.errors[name] = _("Choose a result, or clear the search.")
                continue
            try:
                self._store(field, texts)
            except ValueError as error:
                self.errors[name] = str(error)
        if self.is_finding:
            self.errors = {}
        return not self.errors and not self.is_finding

    def preset(self, query: Mapping[str, str], *names: str) -> None:
        """Takes first values from a page's address, such as `?unit_id=15`; those that do not fit stay out."""
        for name in names:
            text = query.get(name, "").strip()
            try:
                if text:
                    self._store(self.fields[name], [text])
            except ValueError:
                self.message.ClearField(name)
            else:
                self.values[name] = self._written(name)

    def refuse(self, refusal: Refusal) -> None:
        """Shows a refusal beside its field, or above the form. Names of fields become the labels of their inputs."""
        message = _NAME.sub(self._label_of, refusal.message)
        if refusal.field in self.fields:
            self.errors[refusal.field] = message
        else:
            self.fault = message

    def _label_of(self, name: re.Match[str]) -> str:
        field = self.fields.get(name[0])
        return f"“{field.label}”" if field and ("_" in name[0] or name.start() == 0) else name[0]

    @property
    def has_errors(self) -> bool:
        return bool(self.errors or self.fault)

    def _store(self, field: Field, texts: Sequence[str]) -> None:
        descriptor = self.message.DESCRIPTOR.fields_by_name[field.name]
        self.message.ClearField(field.name)
        if field.kind == "checkbox":
            setattr(self.message, field.name, bool(texts and texts[0]))
        elif field.kind == "lines":
            lines = [line.strip() for text in texts for line in text.splitlines()]
            getattr(self.message, field.name).extend(line for line in lines if line)
        elif descriptor.is_repeated:
            values = {value for value, _ in field.choices}
            if unknown := [text for text in texts if text and values and text not in values]:
                raise ValueError(f"{field.label} has no choice “{unknown[0][:40]}”.")
            getattr(self.message, field.name).extend(text for text in texts if text)
        elif texts and texts[0]:
            value = _value(field, descriptor, texts[0], self.zone)
            if isinstance(value, Timestamp):
                getattr(self.message, field.name).CopyFrom(value)
            else:
                setattr(self.message, field.name, value)

    def _written(self, name: str) -> Any:
        descriptor = self.message.DESCRIPTOR.fields_by_name[name]
        value = getattr(self.message, name)
        if descriptor.is_repeated:
            texts = [str(element) for element in value]
            return "\n".join(texts) if self.fields[name].kind == "lines" else texts
        if descriptor.has_presence and not self.message.HasField(name):
            return ""
        if descriptor.enum_type is not None:
            return label(descriptor.enum_type.values_by_number[value]) if value else ""
        if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
            return self._day_or_minute(name, value.ToDatetime(datetime.UTC))
        if self.fields[name].kind == "datetime" and value:
            return self._day_or_minute(name, datetime.datetime.fromisoformat(value))
        return _text(descriptor, value)

    def _day_or_minute(self, name: str, at: datetime.datetime) -> str:
        """An instant as its input has it."""
        wall = times.local(at, self.zone).replace(tzinfo=None)
        is_day = self.fields[name].kind != "datetime"
        return wall.date().isoformat() if is_day else wall.isoformat(timespec="minutes")


class Edit(Form):
    """A form of a request with optional fields and `clear`, which changes a record.

    Beside each input stands what the person saw. Only what differs from that is sent, so two people who change
    different fields of a record do not undo each other. Where both have changed the same field, the later one reads
    what it is now, and their own text stays in the input: sent again, it counts.
    """

    def __init__(self, message: Any, fields: Iterable[Field], zone: datetime.tzinfo = datetime.UTC) -> None:
        """message: the request with the id of the record and its values as they are now, null ones absent."""
        super().__init__(message, fields, zone)
        self._now, self.seen = dict(self.values), dict(self.values)
        self.changed: set[str] = set()
        """The fields that the person has changed."""

    @property
    def is_done(self) -> bool:
        """Whether the record has all that the person has changed, as when the same form is sent twice."""
        changed = (self.fields[name] for name in self.changed)
        return not self.errors and all(
            _same(field, self.values[field.name], self._now[field.name]) for field in changed
        )

    def summary(self, done: str) -> str:
        """The sentence about what was done: `done`, or that nothing was."""
        return done if self.changed else _("No changes were made.")

    def read(self, sent: MultiDictProxy[str]) -> bool:
        """As `Form.read`; the message has the changed fields alone, and `clear` those that were emptied."""
        super().read(sent)
        self.changed = set()
        del self.message.clear[:]
        seen = dict(self._now)
        for name, field in self.fields.items():
            value, now = self.values[name], self._now[name]
            before = sent.get(f"{SEEN}{name}", now)
            if _same(field, value, before) and not (self.words.get(name) and name in self.errors):
                self.values[name] = now
                self.message.ClearField(name)
                self.errors.pop(name, None)
                continue
            self.changed.add(name)
            if name in self.errors:
                seen[name] = before
            elif not _same(field, before, now) and not _same(field, value, now):
                self.errors[name] = _("Meanwhile someone changed this to %(value)s. Submit again to replace that.") % {
                    "value": _in_words(field, now)
                }
            elif not value and field.kind != "checkbox":
                self.message.clear.append(name)
        self.seen = seen
        if self.is_finding:
            self.errors = {}
        return not self.errors and not self.is_finding


def _same(field: Field, first: str, second: str) -> bool:
    """Whether two texts are one value of the input."""
    first, second = first.replace("\r\n", "\n").strip(), second.replace("\r\n", "\n").strip()
    is_number = field.kind in ("decimal", "number") and _NUMBER.fullmatch(first) and _NUMBER.fullmatch(second)
    return _float(first) == _float(second) if is_number else first == second


def _in_words(field: Field, value: str) -> str:
    """A value in a sentence."""
    if field.kind == "checkbox":
        return "yes" if value else "no"
    if field.kind == "picker":
        return _("another record") if value else "empty"
    return f"“{dict(field.choices).get(value, value)[:80]}”" if value else "empty"


def filled(message: Message, values: Mapping[str, Any]) -> Message:
    """The request with a record's values by field; null ones stay absent, and enums are spelled as in the record."""
    for name, value in values.items():
        enum = message.DESCRIPTOR.fields_by_name[name].enum_type
        stored = value
        if enum is not None:
            stored = next((member.number for member in enum.values if member.number and label(member) == value), None)
        if stored is not None:
            setattr(message, name, stored)
    return message


def _float(text: str) -> float:
    return float(text.replace(",", ""))


def _text(descriptor: Any, value: Any) -> str:
    """A text, a number or a truth as an input has it."""
    if descriptor.type == FieldDescriptor.TYPE_BOOL:
        return "1" if value else ""
    if not value and not descriptor.has_presence:
        return ""
    return written_number(value) if descriptor.type in DECIMALS else str(value)


def written_number(value: float) -> str:
    """A number as an input has it, without an exponent: "12.5", "1300"."""
    text = format(value, ".10f").rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _completed(field: Field, descriptor: Any) -> Field:
    """The field with its kind and its choices from the proto."""
    choices, kind = field.choices, field.kind
    if descriptor.enum_type is not None and not choices:
        choices = [(label(value), label(value)) for value in descriptor.enum_type.values if value.number]
    if not kind:
        if descriptor.is_repeated:
            kind = "checkboxes"
        elif choices:
            kind = "select"
        elif descriptor.type == FieldDescriptor.TYPE_BOOL:
            kind = "checkbox"
        elif descriptor.type == FieldDescriptor.TYPE_MESSAGE:
            kind = "date"
        elif descriptor.type in INTEGERS:
            kind = "number"
        elif descriptor.type in DECIMALS:
            kind = "decimal"
        else:
            kind = {"email": "email", "password": "password", "destination_url": "url"}.get(field.name, "text")
    return replace(field, kind=kind, choices=tuple(choices))


def label(value: Any) -> str:
    """An enum's value in the contract's own word."""
    return str(value.GetOptions().Extensions[options_pb2.label]) or str(value.name).rpartition("_")[2].lower()


def _value(field: Field, descriptor: Any, text: str, zone: datetime.tzinfo) -> Any:
    if descriptor.enum_type is not None:
        for value in descriptor.enum_type.values:
            if value.number and label(value) == text:
                return value.number
        raise ValueError(f"{field.label} is none of the choices.")
    if field.choices and text not in {value for value, _ in field.choices}:
        raise ValueError(f"{field.label} is none of the choices.")
    if descriptor.type in INTEGERS:
        digits = text.replace(",", "")
        if field.more.get("min", "").startswith("-"):
            digits = digits.removeprefix("-")
        most = ID_DIGITS_MAX if field.kind == "picker" else DIGITS_MAX
        if not (digits.isascii() and digits.isdigit() and len(digits) <= most):
            raise ValueError(_("%(field)s must be a whole number.") % {"field": field.label})
        return int(text.replace(",", ""))
    if descriptor.type in DECIMALS:
        if not (text.isascii() and _NUMBER.fullmatch(text) and len(text) <= 20):
            raise ValueError(f"{field.label} must be a number like 1234.5.")
        return _float(text)
    if field.kind in ("date", "datetime"):
        return _time(field, descriptor, text, zone)
    return text


def _time(field: Field, descriptor: Any, text: str, zone: datetime.tzinfo) -> Any:
    """What was entered, as the request has it."""
    try:
        if field.kind == "date":
            at = datetime.datetime.combine(datetime.date.fromisoformat(text), datetime.time(), zone)
        else:
            at = datetime.datetime.fromisoformat(text).replace(tzinfo=zone)
        stamp = Timestamp()
        stamp.FromDatetime(at)
    except (ValueError, OverflowError):
        like = "2027-01-31" if field.kind == "date" else "2027-01-31T14:30"
        noun = "date" if field.kind == "date" else "day and time"
        raise ValueError(f"{field.label} must be a {noun} like {like}.") from None
    if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
        return stamp
    return at.date().isoformat() if field.kind == "date" else at.isoformat(timespec="seconds")
