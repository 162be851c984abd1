"""`NOUN list` and `NOUN show`: people's lists of records, with filters and as CSV; one record by either of its ids."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from makeready_cli import argument_types as types
from makeready_cli.calls import Operator, ensure_company
from makeready_cli.csv_text import csv_of
from makeready_cli.errors import CommandError
from makeready_cli.output import Answer, Record, table
from makeready_cli.parsers import Settings
from makeready_cli.rpc.arguments import request_of
from makeready_cli.rpc.command import RpcCommand, response_of
from makeready_cli.rpc.rendering import cell, record_of

PAGE = 200
LIMIT = 50
_LOOKED_THROUGH = 1000
_CURSORS = ("after", "after_id")


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of one kind of record. rows: the response's field with the rows; id: the field of a row with its id;
    columns: of the table for people, a header and the row's field, `part.name` for a part's; external: the request's
    field that finds the rows with an external_id, or with words."""

    noun: str
    rpc: MethodDescriptor
    rows: str
    id: str
    columns: Mapping[str, str]
    external: str
    flags: Mapping[str, str] = field(default_factory=dict)
    """By field: another spelling of its option."""
    hidden: tuple[str, ...] = ()

    @property
    def cursor(self) -> str:
        """The request's field for the next page."""
        return next(name for name in _CURSORS if name in self.rpc.input_type.fields_by_name)

    @property
    def list(self) -> RpcCommand:
        """The command `list`."""
        fields = self.rpc.input_type.fields_by_name
        settings: dict[str, Settings] = {
            name: {"required": False}
            for name, field in fields.items()
            if not field.has_presence and not field.is_repeated
        }
        settings = {name: setting for name, setting in settings.items() if fields[name].type != fields[name].TYPE_BOOL}
        for name, flag in self.flags.items():
            settings.setdefault(name, {})["flag"] = flag
        limit = {"type": types.rows, "default": LIMIT, "help": f"how many at most (default {LIMIT})"}
        after = {"flag": "--after", "metavar": "NEXT", "help": "go on after an earlier list, by its `next`"}
        settings |= {"limit": {"required": False, **limit}, self.cursor: {"required": False, **after}}

        async def run(operator: Operator, arguments: argparse.Namespace) -> Answer:
            return await self._listed(operator, arguments, command)

        command = RpcCommand(
            "list",
            self.rpc,
            f"list {self.rows}, with filters",
            hidden=self.hidden,
            settings=settings,
            flags={"--csv": "print CSV, with all columns"},
            run=run,
        )
        return command

    async def _listed(self, operator: Operator, arguments: argparse.Namespace, command: RpcCommand) -> Answer:
        await ensure_company(operator, arguments.company_id)
        request = request_of(self.rpc, arguments)
        records: list[Record] = []
        while True:
            request.limit = min(PAGE, arguments.limit - len(records))
            page = await response_of(operator, command, request, arguments.company_id)
            records += (record_of(row) for row in getattr(page, self.rows))
            following = self._next(page)
            if following is None or len(records) >= arguments.limit:
                break
            setattr(request, self.cursor, following)
        if arguments.csv:
            row = self.rpc.output_type.fields_by_name[self.rows].message_type
            assert row is not None
            return Answer({}, csv_of(list(row.fields_by_name), records))
        lines = [[_at(row, path) for path in self.columns.values()] for row in records]
        text = table(list(self.columns), lines, f"No {self.rows}.")
        if following is not None:
            text += f"\nThere are more: --limit for a longer list, --after {following} for the next ones."
        return Answer({self.rows: records, "next": following}, text)

    @staticmethod
    def _next(page: Message) -> Any:
        name = "next" if "next" in page.DESCRIPTOR.fields_by_name else "next_after_id"
        return getattr(page, name) if page.HasField(name) else None

    def show(self, rpc: MethodDescriptor, record: str = "", hint: str = "") -> RpcCommand:
        """The command `show`, by the RPC that gets a record. record: the response's field with it, if it is not all of
        it."""
        (name,) = rpc.input_type.fields_by_name

        async def run(operator: Operator, arguments: argparse.Namespace) -> Answer:
            await ensure_company(operator, arguments.company_id)
            text = getattr(arguments, name)
            entity_id = None if arguments.external else _id(text)
            request: Any = GetMessageClass(rpc.input_type)()
            setattr(request, name, entity_id or await self._named(operator, arguments, text))
            response = await response_of(operator, command, request, arguments.company_id)
            value = record_of(getattr(response, record) if record else response)
            return Answer(
                value, table(("FIELD", "VALUE"), [(key, _shown(cell_value)) for key, cell_value in value.items()], "")
            )

        command = RpcCommand(
            "show",
            rpc,
            f"show {'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}",
            description=f"Shows {'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}. {hint}".strip(),
            settings={name: {"metavar": "ID", "type": types.reference, "help": "its id, or its external_id"}},
            flags={"--external": "the number is its external_id"},
            run=run,
        )
        return command

    async def _named(self, operator: Operator, arguments: argparse.Namespace, external_id: str) -> int:
        """The id of the record with the external_id. Raises CommandError."""
        command = self.list
        request: Any = GetMessageClass(self.rpc.input_type)()
        setattr(request, self.external, external_id)
        request.limit = PAGE
        for _ in range(_LOOKED_THROUGH // PAGE):
            page = await response_of(operator, command, request, arguments.company_id)
            ids = [getattr(row, self.id) for row in getattr(page, self.rows) if row.external_id == external_id]
            if len(ids) > 1:
                all_ids = ", ".join(map(str, ids))
                raise CommandError(f"Several {self.rows} have that external_id; name one of the ids {all_ids}.")
            if ids:
                return int(ids[0])
            following = self._next(page)
            if following is None:
                break
            setattr(request, self.cursor, following)
        raise CommandError(f"The company has no {self.noun} with that external_id.")


def _shown(value: Any) -> object:
    """A value in full, a part of the record with its id."""
    if isinstance(value, Mapping) and {"id", "name"} <= value.keys():
        return f"{value['name']} ({value['id']})"
    return value if isinstance(value, str) else cell(value)


def _id(text: str) -> int | None:
    """The id that the text is; None for another text."""
    with contextlib.suppress(argparse.ArgumentTypeError):
        return types.record_id(text)
    return None


def _at(row: Record, path: str) -> object:
    """The value of a cell. `a|b` is a, or b where a is empty."""
    for alternative in path.split("|"):
        value: Any = row
        for name in alternative.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value not in (None, ""):
            return cell(value[:10] if alternative.endswith("_at") else value)
    return None
