"""The file of companies: YAML, or JSON, which is YAML too. Every fault is found before anything is changed."""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml

from makeready_cli.errors import CommandError, quoted

FILE_BYTES_MAX = 4 * 1024 * 1024
_AT = re.compile(r" - at `\$\.?(?P<place>.*)`$")

# The two together are the name of a Secret's key, of at most 253 characters.
ExternalId = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?$")]
KeyName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Line = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class _Part(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A setting that the file does not name stays as it is."""


class Administrator(_Part, frozen=True):
    email: Annotated[str, msgspec.Meta(pattern=r"^[^@\s]+@[^@\s]+$", max_length=150)]
    name: Line | None = None


class Key(_Part, frozen=True):
    name: KeyName
    scope: Literal["read", "write", "webhook_only"]
    administrator: str = ""
    """The minting administrator's e-mail; without one the key can't create or change records."""
    expires_at: Annotated[datetime.datetime, msgspec.Meta(tz=True)] | None = None


class Company(_Part, frozen=True):
    external_id: ExternalId
    name: Line
    sandbox: bool = False
    """Whether its clock can be moved and it can be ended. A company stays what it was created as."""
    content: Literal["empty", "demo"] | None = None
    """What the sandbox starts with. It stays what the sandbox was created with."""
    timezone: Line | None = None
    active: bool | None = None
    second_factor_required: bool | None = None
    photo_required: bool | None = None
    ticket_stale_after_hours: Annotated[int, msgspec.Meta(ge=1, le=8760)] | None = None
    administrators: list[Administrator] = []
    keys: list[Key] = []


class _File(_Part, frozen=True):
    companies: list[Company]


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping: YAML does, PyYAML keeps the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [self.construct_object(key, deep=True) for key, _ in node.value]
        if (twice := _twice(names)) is not None:
            raise yaml.MarkedYAMLError(problem=f"{twice} stands twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def read(path: Path) -> list[Company]:
    """Raises CommandError with the first fault, and the place where it is."""
    try:
        data = path.read_bytes()
        if len(data) > FILE_BYTES_MAX:
            raise CommandError(f"{path} is longer than {FILE_BYTES_MAX} bytes.")
        declared = msgspec.convert(load(data), _File).companies
    except OSError as error:
        raise CommandError(f"{path} can't be read: {error.strerror}.") from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise CommandError(f"{path} is no YAML: {line}{error.problem}.") from None
    except (yaml.YAMLError, RecursionError):
        raise CommandError(f"{path} is no YAML.") from None
    except msgspec.ValidationError as error:
        reason = str(error)
        place = at["place"] if (at := _AT.search(reason)) else ""
        quotes = "; a text that YAML takes for something else needs quotes" if "`str`" in reason else ""
        raise CommandError(f"{path}: {place + ': ' if place else ''}{_AT.sub('', reason)}{quotes}.") from None
    _check(path, declared)
    return declared


def load(data: bytes) -> Any:
    """A YAML document as plain values. Raises yaml.YAMLError."""
    return yaml.load(data, _Loader)  # noqa: S506 - the loader is a SafeLoader


def _check(path: Path, declared: list[Company]) -> None:
    if (twice := _twice(company.external_id for company in declared)) is not None:
        raise CommandError(f"{path}: two companies have the external_id {quoted(str(twice))}.")
    emails = (administrator.email.lower() for company in declared for administrator in company.administrators)
    if (twice := _twice(emails)) is not None:
        raise CommandError(f"{path}: {quoted(str(twice))} stands twice; an e-mail names one administrator of all.")
    for company in declared:
        if company.content == "demo" and not company.sandbox:
            raise CommandError(f"{path}: {company.external_id} has content, and only a sandbox starts with any.")
        if (twice := _twice(key.name for key in company.keys)) is not None:
            raise CommandError(f"{path}: {company.external_id} has two keys with the name {quoted(str(twice))}.")


def _twice(values: Iterable[Hashable]) -> Hashable | None:
    seen: set[Hashable] = set()
    return next((value for value in values if value in seen or seen.add(value)), None)  # type: ignore[func-returns-value]
