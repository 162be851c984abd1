"""`makeready-client get` and `list`: records of every kind that the API lists."""

from __future__ import annotations

import argparse
import datetime
import functools
import inspect
import itertools
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from makeready_client import resources
from makeready_client.answers import Model
from makeready_client.client import Makeready
from makeready_client.commands.command import Command, UsageError, printable, say
from makeready_client.commands.table import Table
from makeready_client.models import PAGE_RECORDS_MAX
from makeready_client.paging import Page, Pages, Walk

PAGING = {"limit", "cursor", "wait"}
# A line of `list` shows the id and, of each of these, the first that the kind has.
SHOWN = (("status", "unit_status", "state", "health"), ("title", "name", "destination_url", "event_id"))


@dataclass(frozen=True, slots=True)
class Kind:
    """Records that the API lists, by the operation that lists them."""

    name: str
    resource: str
    method: str
    model: type[Model]
    parameters: Mapping[str, Any]
    """The type of each id in the path and each filter, by its name."""
    texts: Mapping[str, str]
    """What each parameter means; "" has what the list is."""
    required: frozenset[str]
    can_be_fetched: bool

    def pages(self, client: Makeready, parameters: Mapping[str, Any]) -> Pages[Any]:
        """The list."""
        pages: Pages[Any] = getattr(getattr(client, self.resource), self.method)(**parameters)
        return pages


def _kinds() -> Iterator[Kind]:
    """The lists among the client's methods. Feeds have commands that follow them."""
    for resource, attribute in vars(resources.Api).items():
        if not isinstance(attribute, property) or attribute.fget is None:
            continue
        methods = typing.get_type_hints(attribute.fget)["return"]
        for name, method in vars(methods).items():
            hints = typing.get_type_hints(method) if name == "list" or name.startswith("list_") else {}
            answer = hints.pop("return", None)
            if typing.get_origin(answer) is not Walk or typing.get_origin(typing.get_args(answer)[1]) is not Page:
                continue
            defaults = inspect.signature(method).parameters
            yield Kind(
                name.partition("_")[2] or resource,
                resource,
                name,
                typing.get_args(answer)[0],
                {key: _without_none(hint) for key, hint in hints.items() if key not in PAGING},
                _texts(inspect.getdoc(method) or "", hints),
                frozenset(key for key in hints if defaults[key].default is inspect.Parameter.empty),
                name == "list" and hasattr(methods, "get"),
            )


def _without_none(hint: Any) -> Any:
    options = [option for option in typing.get_args(hint) if option is not types.NoneType]
    return options[0] if typing.get_origin(hint) in (types.UnionType, typing.Union) else hint


def _texts(doc: str, names: Mapping[str, Any]) -> dict[str, str]:
    """The first line of a docstring, and the sentences about each parameter."""
    first, *lines = doc.splitlines()
    texts = {"": first}
    name = ""
    for line in lines:
        begin, _, sentence = line.partition(": ")
        name = begin if begin in names else name
        if name:
            texts[name] = f"{texts[name]} {line}" if name in texts else sentence
    return texts


def _get(client: Makeready, arguments: argparse.Namespace) -> int:
    record = getattr(client, arguments.kind).get(arguments.id)
    body = record.response.body
    if arguments.csv:
        table = Table(type(record))
        say(f"{table.header()}\n{table.row(body)}")
    else:
        say((body if arguments.json else msgspec.json.format(body, indent=2)).decode())
    return 0


def _list(kind: Kind, client: Makeready, arguments: argparse.Namespace) -> int:
    parameters = {name: getattr(arguments, name) for name in kind.parameters if getattr(arguments, name) is not None}
    if arguments.limit is not None:
        if arguments.limit < 1:
            raise UsageError("--limit needs a positive number")
        parameters["limit"] = min(arguments.limit, PAGE_RECORDS_MAX)
    request = kind.pages(client, parameters).request
    # The bytes as they come, so that `--json` has the fields of later versions, too.
    records: Walk[msgspec.Raw, Page[msgspec.Raw]] = Walk(client, request, Page[msgspec.Raw])
    table = Table(kind.model)
    if arguments.csv:
        say(table.header())
    for record in itertools.islice(records, arguments.limit):
        line = bytes(record)
        say(table.row(line) if arguments.csv else line.decode() if arguments.json else _summary(line))
    return 0


def _summary(record: bytes) -> str:
    fields = msgspec.json.decode(record)
    cells = [next((str(fields[name]) for name in names if fields.get(name)), "") for names in SHOWN]
    return printable(f"{fields.get('entity_id', ''):>8}  {cells[0]:16}  {cells[1]}".rstrip())


def _arguments_of_get(fetched: tuple[str, ...], parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", choices=fetched, help=", ".join(fetched))
    parser.add_argument("id", metavar="ID", type=int, help="the record's entity_id")
    _form(parser, json_help="on one line, as the API sends it")


def _arguments_of_list(kind: Kind, parser: argparse.ArgumentParser) -> None:
    for name, hint in kind.parameters.items():
        choices = typing.get_args(hint) or None
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            metavar=name.rpartition("_")[2].upper(),
            type=datetime.datetime.fromisoformat if hint is datetime.datetime else str if choices else hint,
            choices=choices,
            required=name in kind.required,
            help=kind.texts[name].replace("%", "%%"),
        )
    parser.add_argument("--limit", metavar="N", type=int, help="N records at most")
    _form(parser, json_help="a record on each line, as the API sends it")


def _form(parser: argparse.ArgumentParser, *, json_help: str) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=json_help)
    form.add_argument("--csv", action="store_true", help="a column for each field, as property.name")


def _commands() -> Iterator[Command]:
    kinds = tuple(_kinds())
    fetched = tuple(kind.name for kind in kinds if kind.can_be_fetched)
    yield Command("get", "one record", _get, functools.partial(_arguments_of_get, fetched))
    for kind in kinds:
        yield Command(
            f"list {kind.name}",
            kind.texts[""],
            functools.partial(_list, kind),
            functools.partial(_arguments_of_list, kind),
        )


RECORDS = tuple(_commands())
