"""An example of each operation in curl, Python and TypeScript, from the examples of the document.

They run as pasted in the demo company, whose ids they have. Tests run all of them there, and against the answers that
the document shows.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.http.reference import BASE_URL
from reference.clients import Call, Description, Field
from reference.events import Schema
from reference.typescript_client import camel

PYTHON_BEGINS = (
    "from makeready_client import Makeready\n\nclient = Makeready()  # MAKEREADY_API_KEY, MAKEREADY_BASE_URL\n"
)
TYPESCRIPT_BEGINS = (
    'import { Makeready } from "@makeready/client";\n\n'
    "const client = new Makeready(); // MAKEREADY_API_KEY, MAKEREADY_BASE_URL\n"
)
# Ids that the server chooses, for these operations: the operation that gives one, and its field.
GIVEN_BY = {
    "DELETE /webhooks/{sub_id}": ("POST /webhooks", "entity_id"),
    "GET /webhooks/{sub_id}/deliveries/{event_id}": ("GET /webhooks/{sub_id}/deliveries", "event_id"),
    "GET /webhooks/{sub_id}/replays/{replay_id}": ("POST /webhooks/{sub_id}/replay", "entity_id"),
    "GET /requests/{request_id}": ("GET /requests", "request_id"),
}
AUTHORIZATION = '-H "Authorization: Bearer $MAKEREADY_API_KEY"'
PYTHON_LOOP = "for {name} in {call}:\n    print({name}{field})"
TYPESCRIPT_LOOP = "for await (const {name} of {call}) {{\n  console.log({name}{field});\n}}"
LINE = 72


def add(document: Schema, description: Description) -> None:
    """Adds `x-codeSamples` to every operation of the document."""
    bodies = {model.name: model.fields for model in description.models if model.is_body}
    samples = {
        f"{call.method} {call.path}": Sample(
            call, document["paths"][call.path][call.method.lower()], bodies.get(call.body, ())
        )
        for resource in description.resources
        for call in resource.calls
    }
    for name, (giver, field) in GIVEN_BY.items():
        samples[name].takes_last_id_from(samples[giver], field)
    for sample in samples.values():
        sample.operation["x-codeSamples"] = [
            {"lang": "Shell", "label": "curl", "source": sample.curl()},
            {"lang": "Python", "label": "Python", "source": sample.python()},
            {"lang": "TypeScript", "label": "TypeScript", "source": sample.typescript()},
        ]


class Sample:
    """The example of one operation, with the same values in every language. It runs as pasted against the demo."""

    def __init__(self, call: Call, operation: Schema, fields: tuple[Field, ...]) -> None:
        self.operation = operation
        self.call = call
        self._giver: tuple[Sample, str] | None = None
        parameters = operation.get("parameters", ())
        self.ids = [parameter["example"] for parameter in parameters if parameter["in"] == "path"]
        # A filter of few values says most; the others are in the table beside the example.
        self._query = {
            parameter["name"]: parameter["example"]
            for parameter in parameters
            if parameter["in"] == "query" and (parameter["name"] == "status" or parameter.get("required"))
        }
        self._fields = {field.name: field for field in fields}
        self._body: Mapping[str, Any] | None = None
        if content := operation.get("requestBody", {}).get("content", {}).get("application/json"):
            (example,) = content["examples"].values()
            self._body = example["value"]

    def takes_last_id_from(self, giver: Sample, field: str) -> None:
        """Lets the last id of the path be the field of what another operation answers."""
        self._giver = giver, field

    def curl(self) -> str:
        if self._giver is None:
            return self.command(self.ids) + "\n"
        giver, field = self._giver
        command = giver.command(giver.ids, options="-s", query="limit=1" if giver.is_paged else "")
        picked = f"""grep -o '"{field}":[^,]*' | cut -d: -f2 | tr -d '"'"""
        return f"{field}=$({command} |\n  {picked})\n{self.command([*self.ids[:-1], f'${field}'])}\n"

    def command(self, ids: Sequence[object], *, options: str = "", query: str = "") -> str:
        path = self.call.path
        for name, value in zip((parameter.name for parameter in self.call.ids), ids, strict=True):
            path = path.replace(f"{{{name}}}", str(value))
        query = query or "&".join(f"{name}={str(value).replace(' ', '%20')}" for name, value in self._query.items())
        words = ["curl"]
        if options:
            words.append(options)
        if self.call.method != "GET":
            words.append(f"-X {self.call.method}")
        quote = '"' if "$" in path else "'"
        words.append(f"{quote}{BASE_URL}{path}{'?' if query else ''}{query}{quote}")
        if self.call.scope != "public":
            words.append(f"\\\n  {AUTHORIZATION}")
        if self._body is not None:
            key = self._key or f"{self.call.id}-$(date +%s)"
            words.append(f"\\\n  -H 'Content-Type: application/json' -H \"Idempotency-Key: {key}\"")
            printed = json.dumps(self._body, indent=2, ensure_ascii=False).replace("'", "'\\''")
            words.append(f"\\\n  -d '{printed}'")
        return " ".join(words)

    @property
    def _key(self) -> str:
        """The `Idempotency-Key` of a write that names a row of the caller's; empty: a new one each time."""
        return str((self._body or {}).get("external_id", ""))

    def python(self) -> str:
        call = self.python_call(self.ids)
        around = self._around(call, PYTHON_LOOP, "{name} = {call}\nprint({name}{field})")
        if self._giver is not None:
            giver, field = self._giver
            noun, giving = giver.noun, giver.python_call(giver.ids, with_query=False)
            call = self.python_call([*self.ids[:-1], _Expression(f"{noun}.{field}")])
            if giver.is_paged:
                around = f"for {noun} in {giving}:\n    print({call}{self._field})\n    break\n"
            else:
                around = f"{noun} = {giving}\n" + self._around(call, "", "print({call}{field})")
        begins = PYTHON_BEGINS
        if types := sorted(
            {name for name in ("date", "datetime") if f" {name}.from" in f" {around}".replace("=", " ")}
        ):
            begins = f"from datetime import {', '.join(types)}\n\n{begins}"
        return begins + around

    def python_call(self, ids: Sequence[object], *, with_query: bool = True) -> str:
        query = self._query if with_query else {}
        keywords = [
            f"{name}={self._python(value, self._fields.get(name))}"
            for name, value in {**query, **(self._body or {})}.items()
        ]
        if self._key:
            keywords.append(f"idempotency_key={_python(self._key)}")
        return _folded(f"client.{self._method(self.call.name)}(", [*map(_python, ids), *keywords], ")", 4)

    def typescript(self) -> str:
        call = self.typescript_call(self.ids)
        around = self._around(
            call, TYPESCRIPT_LOOP, "const {name} = await {call};\nconsole.log({name}{field});", ends=";", waits="await "
        )
        if self._giver is not None:
            giver, field = self._giver
            noun, giving = giver.noun, giver.typescript_call(giver.ids, with_query=False)
            call = self.typescript_call([*self.ids[:-1], _Expression(f"{noun}.{field}")])
            if giver.is_paged:
                around = (
                    f"for await (const {noun} of {giving}) {{\n"
                    f"  console.log((await {call}){self._field});\n  break;\n}}\n"
                )
            else:
                printed = self._around(call, "", "console.log((await {call}){field});", ends=";", waits="await ")
                around = f"const {noun} = await {giving};\n{printed}"
        return TYPESCRIPT_BEGINS + around

    def typescript_call(self, ids: Sequence[object], *, with_query: bool = True) -> str:
        arguments = [*map(_typescript, ids)]
        if self._query and with_query:
            arguments.append(_typescript(self._query))
        if self._body:
            arguments.append(_typescript(self._body))
        if self._key:
            arguments.append(_typescript({"idempotencyKey": self._key}))
        return f"client.{self._method(camel(self.call.name))}({', '.join(arguments)})"

    def _method(self, name: str) -> str:
        return ".".join(filter(None, (self.call.resource, name)))

    def _python(self, value: object, field: Field | None) -> str:
        kinds = {"instant": "datetime", "date": "date"}
        basic = field.type.basic if field else None
        return f"{kinds[basic]}.fromisoformat({_python(value)})" if basic in kinds else _python(value)

    @property
    def noun(self) -> str:
        """The name of the answer, or of an item of it."""
        names = {"Event": "event", "": "document", "Whoami": "caller", "OccupancyRecord": "occupancy"}
        names |= {"NewSubscription": "subscription", "SandboxClock": "clock", "WebhookReplay": "replay"}
        names |= {
            "TicketComment": "comment",
            "SearchResults": "results",
            "ReadingResults": "results",
            "StaffMember": "member",
        }
        answer = self.call.answer
        names |= {"LoggedRequest": "request", "LoggedRequestBodies": "request"}
        noun = names.get(answer) or ("delivery" if "Delivery" in answer else answer.removesuffix("Change").lower())
        return "change" if answer.endswith("Change") else noun

    def _around(self, call: str, loop: str, fetch: str, *, ends: str = "", waits: str = "") -> str:
        if self.call.kind == "delete":
            return f"{waits}{call}{ends}\n"
        form = loop if self.is_paged or self.call.kind == "snapshot" else fetch
        return form.format(name=self.noun, call=call, field=self._field) + "\n"

    @property
    def is_paged(self) -> bool:
        return self.call.kind in ("list", "feed")

    @property
    def _field(self) -> str:
        """What a sample prints of the answer, or of an item of it."""
        expressions = {"document": "", "caller": ".company.name", "event": ".event", "delivery": ".state"}
        expressions |= {"subscription": ".secret" if self.call.answer == "NewSubscription" else ".health"}
        expressions |= {"results": ".data", "member": ".name", "report": ".total"}
        expressions |= {"change": ".entity_id", "clock": ".now", "replay": ".matched", "reading": ".consumption"}
        expressions |= {"request": ".response_body" if self.call.answer == "LoggedRequestBodies" else ".status"}
        return expressions.get(self.noun, ".entity_id")


class _Expression(str):
    """Code in place of a value."""

    __slots__ = ()


def _python(value: object) -> str:
    if isinstance(value, _Expression):
        return value
    if isinstance(value, dict):
        return _folded("{", [f'"{name}": {_python(item)}' for name, item in value.items()], "}", 4)
    if isinstance(value, list):
        return _folded("[", [_python(item) for item in value], "]", 4)
    return repr(value) if value is None or isinstance(value, bool) else json.dumps(value, ensure_ascii=False)


def _typescript(value: object) -> str:
    if isinstance(value, _Expression):
        return value
    if isinstance(value, dict):
        return _folded("{ ", [f"{name}: {_typescript(item)}" for name, item in value.items()], " }", 2)
    if isinstance(value, list):
        return _folded("[", [_typescript(item) for item in value], "]", 2)
    return json.dumps(value, ensure_ascii=False)


def _folded(begins: str, inside: Sequence[str], ends: str, indent: int) -> str:
    """On one line, or where that would be long on one for each."""
    short = begins + ", ".join(inside) + ends
    if len(short) < LINE and "\n" not in short:
        return short
    lines = "".join(textwrap.indent(f"{line},\n", " " * indent) for line in inside)
    return f"{begins.strip()}\n{lines}{ends.strip()}"
