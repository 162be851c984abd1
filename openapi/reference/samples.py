"""An example of each operation in curl, Python and TypeScript, from the examples of the document.

A test runs all of them against the answers that the document shows, and compares what they send.
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
AUTHORIZATION = '-H "Authorization: Bearer $MAKEREADY_API_KEY"'
LINE = 72


def add(document: Schema, description: Description) -> None:
    """Adds `x-codeSamples` to every operation of the document."""
    bodies = {model.name: model.fields for model in description.models if model.is_body}
    for resource in description.resources:
        for call in resource.calls:
            operation = document["paths"][call.path][call.method.lower()]
            sample = Sample(call, operation, bodies.get(call.body, ()))
            operation["x-codeSamples"] = [
                {"lang": "Shell", "label": "curl", "source": sample.curl()},
                {"lang": "Python", "label": "Python", "source": sample.python()},
                {"lang": "TypeScript", "label": "TypeScript", "source": sample.typescript()},
            ]


class Sample:
    """The example of one operation, with the same values in every language."""

    def __init__(self, call: Call, operation: Schema, fields: tuple[Field, ...]) -> None:
        self._call = call
        parameters = operation.get("parameters", ())
        self._ids = [parameter["example"] for parameter in parameters if parameter["in"] == "path"]
        # A filter of few values says most; the others are in the table beside the example.
        self._query = {
            parameter["name"]: parameter["example"]
            for parameter in parameters
            if parameter["name"] == "status" and parameter["in"] == "query"
        }
        self._fields = {field.name: field for field in fields}
        self._body: Mapping[str, Any] | None = None
        if content := operation.get("requestBody", {}).get("content", {}).get("application/json"):
            (example,) = content["examples"].values()
            self._body = example["value"]

    def curl(self) -> str:
        path = self._call.path
        for name, value in zip((parameter.name for parameter in self._call.ids), self._ids, strict=True):
            path = path.replace(f"{{{name}}}", str(value))
        query = "&".join(f"{name}={str(value).replace(' ', '%20')}" for name, value in self._query.items())
        words = ["curl"]
        if self._call.method != "GET":
            words.append(f"-X {self._call.method}")
        words.append(f"'{BASE_URL}{path}{'?' if query else ''}{query}'")
        if self._call.scope != "public":
            words.append(f"\\\n  {AUTHORIZATION}")
        if self._body is not None:
            words.append("\\\n  -H 'Content-Type: application/json' -H \"Idempotency-Key: $(uuidgen)\"")
            printed = json.dumps(self._body, indent=2, ensure_ascii=False).replace("'", "'\\''")
            words.append(f"\\\n  -d '{printed}'")
        return " ".join(words) + "\n"

    def python(self) -> str:
        keywords = [
            f"{name}={self._python(value, self._fields.get(name))}"
            for name, value in {**self._query, **(self._body or {})}.items()
        ]
        arguments = [*map(_python, self._ids), *keywords]
        call = _folded(f"client.{self._method(self._call.name)}(", arguments, ")", 4)
        begins = PYTHON_BEGINS
        if types := sorted({name for name in ("date", "datetime") if f" {name}.from" in f" {call}".replace("=", " ")}):
            begins = f"from datetime import {', '.join(types)}\n\n{begins}"
        return begins + self._around(
            call, "for {one} in {call}:\n    print({one}{id})", "{one} = {call}\nprint({one}{id})"
        )

    def typescript(self) -> str:
        arguments = [*map(_typescript, self._ids)]
        if self._query:
            arguments.append(_typescript(self._query))
        if self._body:
            arguments.append(_typescript(self._body))
        call = f"client.{self._method(camel(self._call.name))}({', '.join(arguments)})"
        return TYPESCRIPT_BEGINS + self._around(
            call,
            "for await (const {one} of {call}) {{\n  console.log({one}{id});\n}}",
            "const {one} = await {call};\nconsole.log({one}{id});",
            ends=";",
            waits="await ",
        )

    def _method(self, name: str) -> str:
        return ".".join(filter(None, (self._call.resource, name)))

    def _python(self, value: object, field: Field | None) -> str:
        kinds = {"instant": "datetime", "date": "date"}
        basic = field.type.basic if field else None
        return f"{kinds[basic]}.fromisoformat({_python(value)})" if basic in kinds else _python(value)

    def _around(self, call: str, loop: str, fetch: str, *, ends: str = "", waits: str = "") -> str:
        if self._call.kind == "delete":
            return f"{waits}{call}{ends}\n"
        names = {"Event": "event", "": "document", "Whoami": "caller", "OccupancyRecord": "occupancy"}
        names |= {"NewSubscription": "subscription", "WebhookReplay": "replay"}
        answer = self._call.answer
        noun = names.get(answer) or ("delivery" if "Delivery" in answer else answer.removesuffix("Change").lower())
        noun = "change" if answer.endswith("Change") else noun
        expressions = {"document": "", "caller": ".company.name", "event": ".event", "delivery": ".state"}
        expressions |= {"subscription": ".secret" if answer == "NewSubscription" else ".health"}
        expressions |= {"change": ".entity_id", "replay": ".matched", "reading": ".consumption"}
        form = loop if self._call.kind in ("list", "feed", "snapshot") else fetch
        return form.format(one=noun, call=call, id=expressions.get(noun, ".entity_id")) + "\n"


def _python(value: object) -> str:
    if isinstance(value, dict):
        return _folded("{", [f'"{name}": {_python(item)}' for name, item in value.items()], "}", 4)
    if isinstance(value, list):
        return _folded("[", [_python(item) for item in value], "]", 4)
    return repr(value) if value is None or isinstance(value, bool) else json.dumps(value, ensure_ascii=False)


def _typescript(value: object) -> str:
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
