"""What a client library needs to know of the contract, in no language: each language's printer writes code from it.

`described(made())` walks the finished document and the route table once. The printers (`python_client.py`, …) decide
nothing about the contract: names, order, types and texts are settled here, so that all languages have the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gateway.http.filters import LIMIT_MAX
from gateway.http.routes import OPERATIONS, Operation
from reference import deliveries
from reference.errors import ERRORS
from reference.events import EVENTS, REF
from reference.responses import operation_id

Schema = Mapping[str, Any]
Basic = Literal["string", "integer", "number", "boolean", "instant", "date"]


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a value: one of `basic`, `const`, `enum`, `model`, `item` and `value` is set; none where it is always
    null."""

    basic: Basic | None = None
    const: str | int | bool | None = None
    """A literal; the value is always this one."""
    enum: str = ""
    """The name of an enum."""
    is_open: bool = False
    """Whether values that `enum` does not have may come."""
    model: str = ""
    """The name of a model."""
    item: Type | None = None
    """A list of these."""
    value: Type | None = None
    """An object with any keys, whose values are these."""
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a model, or a parameter of an operation."""

    name: str
    type: Type
    is_required: bool
    """False: it may be absent."""
    description: str


@dataclass(frozen=True, slots=True)
class Model:
    """An object. Bodies of requests are strict; objects of responses may have more fields than these."""

    name: str
    description: str
    fields: tuple[Field, ...]
    is_body: bool


@dataclass(frozen=True, slots=True)
class Enum:
    """The values of a text. Only requests are held to them."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """An operation as a method of its resource.

    resource and name are snake_case, for example `tickets` and `change_status`; the operations without a resource have
    an empty one. kind is the route's: list, feed, snapshot, search, report, fetch, write,
    delete, own.
    """

    resource: str
    name: str
    id: str
    """The `operationId` of the document."""
    method: str
    path: str
    kind: str
    ids: tuple[Field, ...]
    """The ids in the path, in its order."""
    query: tuple[Field, ...]
    """Without `limit`, `cursor` and `wait`: see `kind`."""
    body: str
    """The model of the body; empty if it has none. A body has an `Idempotency-Key` beside it."""
    answer: str
    """The model of the answer, of an item of a page, or of a line of a snapshot; "Event" for any of `events`. Empty: no
    content (a delete), or any object (the document)."""
    page: str
    """The name of the page in the document; empty if the answer is no page."""
    scope: str
    """What it asks of a key: read, write, webhook_only, any, or public (no key)."""
    errors: tuple[str, ...]
    """The codes that it may answer."""
    summary: str
    description: str


@dataclass(frozen=True, slots=True)
class Resource:
    """Calls that begin with the same segment of the path. The name is that segment."""

    name: str
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """An error code. name: that of its class, for example NotFound."""

    code: str
    name: str
    statuses: tuple[int, ...]
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Announced:
    """An event's key and the model of its envelope."""

    key: str
    model: str


@dataclass(frozen=True, slots=True)
class Description:
    """All that a client library is made from."""

    version: str
    """The date of the contract's last change."""
    enums: tuple[Enum, ...]
    models: tuple[Model, ...]
    """Each after those that it has fields of. Pages and the error's envelope are not among them: every page has `data`,
    `next_cursor` and `limit`; that of a feed `resume_cursor`, too, and that of events `positions`."""
    resources: tuple[Resource, ...]
    failures: tuple[Failure, ...]
    events: tuple[Announced, ...]
    kinds: tuple[str, ...]
    """The kinds of records that have a snapshot and a feed of changes."""
    limit_max: int
    """The largest page."""


# The parameters of pages; a printer knows them from the call's kind.
PAGING = frozenset({"limit", "cursor", "wait"})
# Methods with a verb of their own.
VERBS = {"setTicketAssignment": "assign", "createTicketComment": "comment"}


def described(document: Schema) -> Description:
    """The description of the finished document."""
    return _Walk(document).description()


@dataclass(slots=True)
class _Walk:
    document: Schema
    enums: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def description(self) -> Description:
        schemas = self.schemas
        self.enums |= {name: tuple(schema["enum"]) for name, schema in schemas.items() if "enum" in schema}
        calls = [self._call(operation) for operation in OPERATIONS]
        left_out = {call.page for call in calls if call.page} | {"Error"}
        models = {
            model.name: model
            for name, schema in schemas.items()
            if name not in self.enums and name not in left_out
            for model in self._models(name, schema)
        }
        return Description(
            self.document["info"]["version"],
            tuple(Enum(name, values) for name, values in sorted(self.enums.items())),
            tuple(_ordered(models)),
            tuple(
                Resource(name, tuple(call for call in calls if call.resource == name))
                for name in dict.fromkeys(call.resource for call in calls)
            ),
            tuple(
                Failure(code, _pascal(code), error.statuses, error.meaning, error.remedy)
                for code, error in ERRORS.items()
            ),
            tuple(Announced(event.key, deliveries.schema_name(event)) for event in EVENTS),
            tuple(call.name for call in calls if call.kind == "snapshot"),
            LIMIT_MAX,
        )

    @property
    def schemas(self) -> Schema:
        schemas: Schema = self.document["components"]["schemas"]
        return schemas

    def _call(self, operation: Operation) -> Call:
        route = operation.route
        described = self.document["paths"][route.path][route.method.lower()]
        parameters = [parameter for parameter in described.get("parameters", ()) if parameter["in"] != "header"]
        resource, name = _names(operation)
        noun = name.removesuffix("s") + "_report" if operation.kind == "report" else resource
        answer, page = self._answer(operation, described)
        codes = (code for response in described["responses"].values() for code in self._codes(response))
        return Call(
            resource,
            name,
            operation_id(operation),
            route.method,
            route.path,
            operation.kind,
            tuple(self._parameter(parameter, noun) for parameter in parameters if parameter["in"] == "path"),
            tuple(
                self._parameter(parameter, noun)
                for parameter in parameters
                if parameter["in"] == "query" and parameter["name"] not in PAGING
            ),
            _named(_json(described.get("requestBody", {}))),
            answer,
            page,
            operation.scope,
            tuple(dict.fromkeys(codes)),
            described["summary"],
            described["description"],
        )

    def _answer(self, operation: Operation, described: Schema) -> tuple[str, str]:
        """The model of the answer or item, and that of the page."""
        success = next(response for status, response in described["responses"].items() if status.startswith("2"))
        if operation.kind == "snapshot":
            return _named(success["content"]["application/x-ndjson"]["schema"]["contentSchema"]["items"]), ""
        schema = _json(success)
        if operation.kind not in ("list", "feed"):
            return _model(schema), ""
        name = _named(schema)
        return _model(self.schemas[name]["properties"]["data"]["items"]), name

    def _codes(self, response: Schema) -> Iterator[str]:
        if "$ref" in response:
            response = self.document["components"]["responses"][response["$ref"].rpartition("/")[2]]
        error = _json(response).get("properties", {}).get("error", {})
        yield from error.get("properties", {}).get("code", {}).get("enum", ())

    def _parameter(self, parameter: Schema, resource: str) -> Field:
        schema = parameter["schema"]
        kind = self._type(schema, is_body=True) if "enum" not in schema else Type(enum=self._enum(parameter, resource))
        return Field(parameter["name"], kind, parameter.get("required", False), parameter["description"])

    def _enum(self, parameter: Schema, resource: str) -> str:
        """The enum that has the values of a filter; a new one where none has."""
        values = tuple(parameter["schema"]["enum"])
        same = (name for name, others in self.enums.items() if set(others) == set(values))
        name = next(same, "") or _pascal(resource.removesuffix("s")) + _pascal(parameter["name"])
        assert set(self.enums.setdefault(name, values)) == set(values), f"{name} has two sets of values"
        return name

    def _models(self, name: str, schema: Schema) -> Iterator[Model]:
        """The model of a schema, after those of the objects in it that have no name of their own."""
        is_body = schema.get("additionalProperties") is False
        fields = []
        for key, about in schema["properties"].items():
            if "properties" in about:
                kind = Type(model=name + _pascal(key))
                yield from self._models(kind.model, about)
            else:
                kind = self._type(about, is_body=is_body)
            fields.append(Field(key, kind, key in schema["required"], about.get("description", "")))
        yield Model(name, schema.get("description", ""), tuple(fields), is_body)

    def _type(self, schema: Schema, *, is_body: bool) -> Type:
        """The type of a field. Each enum in a response is open, for a later version may add to it."""
        if "anyOf" in schema:
            options = [option for option in schema["anyOf"] if option != {"type": "null"}]
            return replace(self._type(options[0], is_body=is_body), nullable=len(options) < len(schema["anyOf"]))
        if "$ref" in schema:
            name = _named(schema)
            return Type(enum=name, is_open=not is_body) if name in self.enums else Type(model=name)
        if "const" in schema:
            return Type(const=schema["const"])
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        nullable = "null" in kinds
        basic = next((kind for kind in kinds if kind != "null"), None)
        if basic == "array":
            return Type(item=self._type(schema["items"], is_body=is_body), nullable=nullable)
        if basic == "object":
            return Type(value=self._type(schema["additionalProperties"], is_body=is_body), nullable=nullable)
        if basic == "string":
            basic = {"date-time": "instant", "date": "date"}.get(schema.get("format", ""), basic)
        return Type(basic=basic, nullable=nullable)


def _names(operation: Operation) -> tuple[str, str]:
    """The resource and the name of the method.

    The name is that of the RPC without the noun that the resource says already: ChangeTicketStatus of tickets is
    `change_status`, ListReadings of meters `list_readings`. Changes, reports and snapshots are named for what they
    hold.
    """
    segments = operation.route.path.strip("/").split("/")
    if operation_id(operation) in VERBS:
        return segments[0], VERBS[operation_id(operation)]
    if operation.kind in ("own", "search"):
        return "", segments[0].removesuffix(".json")
    if segments[0] in ("changes", "reports", "snapshots"):
        return segments[0], segments[1]
    plural = {"webhooks": "subscriptions", "staff": "members"}.get(segments[0], segments[0])
    nouns = (plural, {"properties": "property"}.get(plural, plural[:-1]))
    words = re.findall("[A-Z][a-z]*", operation.rpc_path.rpartition("/")[2])
    return segments[0], "_".join(word.lower() for word in words if word.lower() not in nouns)


def _ordered(models: Mapping[str, Model]) -> Iterator[Model]:
    """The models, each after those that it has fields of."""
    done: set[str] = set()

    def after(model: Model) -> Iterator[Model]:
        if model.name not in done:
            done.add(model.name)
            for field in model.fields:
                used = (field.type.item or field.type).model
                if used:
                    yield from after(models[used])
            yield model

    for name in sorted(models):
        yield from after(models[name])


def _json(message: Schema) -> Schema:
    """The schema of a body of JSON; empty if there is none."""
    schema: Schema = message.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def _model(schema: Schema) -> str:
    """The model of an answer or item: see `Call.answer`."""
    return "Event" if "anyOf" in schema else _named(schema)


def _named(schema: Schema) -> str:
    return str(schema.get("$ref", "")).removeprefix(REF)


def _pascal(text: str) -> str:
    return "".join(word.title() for word in re.split("[_.]", text))
