"""A command made from a contract: one RPC, the request's fields as arguments, and `--as` for the actor.

A required field is a required argument, an optional one is an option; the proto says which are positional.
`rendering` prints the response, unless the command has an `answer`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

from chassis.auth.clients import ServiceUnavailable
from chassis.auth.rpcs import response_to
from makeready_cli import argument_types as types
from makeready_cli.calls import DEADLINE_SECONDS, Operator, ensure_company, is_transient, unavailable_message
from makeready_cli.errors import CommandError
from makeready_cli.output import Answer
from makeready_cli.parsers import COMPANY_VARIABLE, Commands, Settings, command
from makeready_cli.rpc.actor import add_actor, is_for_people
from makeready_cli.rpc.arguments import COMPANY, IDEMPOTENCY_KEY, add_fields, request_of
from makeready_cli.rpc.confirmations import confirmation
from makeready_cli.rpc.rendering import record_of, text_of

ATTEMPTS = 2
PAUSE_SECONDS = 0.5
_NEXT = "next_"

# By the context in the name of a contract's package.
_SERVERS = {
    "identity": "gateway",
    "catalog": "svc-catalog",
    "occupancy": "svc-occupancy",
    "tickets": "svc-tickets",
    "webhooks": "svc-webhooks",
}

Run = Callable[[Operator, argparse.Namespace], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class RpcCommand:
    """One command. brief: a phrase for the list of commands. The proto says which fields are positional, and what each
    is (`positional` and `help` of options.proto)."""

    name: str
    rpc: MethodDescriptor
    brief: str
    description: str = ""
    company: bool = True
    """Whether the company's id is the first argument."""
    settings: Mapping[str, Settings] = field(default_factory=dict)
    """By field: overrides for argparse's `add_argument`; `flag` is the option's name."""
    hidden: tuple[str, ...] = ()
    """Fields that have no argument."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Options that affect only the answer, by their spelling: a phrase for each."""
    all_pages: bool = False
    """Whether all pages of a list are read: each `next_FIELD` of a response goes into FIELD of the next request."""
    deadline_seconds: float = DEADLINE_SECONDS
    answer: Callable[[Any, argparse.Namespace], Answer] | None = None
    """Makes the answer from the response. Without it the response itself is the answer."""
    run: Run | None = None
    """Does all of the command's work, for commands that are more than one RPC."""

    @property
    def service(self) -> str:
        """The process that serves the RPC."""
        return _SERVERS[self.rpc.containing_service.full_name.split(".")[1]]

    @property
    def fields(self) -> Mapping[str, Any]:
        """The request's fields."""
        fields: Mapping[str, Any] = self.rpc.input_type.fields_by_name
        return fields

    @property
    def is_read(self) -> bool:
        return bool(self.rpc.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS)

    @property
    def next_fields(self) -> dict[str, str]:
        """By each `next_FIELD` of a response the request's FIELD, if the command reads all pages."""
        names = {name: name.removeprefix(_NEXT) for name in self.rpc.output_type.fields_by_name}
        return {name: field for name, field in names.items() if name != field} if self.all_pages else {}


def add_commands(verbs: Commands, *commands: RpcCommand) -> None:
    """Adds the commands to a group."""
    for spec in commands:
        parser = command(verbs, spec.name, spec.brief, spec.description)
        if spec.company:
            help_ = f"the company whose records they are (default: {COMPANY_VARIABLE})"
            parser.add_argument(COMPANY, metavar="COMPANY_ID", type=types.record_id, help=help_)
        hidden = (*spec.hidden, *spec.next_fields.values())
        add_fields(parser, spec.rpc, spec.settings, hidden)
        for flag, phrase in spec.flags.items():
            parser.add_argument(flag, action="store_true", help=phrase)
        if is_for_people(spec.rpc):
            add_actor(parser, spec.rpc)
        parser.set_defaults(run=spec.run or _runs(spec), rpc_command=spec)


def _runs(command: RpcCommand) -> Run:
    async def run(operator: Operator, arguments: argparse.Namespace) -> Answer:
        request = request_of(command.rpc, arguments)
        # The service that knows all companies refuses an unknown company_id in the request by itself.
        company_id = arguments.company_id if command.company and COMPANY not in command.fields else 0
        if company_id:
            await ensure_company(operator, company_id)
        if not command.is_read and is_for_people(command.rpc):
            operator.trace()
        response = await response_of(operator, command, request, company_id)
        if command.answer is not None:
            return command.answer(response, arguments)
        value = record_of(response)
        return Answer(value, confirmation(command.rpc, value) or text_of(value))

    return run


async def response_of(operator: Operator, command: RpcCommand, request: Any, company_id: int) -> Any:
    """The response; of all pages, one response with all their rows."""
    whole = await _page(operator, command, request, company_id)
    page = whole
    while following := [name for name in command.next_fields if page.HasField(name)]:
        for name in following:
            setattr(request, command.next_fields[name], getattr(page, name))
        page = await _page(operator, command, request, company_id)
        whole.MergeFrom(page)
    return whole


async def _page(operator: Operator, command: RpcCommand, request: Any, company_id: int) -> Any:
    """One response. If no answer arrives, a call that is safe to repeat is repeated once."""
    is_idempotent = IDEMPOTENCY_KEY in command.fields
    for attempt in range(ATTEMPTS if is_idempotent or command.is_read else 1):
        if attempt:
            await asyncio.sleep(PAUSE_SECONDS)
        try:
            return await operator.ask(
                command.service,
                request,
                response_to(type(request)),
                company_id=company_id,
                deadline_seconds=command.deadline_seconds,
            )
        except ServiceUnavailable as error:
            unavailable = error
            if not is_transient(error):
                break
    again = ""
    if is_idempotent:
        again = f" To do it once all the same, repeat it with --idempotency-key {request.idempotency_key}."
    raise CommandError(unavailable_message(command.service, unavailable) + again) from None
