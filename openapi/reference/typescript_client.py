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


def modules(found: Description) -> dict[str, str]:
    """The text of each module by its name."""
    return {"models.ts": _models(found), "resources.ts": _resources(found), "errors.ts": _errors(found)}


def camel(name: str) -> str:
    """change_status: changeStatus. Methods have names of the language, fields those of the API."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _models(found: Description) -> str:
    lines = [
        HEAD.format("Records, bodies of requests, events and enums."),
        "/** The date of the last change of the contract that this was made from. */\n",
        f"export const CONTRACT = {_text(found.version)};\n",
        f"export const PAGE_RECORDS_MAX = {found.limit_max};\n",
        "/** The kinds of records that have a snapshot and a feed of changes. */\n",
        f"export const KINDS = [{', '.join(map(_text, found.kinds))}] as const;\n",
        "/** A value of an enum in an answer: those that are known, or a later version's. */\n",
        "export type Open<T extends string> = T | (string & {});\n\n",
    ]
    lines += [f"export type {one.name} =\n  {_union(map(_text, one.values))};\n" for one in found.enums]
    for model in found.models:
        lines += _interface(model)
    lines.append(
        "\n/** An event whose key this version does not know. */\nexport interface UnknownEvent {\n"
        "  schema_version: number;\n  event_id: string;\n  event: string;\n  occurred_at: string;\n"
        "  company_id: number;\n  data: Record<string, unknown>;\n  change: Record<string, unknown> | null;\n}\n"
    )
    lines.append("\n/** The envelope of each event by its key. */\nexport interface Events {\n")
    lines += [f"  {_text(one.key)}: {one.model};\n" for one in found.events]
    lines.append("}\nexport type Event = Events[keyof Events] | UnknownEvent;\n")
    return "".join(lines)


def _interface(model: Model) -> Iterator[str]:
    yield f"\n{_doc(model.description or 'What has changed.', 0)}export interface {model.name} {{\n"
    for one in model.fields:
        # An optional value of a body may be undefined or null, which both mean that it is left out.
        optional = "" if one.is_required else "?"
        kind = _annotation(one.type) + ("" if one.is_required else " | undefined")
        yield f"{_doc(one.description, 2)}  {one.name}{optional}: {kind};\n"
    yield "}\n"


def _annotation(kind: Type, prefix: str = "") -> str:
    if kind.item:
        item = _annotation(kind.item, prefix)
        found = f"({item})[]" if "|" in item else f"{item}[]"
    elif kind.model:
        found = prefix + kind.model
    elif kind.enum:
        found = f"{prefix}Open<{prefix}{kind.enum}>" if kind.is_open else prefix + kind.enum
    elif isinstance(kind.const, bool):
        found = "boolean"
    elif kind.const is not None:
        found = json.dumps(kind.const)
    elif kind.basic:
        found = _BASIC[kind.basic]
    else:
        return "null"
    return f"{found} | null" if kind.nullable else found


def _resources(found: Description) -> str:
    bodies = {one.name: one for one in found.models}
    lines = [
        HEAD.format("The operations of the API, by resource."),
        'import { type Answered, type CallOptions, Core, Resource, type WriteOptions, path } from "./core.ts";\n'
        'import { Following } from "./following.ts";\n'
        'import type * as models from "./models.ts";\n'
        'import { Feed, Pages } from "./paging.ts";\n'
        'import { Snapshot } from "./snapshots.ts";\n',
    ]
    own: tuple[Call, ...] = ()
    for one in found.resources:
        if one.name:
            lines += _resource(one, bodies)
        else:
            own = one.calls
    lines.append("\n/** All operations of the API. */\nexport class Api extends Core {\n")
    lines += [
        f"  readonly {one.name}: {one.name.title()} = new {one.name.title()}(this);\n"
        for one in found.resources
        if one.name
    ]
    for call in own:
        lines += _method(call, bodies, "this")
    lines.append("}\n")
    return "".join(lines)


def _resource(one: Resource, bodies: dict[str, Model]) -> Iterator[str]:
    yield (
        f"\n/** `client.{one.name}`. */\nexport class {one.name.title()} extends {BASES.get(one.name, 'Resource')} {{\n"
    )
    for number, call in enumerate(one.calls):
        yield from _method(call, bodies, "this.client", is_first=not number)
    yield "}\n"


def _method(call: Call, bodies: dict[str, Model], client: str, *, is_first: bool = False) -> Iterator[str]:
    parameters = [f"{camel(one.name)}: {_parameter(one.type)}" for one in call.ids]
    query = _query(call)
    if query:
        fields = "; ".join(f"{name}?: {kind} | undefined" for name, kind in query.items())
        parameters.append(f"query: {{ {fields} }} = {{}}")
    if call.body:
        needed = any(one.is_required for one in bodies[call.body].fields)
        parameters.append(f"body: models.{call.body}{'' if needed else ' = {}'}")
    parameters.append(f"options: {'WriteOptions' if call.body else 'CallOptions'} = {{}}")
    place = (
        f"path`{re.sub('{(.*?)}', lambda one: '${' + camel(one[1]) + '}', call.path)}`"
        if call.ids
        else _text(call.path)
    )
    request = [f"method: {_text(call.method)}", f"path: {place}"]
    request += ["query"] * bool(query) + ["body"] * bool(call.body) + ["options"]
    returned, made = _made(call)
    yield "" if is_first else "\n"
    yield _doc(f"{call.summary}.\n\n{call.description}\n\n{_notes(call)}", 2)
    signature = f"  {camel(call.name)}({', '.join(parameters)}): {returned} {{\n"
    if len(signature) > WIDTH:
        lines = "".join(f"    {one},\n" for one in _folded(parameters))
        signature = f"  {camel(call.name)}(\n{lines}  ): {returned} {{\n"
    yield signature
    yield f"    return {made.format(client=client, request='{ ' + ', '.join(request) + ' }')};\n  }}\n"


def _folded(parameters: list[str]) -> Iterator[str]:
    for one in parameters:
        if len(one) + 5 > WIDTH and one.startswith("query: { "):
            fields = one.removeprefix("query: { ").removesuffix(" } = {}").split("; ")
            yield "query: {\n" + "".join(f"      {field};\n" for field in fields) + "    } = {}"
        else:
            yield one


def _query(call: Call) -> dict[str, str]:
    """The types of the query by name."""
    found = {one.name: _parameter(one.type) for one in call.query}
    if call.kind in ("list", "feed"):
        found |= {"limit": "number", "cursor": "string"}
    if call.kind == "feed":
        found["wait"] = "number"
    return found


def _parameter(kind: Type) -> str:
    return "Date | string" if kind.basic == "instant" else _annotation(kind, "models.")


def _notes(call: Call) -> str:
    lines = [f"@param {camel(one.name)} {one.description}" for one in call.ids]
    lines += [f"@param query.{one.name} {one.description}" for one in call.query]
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


def _errors(found: Description) -> str:
    lines = [
        HEAD.format("A class for each error code of the API."),
        'import { ApiError } from "./failures.ts";\n\n'
        'export { ApiError, ConnectionFailed, MakereadyError, SignatureInvalid } from "./failures.ts";\n',
    ]
    for one in found.failures:
        statuses = " or ".join(map(str, one.statuses))
        lines.append(
            f"\n{_doc(f'{statuses} `{one.code}`. {one.meaning} {one.remedy}', 0)}"
            f"export class {one.name} extends ApiError {{}}\n"
        )
    lines.append("\nexport const BY_CODE: Readonly<Record<string, typeof ApiError>> = {\n")
    lines += [f"  {one.code}: {one.name},\n" for one in found.failures]
    lines.append("};\n")
    return "".join(lines)


def _union(values: Iterator[str]) -> str:
    return textwrap.fill(" | ".join(values), WIDTH - 2, subsequent_indent="  | ", break_long_words=False).replace(
        " |\n  | ", "\n  | "
    )


def _doc(text: str, indent: int) -> str:
    """A comment of documentation; empty if there is no text."""
    space = " " * indent
    paragraphs = [" ".join(one.split()) for one in text.replace("*/", "*\\/").strip().split("\n\n")]
    if not paragraphs[0]:
        return ""
    if len(paragraphs) == 1 and len(paragraphs[0]) + indent + 7 <= WIDTH:
        return f"{space}/** {paragraphs[0]} */\n"
    lines: list[str] = []
    for one in paragraphs:
        # Tags follow one another without a blank line.
        lines += [""] if lines and not (one.startswith("@") and lines[-1].startswith(("@", " "))) else []
        lines += textwrap.wrap(
            one, WIDTH - indent - 3, break_on_hyphens=False, break_long_words=False,
            subsequent_indent="  " if one.startswith("@") else "",
        )  # fmt: skip
    body = "".join(f"{space} *{' ' + line if line else ''}\n" for line in lines)
    return f"{space}/**\n{body}{space} */\n"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
