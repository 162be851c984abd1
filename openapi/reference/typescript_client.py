"""Prints the generated modules of sdk/typescript from the description of the API: models, resources and errors."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator

from reference.clients import Call, Description, Model, Resource, Type

HEAD = "// {}\n// Made by `make openapi` from the tables of the API: change openapi/reference instead.\n\n"
WIDTH = 120
# Resources that have more than their calls: a base class written by hand.
BASES = {"events": "Following"}
_BASIC = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}
_BASIC |= {"instant": "string", "date": "string"}


def modules(description: Description) -> dict[str, str]:
    """The text of each module by its name."""
    return {
        "models.ts": _models(description),
        "resources.ts": _resources(description),
        "errors.ts": _errors(description),
    }


def camel(name: str) -> str:
    """change_status: changeStatus. Methods have names of the language, fields those of the API."""
    first, *words = name.split("_")
    return first + "".join(word.title() for word in words)


def _models(description: Description) -> str:
    lines = [
        HEAD.format("Records, bodies of requests, events and enums."),
        "/** The date of the last change of the contract that this was made from. */\n",
        f"export const CONTRACT = {_text(description.version)};\n",
        f"export const PAGE_RECORDS_MAX = {description.limit_max};\n",
        "/** The kinds of records that have a snapshot and a feed of changes. */\n",
        f"export const KINDS = [{', '.join(map(_text, description.kinds))}] as const;\n",
        "/** A value of an enum in an answer: those that are known, or a later version's. */\n",
        "export type Open<T extends string> = T | (string & {});\n\n",
    ]
    lines += [f"export type {enum.name} =\n  {_union(map(_text, enum.values))};\n" for enum in description.enums]
    for model in description.models:
        lines += _interface(model)
    lines.append(
        "\n/** An event whose key this version does not know. */\nexport interface UnknownEvent {\n"
        "  schema_version: number;\n  event_id: string;\n  event: string;\n  occurred_at: string;\n"
        "  company_id: number;\n  data: Record<string, unknown>;\n  change: Record<string, unknown> | null;\n}\n"
    )
    lines.append("\n/** The envelope of each event by its key. */\nexport interface Events {\n")
    lines += [f"  {_text(event.key)}: {event.model};\n" for event in description.events]
    lines.append("}\nexport type Event = Events[keyof Events] | UnknownEvent;\n")
    return "".join(lines)


def _interface(model: Model) -> Iterator[str]:
    yield f"\n{_doc(model.description or 'What has changed.', 0)}export interface {model.name} {{\n"
    for field in model.fields:
        # An optional value of a body may be undefined or null, which both mean that it is left out.
        optional = "" if field.is_required else "?"
        kind = _annotation(field.type) + ("" if field.is_required else " | undefined")
        yield f"{_doc(field.description, 2)}  {field.name}{optional}: {kind};\n"
    yield "}\n"


def _annotation(kind: Type, prefix: str = "") -> str:
    if kind.item:
        item = _annotation(kind.item, prefix)
        annotation = f"({item})[]" if "|" in item else f"{item}[]"
    elif kind.value:
        annotation = f"Record<string, {_annotation(kind.value, prefix)}>"
    elif kind.model:
        annotation = prefix + kind.model
    elif kind.enum:
        annotation = f"{prefix}Open<{prefix}{kind.enum}>" if kind.is_open else prefix + kind.enum
    elif isinstance(kind.const, bool):
        annotation = "boolean"
    elif kind.const is not None:
        annotation = json.dumps(kind.const)
    elif kind.basic:
        annotation = _BASIC[kind.basic]
    else:
        return "null"
    return f"{annotation} | null" if kind.nullable else annotation


def _resources(description: Description) -> str:
    bodies = {model.name: model for model in description.models}
    lines = [
        HEAD.format("The operations of the API, by resource."),
        'import { type Answered, type CallOptions, Core, Resource, type WriteOptions, path } from "./core.ts";\n'
        'import { Following } from "./following.ts";\n'
        'import type * as models from "./models.ts";\n'
        'import { Feed, Pages } from "./paging.ts";\n'
        'import { Snapshot } from "./snapshots.ts";\n',
    ]
    calls: tuple[Call, ...] = ()
    for resource in description.resources:
        if resource.name:
            lines += _resource(resource, bodies)
        else:
            calls = resource.calls
    lines.append("\n/** All operations of the API. */\nexport class Api extends Core {\n")
    lines += [
        f"  readonly {resource.name}: {resource.name.title()} = new {resource.name.title()}(this);\n"
        for resource in description.resources
        if resource.name
    ]
    for call in calls:
        lines += _method(call, bodies, "this")
    lines.append("}\n")
    return "".join(lines)


def _resource(resource: Resource, bodies: dict[str, Model]) -> Iterator[str]:
    base = BASES.get(resource.name, "Resource")
    yield f"\n/** `client.{resource.name}`. */\nexport class {resource.name.title()} extends {base} {{\n"
    for number, call in enumerate(resource.calls):
        yield from _method(call, bodies, "this.client", is_first=not number)
    yield "}\n"


def _method(call: Call, bodies: dict[str, Model], client: str, *, is_first: bool = False) -> Iterator[str]:
    parameters = [f"{camel(parameter.name)}: {_parameter(parameter.type)}" for parameter in call.ids]
    query = _query(call)
    if query:
        required = {field.name for field in call.query if field.is_required}
        fields = "; ".join(
            f"{name}: {kind}" if name in required else f"{name}?: {kind} | undefined" for name, kind in query.items()
        )
        parameters.append(f"query: {{ {fields} }}{'' if required else ' = {}'}")
    if call.body:
        needed = any(field.is_required for field in bodies[call.body].fields)
        parameters.append(f"body: models.{call.body}{'' if needed else ' = {}'}")
    parameters.append(f"options: {'WriteOptions' if call.body else 'CallOptions'} = {{}}")
    place = (
        f"path`{re.sub('{(.*?)}', lambda match: '${' + camel(match[1]) + '}', call.path)}`"
        if call.ids
        else _text(call.path)
    )
    request = [f"method: {_text(call.method)}", f"path: {place}"]
    request += ["query"] * bool(query) + ["body"] * bool(call.body) + ["options"]
    returned, constructed = _made(call)
    yield "" if is_first else "\n"
    yield _doc(f"{call.summary}.\n\n{call.description}\n\n{_notes(call)}", 2)
    signature = f"  {camel(call.name)}({', '.join(parameters)}): {returned} {{\n"
    if len(signature) > WIDTH:
        lines = "".join(f"    {parameter},\n" for parameter in _folded(parameters))
        signature = f"  {camel(call.name)}(\n{lines}  ): {returned} {{\n"
    yield signature
    yield f"    return {constructed.format(client=client, request='{ ' + ', '.join(request) + ' }')};\n  }}\n"


def _folded(parameters: list[str]) -> Iterator[str]:
    for parameter in parameters:
        if len(parameter) + 5 > WIDTH and parameter.startswith("query: { "):
            fields = parameter.removeprefix("query: { ").removesuffix(" } = {}").split("; ")
            yield "query: {\n" + "".join(f"      {field};\n" for field in fields) + "    } = {}"
        else:
            yield parameter


def _query(call: Call) -> dict[str, str]:
    """The types of the query by name."""
    fields = {field.name: _parameter(field.type) for field in call.query}
    if call.kind in ("list", "feed"):
        fields |= {"limit": "number", "cursor": "string"}
    if call.kind == "feed":
        fields["wait"] = "number"
    return fields


def _parameter(kind: Type) -> str:
    return "Date | string" if kind.basic == "instant" else _annotation(kind, "models.")


def _notes(call: Call) -> str:
    lines = [f"@param {camel(parameter.name)} {parameter.description}" for parameter in call.ids]
    lines += [f"@param query.{parameter.name} {parameter.description}" for parameter in call.query]
    if call.kind in ("list", "feed"):
        lines.append("@param query.limit How many records a page has; as many as the API allows if left out.")
    return "\n\n".join(lines)


def _made(call: Call) -> tuple[str, str]:
    """What the method returns, and the expression that makes it."""
    answer = f"models.{call.answer}"
    if call.kind in ("list", "feed"):
        name = "Pages" if call.kind == "list" else "Feed"
        return f"{name}<{answer}>", f"new {name}({{client}}, {{request}})"
    if call.kind == "snapshot":
        return f"Snapshot<{answer}>", "new Snapshot({client}, {request})"
    if call.kind == "delete":
        return "Promise<void>", "{client}.send({request})"
    if not call.answer:
        return "Promise<Answered<Record<string, unknown>>>", "{client}.call({request})"
    return f"Promise<Answered<{answer}>>", "{client}.call({request})"


def _errors(description: Description) -> str:
    lines = [
        HEAD.format("A class for each error code of the API."),
        'import { ApiError } from "./failures.ts";\n\n'
        'export { ApiError, ConnectionFailed, MakereadyError, SignatureInvalid } from "./failures.ts";\n',
    ]
    for failure in description.failures:
        statuses = " or ".join(map(str, failure.statuses))
        lines.append(
            f"\n{_doc(f'{statuses} `{failure.code}`. {failure.meaning} {failure.remedy}', 0)}"
            f"export class {failure.name} extends ApiError {{}}\n"
        )
    lines.append("\nexport const BY_CODE: Readonly<Record<string, typeof ApiError>> = {\n")
    lines += [f"  {failure.code}: {failure.name},\n" for failure in description.failures]
    lines.append("};\n")
    return "".join(lines)


def _union(values: Iterator[str]) -> str:
    return textwrap.fill(" | ".join(values), WIDTH - 2, subsequent_indent="  | ", break_long_words=False).replace(
        " |\n  | ", "\n  | "
    )


def _doc(text: str, indent: int) -> str:
    """A comment of documentation; empty if there is no text."""
    space = " " * indent
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.replace("*/", "*\\/").strip().split("\n\n")]
    if not paragraphs[0]:
        return ""
    if len(paragraphs) == 1 and len(paragraphs[0]) + indent + 7 <= WIDTH:
        return f"{space}/** {paragraphs[0]} */\n"
    lines: list[str] = []
    for paragraph in paragraphs:
        # Tags follow one another without a blank line.
        lines += [""] if lines and not (paragraph.startswith("@") and lines[-1].startswith(("@", " "))) else []
        lines += textwrap.wrap(
            paragraph, WIDTH - indent - 3, break_on_hyphens=False, break_long_words=False,
            subsequent_indent="  " if paragraph.startswith("@") else "",
        )  # fmt: skip
    body = "".join(f"{space} *{' ' + line if line else ''}\n" for line in lines)
    return f"{space}/**\n{body}{space} */\n"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
