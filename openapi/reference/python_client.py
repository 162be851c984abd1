"""Prints the generated modules of sdk/python from the description of the API: models, resources and errors.

The lines are as `ruff format` leaves them, so that the generated files are checked like all others.
"""

from __future__ import annotations

import keyword
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from reference.clients import Call, Description, Field, Model, Resource, Type

HEAD = '"""{}\n\nMade by `make openapi` from the tables of the API: change openapi/reference instead.\n"""\n\n'
WIDTH = 120
# The resource that has more than its calls: a base class written by hand.
BASES = {"events": ("Following", "AsyncFollowing")}
_BASIC = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "instant": "datetime.datetime"}
_BASIC |= {"date": "datetime.date"}


def modules(description: Description) -> dict[str, str]:
    """The text of each module by its name."""
    texts = {"models": _models(description), "resources": _resources(description), "errors": _errors(description)}
    return {f"{name}.py": _formatted(text) for name, text in texts.items()}


def _formatted(text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    command = [str(ruff), "format", "-q", "--isolated", "--line-length", str(WIDTH), "--target-version", "py311", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603


def _models(description: Description) -> str:
    """Enums, records, events, and the objects that stand in bodies of requests."""
    answers = {call.answer for resource in description.resources for call in resource.calls if not call.page}
    events = {event.model for event in description.events}
    open_enums = {kind.enum for model in description.models for kind in _kinds(model) if kind.is_open}
    lines = [
        HEAD.format(
            "Records, events and enums.\n\n"
            "Enums in answers are open: any other text may come, and unknown fields are ignored."
        ),
        "from __future__ import annotations\n\nimport datetime\n"
        "from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict\n\n"
        "from makeready_client.answers import Answer, Envelope, Model\n\n",
        f"CONTRACT = {_text(description.version)}\n",
        '"""The date of the last change of the contract that this was made from."""\n',
        f"PAGE_RECORDS_MAX = {description.limit_max}\n",
        f"KINDS = ({', '.join(map(_text, description.kinds))},)\n",
        '"""The kinds of records that have a snapshot and a feed of changes."""\n\n',
    ]
    lines += [f"{enum.name}: TypeAlias = Literal[{', '.join(map(_text, enum.values))}]\n" for enum in description.enums]
    lines.append("\n# msgspec takes no union of literals and str; type checkers do, and show the values.\n")
    lines.append("if TYPE_CHECKING:\n")
    lines += [f"    Open{name}: TypeAlias = {name} | str\n" for name in sorted(open_enums)]
    lines.append("else:\n    " + " = ".join(f"Open{name}" for name in sorted(open_enums)) + " = str\n")
    nested = {kind.model for model in description.models for kind in _kinds(model)}
    for model in description.models:
        if model.is_body:
            lines += _typed_dict(model) if model.name in nested else ()
        else:
            base = "Answer" if model.name in answers else "Envelope" if model.name in events else "Model"
            lines += _struct(model, base)
    lines += [
        '\n\nclass UnknownEvent(Envelope):\n    """An event whose key this version does not know."""\n\n',
        "    event_id: str\n    event: str\n    occurred_at: datetime.datetime\n    company_id: int\n",
        "    data: dict[str, Any]\n    change: dict[str, Any] | None\n\n\n",
        f"Event: TypeAlias = {' | '.join(event.model for event in description.events)} | UnknownEvent\n",
        "EVENTS: dict[str, type[Event]] = {",
        ", ".join(f"{_text(event.key)}: {event.model}" for event in description.events),
        "}\n",
    ]
    return "".join(lines)


def _kinds(model: Model) -> Iterator[Type]:
    for field in model.fields:
        yield field.type.item or field.type


def _struct(model: Model, base: str) -> Iterator[str]:
    renamed = {field.name: f"{field.name}_" for field in model.fields if keyword.iskeyword(field.name)}
    options = f", rename={ {new: old for old, new in renamed.items()} }" if renamed else ""
    yield f"\n\nclass {model.name}({base}, kw_only=True{options}):\n"
    yield f"{_doc(_flat(model.description) or 'What has changed.', 4)}\n"
    for field in model.fields:
        default = "" if field.is_required else " | None = None"
        yield f"    {renamed.get(field.name, field.name)}: {_annotation(field.type)}{default}\n"
        yield _doc(_flat(field.description), 4)


def _typed_dict(model: Model) -> Iterator[str]:
    """An object in a body; callers write it as a dict."""
    yield f"\n\nclass {model.name}(TypedDict, total=False):\n{_doc(_flat(model.description), 4)}\n"
    for field in model.fields:
        yield f"    {field.name}: {_annotation(field.type)}\n{_doc(_flat(field.description), 4)}"


def _annotation(kind: Type, prefix: str = "") -> str:
    if kind.item:
        annotation = f"list[{_annotation(kind.item, prefix)}]"
    elif kind.value:
        annotation = f"dict[str, {_annotation(kind.value, prefix)}]"
    elif kind.model:
        annotation = prefix + kind.model
    elif kind.enum:
        annotation = prefix + ("Open" if kind.is_open else "") + kind.enum
    elif isinstance(kind.const, bool):
        annotation = "bool"
    elif kind.const is not None:
        annotation = f"Literal[{_text(kind.const) if isinstance(kind.const, str) else kind.const}]"
    elif kind.basic:
        annotation = _BASIC[kind.basic]
    else:
        return "None"
    return f"{annotation} | None" if kind.nullable else annotation


def _resources(description: Description) -> str:
    """A class for each resource, as functions that wait and as coroutines, and the classes that hold all of them."""
    bodies = {model.name: model for model in description.models}
    lines = [
        HEAD.format("The operations of the API, by resource; each class twice, the second time with coroutines."),
        "from __future__ import annotations\n\nimport datetime\nfrom collections.abc import Sequence\n"
        "from typing import Any\n\n"
        "from makeready_client import models\n"
        "from makeready_client.core import AsyncCore, AsyncResource, Core, Resource\n"
        "from makeready_client.following import AsyncFollowing, Following\n"
        "from makeready_client.paging import AsyncEventFeed, AsyncFeed, AsyncPages, AsyncWalk, EventFeed, Feed, "
        "FeedPage, Page, Pages, Walk\n"
        "from makeready_client.requests import Request, path\n"
        "from makeready_client.snapshots import AsyncSnapshot, Snapshot\n",
    ]
    for is_async in (False, True):
        a = "Async" if is_async else ""
        calls: tuple[Call, ...] = ()
        for resource in description.resources:
            if resource.name:
                lines += _resource(resource, bodies, is_async=is_async)
            else:
                calls = resource.calls
        lines.append(f'\n\nclass {a}Api({a}Core):\n    """All operations of the API."""\n')
        for resource in description.resources:
            if resource.name:
                kind = a + resource.name.title()
                lines.append(
                    f"\n    @property\n    def {resource.name}(self) -> {kind}:\n        return {kind}(self)\n"
                )
        for call in calls:
            lines += _method(call, bodies, "self", is_async=is_async)
    return "".join(lines)


def _resource(resource: Resource, bodies: dict[str, Model], *, is_async: bool) -> Iterator[str]:
    a = "Async" if is_async else ""
    base = BASES[resource.name][is_async] if resource.name in BASES else f"{a}Resource"
    yield f"\n\nclass {a}{resource.name.title()}({base}):\n"
    yield f'    """{resource.calls[0].path.strip("/").partition("/")[0].title()}: `client.{resource.name}`."""\n'
    for call in resource.calls:
        yield from _method(call, bodies, "self.client", is_async=is_async)


def _method(call: Call, bodies: dict[str, Model], client: str, *, is_async: bool) -> Iterator[str]:
    a = "Async" if is_async else ""
    fields = bodies[call.body].fields if call.body else ()
    values = [
        *(field for field in fields if field.is_required),
        *(field for field in fields if not field.is_required),
        *call.query,
    ]
    keywords = [_parameter(value) for value in values]
    if call.kind in ("list", "feed"):
        keywords += ["limit: int | None = None", "cursor: str | None = None"]
    if call.kind == "feed":
        keywords.append("wait: int | None = None")
    if call.body:
        keywords.append("idempotency_key: str | None = None")
    parameters = ["self", *(_parameter(parameter) for parameter in call.ids), *(["*", *keywords] if keywords else [])]
    returned, expression = _made(call, a, client)
    does_wait = call.kind not in ("list", "feed", "snapshot")
    define = "async def" if is_async and does_wait else "def"
    yield f"\n    {define} {call.name}({', '.join(parameters)}) -> {returned}:\n"
    yield _doc("\n\n".join([f"{call.summary}.", _flat(call.description), *_notes(call, values)]), 8)
    yield f"        request = Request({', '.join(_request(call, fields, values))})\n"
    before = "" if call.kind == "delete" else "return "
    yield f"        {before}{'await ' if is_async and does_wait else ''}{expression}\n"


def _notes(call: Call, values: Sequence[Field]) -> list[str]:
    """What the parameters mean: a paragraph."""
    lines = [
        f"{parameter.name}: {_flat(parameter.description)}"
        for parameter in (*call.ids, *values)
        if parameter.description
    ]
    if call.kind in ("list", "feed"):
        lines.append("limit: How many records a page has; as many as the API allows if left out.")
    if call.body:
        lines.append("idempotency_key: Names this write; a new one if left out. All retries of the call have the same.")
    return ["\n".join(lines)] if lines else []


def _parameter(parameter: Field) -> str:
    kind = _annotation(parameter.type, "models.").replace("list[", "Sequence[")
    if parameter.is_required:
        return f"{parameter.name}: {kind}"
    return f"{parameter.name}: {kind.removesuffix(' | None')} | None = None"


def _made(call: Call, a: str, client: str) -> tuple[str, str]:
    """What the method returns, and the expression that makes it."""
    answer = f"models.{call.answer}" if call.answer else "dict[str, Any]"
    if call.answer == "Event" and call.page:
        return f"{a}EventFeed", f"{a}EventFeed({client}, request)"
    if call.answer == "Event":
        return answer, f"{client}.event(request)"
    return {
        "list": (f"{a}Pages[{answer}]", f"{a}Walk({client}, request, Page[{answer}])"),
        "feed": (f"{a}Feed[{answer}]", f"{a}Walk({client}, request, FeedPage[{answer}])"),
        "snapshot": (f"{a}Snapshot[{answer}]", f"{a}Snapshot({client}, request, {answer})"),
        "delete": ("None", f"{client}.respond(request)"),
    }.get(call.kind, (answer, f"{client}.call(request, {answer})"))


def _request(call: Call, fields: Sequence[Field], values: Sequence[Field]) -> Iterator[str]:
    place = _text(call.path)
    yield _text(call.method)
    yield f"path({place}, {', '.join(parameter.name for parameter in call.ids)})" if call.ids else place
    names = [field.name for field in values if field not in fields]
    if call.kind in ("list", "feed"):
        names += ["limit", "cursor"]
    if call.kind == "feed":
        names.append("wait")
    if names:
        yield f"query={{{', '.join(f'{_text(name)}: {name}' for name in names)}}}"
    if call.body:
        yield f"body={{{', '.join(f'{_text(field.name)}: {field.name}' for field in fields)}}}"
        yield "idempotency_key=idempotency_key"


def _errors(description: Description) -> str:
    """A class for each code."""
    client_names = ["ApiError", "ConnectionFailed", "MakereadyError", "SignatureInvalid"]
    names = ", ".join(
        map(_text, ["BY_CODE", *sorted([*client_names, *(failure.name for failure in description.failures)])])
    )
    lines = [
        HEAD.format("A class for each error code of the API, and the errors of this library."),
        f"from makeready_client.failures import {', '.join(client_names)}\n\n__all__ = [{names}]\n",
    ]
    for failure in description.failures:
        statuses = " or ".join(map(str, failure.statuses))
        described = _flat(f"{statuses} `{failure.code}`. {failure.meaning} {failure.remedy}")
        lines.append(f"\n\nclass {failure.name}(ApiError):\n{_doc(described, 4)}")
    classes = ", ".join(f"{_text(failure.code)}: {failure.name}" for failure in description.failures)
    lines.append(f"\n\nBY_CODE: dict[str, type[ApiError]] = {{{classes}}}\n")
    return "".join(lines)


def _doc(text: str, indent: int) -> str:
    """A docstring of paragraphs of lines, each filled; empty if there is no text."""
    if not text:
        return ""
    space = " " * indent
    width = WIDTH - indent - 6  # a single line has the quotes on both sides
    filled = "\n".join(textwrap.fill(line, width, break_on_hyphens=False) for line in text.strip().split("\n"))
    written = textwrap.indent(filled.replace("\\", "\\\\"), space).lstrip()
    end = f"\n{space}" if "\n" in written else ""
    return f'{space}"""{written}{end}"""\n'


def _flat(text: str) -> str:
    """A text of the document, without the line breaks of its source; a paragraph is a line."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _text(value: str | int) -> str:
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
