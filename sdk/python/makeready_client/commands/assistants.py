"""`makeready-client mcp`: the operations of the API as tools of the Model Context Protocol.

The tools are made from the contract that the API serves, those that the key's scope opens. Reads are always among them,
writes with `--allow-writes`; before each write the person at the client is asked. It needs the extra `mcp`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from makeready_client import errors
from makeready_client.client import Makeready
from makeready_client.commands.command import Command, UsageError, warn
from makeready_client.exchange import __version__
from makeready_client.requests import Request, path

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext

Schema = Mapping[str, Any]
# Whole copies are for programs: `sync`, or a Mirror.
LEFT_OUT = ("/changes/", "/snapshots/")
# From this version of the protocol on a question is an answer of the tool; before, it is a request to the client.
QUESTIONS_ARE_ANSWERS = "2026-07-28"
QUESTION = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "title": "Do it", "description": "Whether this is written."}},
    "required": ["confirm"],
}


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as a tool."""

    name: str
    method: str
    path: str
    description: str
    ids: tuple[str, ...]
    query: frozenset[str]
    has_body: bool
    input_schema: dict[str, Any]

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    def request(self, arguments: Mapping[str, Any]) -> Request:
        """The request of a call. Raises ValueError for a missing id."""
        ids = [arguments.get(name, "") for name in self.ids]
        query = {name: value for name, value in arguments.items() if name in self.query}
        body = {name: value for name, value in arguments.items() if name not in (*self.ids, *self.query)}
        return Request(self.method, path(self.path, *ids), query, body if self.has_body else None)


def operations(document: Schema, scope: str, *, with_writes: bool) -> Iterator[Operation]:
    """The operations of the document that a key's scope opens."""
    for template, item in document["paths"].items():
        for method, about in item.items():
            needed = {name for opening in about.get("security", ()) for name in opening.get("bearer", ())}
            is_open = scope == "write" or not needed or scope in needed
            is_meant = about.get("security") != [] and not template.startswith(LEFT_OUT)
            if is_open and is_meant and (method == "get" or with_writes):
                yield _operation(document, method.upper(), template, about)


def _operation(document: Schema, method: str, template: str, about: Schema) -> Operation:
    parameters = [
        parameter
        for parameter in about.get("parameters", ())
        if parameter["in"] in ("path", "query") and parameter["name"] != "wait"
    ]
    properties = {
        parameter["name"]: {**parameter["schema"], "description": parameter["description"]} for parameter in parameters
    }
    required = [parameter["name"] for parameter in parameters if parameter.get("required")]
    if "requestBody" in about:
        name = about["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        body = document["components"]["schemas"][name]
        properties |= body["properties"]
        required += body["required"]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Operation(
        about["operationId"],
        method,
        template,
        about["description"],
        tuple(parameter["name"] for parameter in parameters if parameter["in"] == "path"),
        frozenset(parameter["name"] for parameter in parameters if parameter["in"] == "query"),
        "requestBody" in about,
        _with_definitions(document, schema),
    )


def _with_definitions(document: Schema, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with those that it refers to, each once."""
    definitions: dict[str, Any] = {}
    waiting = [schema]
    while waiting:
        for name in _references(waiting.pop()):
            if name not in definitions:
                definitions[name] = document["components"]["schemas"][name]
                waiting.append(definitions[name])
    text = json.dumps(schema | ({"$defs": definitions} if definitions else {}))
    whole: dict[str, Any] = json.loads(text.replace("#/components/schemas/", "#/$defs/"))
    return whole


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].rpartition("/")[2]
        for member in value.values():
            yield from _references(member)
    elif isinstance(value, list):
        for member in value:
            yield from _references(member)


class Assistant:
    """Answers the calls of tools with requests to the API."""

    def __init__(self, client: Makeready, tools: Mapping[str, Operation]) -> None:
        self._client = client
        self._tools = tools
        self._asked: dict[str, str] = {}
        """What each question is about, by the state that its answer brings back."""

    async def list_tools(
        self, _context: ServerRequestContext[Any, Any], _parameters: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """All tools."""
        import mcp_types as types  # noqa: PLC0415 - of the extra

        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=operation.name,
                    description=operation.description,
                    input_schema=operation.input_schema,
                    annotations=types.ToolAnnotations(
                        read_only_hint=not operation.is_write,
                        destructive_hint=operation.method == "DELETE",
                        open_world_hint=False,
                    ),
                )
                for operation in self._tools.values()
            ]
        )

    async def call_tool(
        self, context: ServerRequestContext[Any, Any], parameters: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """The answer of the API as text; a refusal is the tool's error. A write asks first."""
        import mcp_types as types  # noqa: PLC0415 - of the extra

        operation = self._tools.get(parameters.name)
        if operation is None:
            return _failed(f"There is no tool {parameters.name} for this key.")
        try:
            request = operation.request(parameters.arguments or {})
        except ValueError as error:
            return _failed(str(error))
        if operation.is_write:
            question = self._question(operation, parameters.arguments or {})
            confirmed = await self._confirmed(context, parameters, question)
            if isinstance(confirmed, types.InputRequiredResult):
                return confirmed
            if not confirmed:
                return _failed("Nothing was written: it was not confirmed.")
        try:
            response = await asyncio.to_thread(self._client.respond, request)
        except (errors.MakereadyError, ValueError) as error:
            return _failed(str(error))
        return types.CallToolResult(content=[types.TextContent(text=response.text or "Done.")])

    def _question(self, operation: Operation, arguments: Mapping[str, Any]) -> str:
        body = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
        return f"{operation.method} {operation.path} at {self._client.settings.base_url}, with {body}?"

    async def _confirmed(
        self, context: ServerRequestContext[Any, Any], parameters: types.CallToolRequestParams, question: str
    ) -> types.InputRequiredResult | bool:
        """Whether a person has confirmed this write; or the question, where it is the answer of the tool."""
        import mcp_types as types  # noqa: PLC0415 - of the extra

        capabilities = context.session.client_capabilities
        elicitation = capabilities.elicitation if capabilities else None
        if elicitation is None or (elicitation.form is None and elicitation.url is not None):
            return False  # the client can ask nobody
        form = types.ElicitRequestFormParams(message=question, requested_schema=QUESTION)
        if context.protocol_version < QUESTIONS_ARE_ANSWERS:
            return _is_yes(await context.session.elicit_form(question, QUESTION, context.request_id))
        # A confirmation is good for the write that was asked about, once.
        if self._asked.pop(parameters.request_state or "", None) == question:
            return _is_yes((parameters.input_responses or {}).get("confirm"))
        state = secrets.token_urlsafe(16)
        self._asked[state] = question
        return types.InputRequiredResult(
            input_requests={"confirm": types.ElicitRequest(params=form)}, request_state=state
        )


def _is_yes(answer: Any) -> bool:
    content = getattr(answer, "content", None) or {}
    return getattr(answer, "action", "") == "accept" and content.get("confirm") is True


def _failed(text: str) -> types.CallToolResult:
    import mcp_types as types  # noqa: PLC0415 - of the extra

    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _serve(client: Makeready, arguments: argparse.Namespace) -> int:
    """Serves the tools on stdin and stdout until the client goes."""
    try:
        from mcp.server.lowlevel import Server  # noqa: PLC0415 - of the extra
        from mcp.server.stdio import stdio_server  # noqa: PLC0415
    except ImportError:
        raise UsageError("this command needs the extra mcp: install makeready-client[mcp]") from None
    key = client.whoami().key
    tools = {
        operation.name: operation
        for operation in operations(client.openapi(), key.scope, with_writes=arguments.allow_writes)
    }
    assistant = Assistant(client, tools)
    server: Server[Any] = Server(
        "makeready",
        version=__version__,
        instructions="Maintenance and occupancy records of one company. Lists have pages: follow next_cursor.",
        on_list_tools=assistant.list_tools,
        on_call_tool=assistant.call_tool,
    )
    warn(f"{len(tools)} tools; the key's scope is {key.scope}")

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(serve())
    return 0


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--allow-writes", action="store_true", help="tools that write; each call asks a person first")


MCP = Command(
    "mcp",
    "serve the API's operations as tools to an assistant",
    _serve,
    _arguments,
    "Serves the operations that the key's scope opens as tools of the Model Context Protocol, on stdin and stdout. "
    "It needs makeready-client[mcp].",
)
