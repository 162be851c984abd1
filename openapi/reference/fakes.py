"""What the fakes of the API in the client libraries play: operations, checks of bodies, and the contract's examples.

`contract(document)` is made from the document, the route table and the Structs of bodies, so that a new operation or
field is played without a line by hand. What no Struct says, the rules between fields, stands in BETWEEN_FIELDS. Tests
send the same requests to the fakes and to a running system.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from chassis.auth.access import OPENED_BY
from chassis.records.bodies import Between, Id, Text
from gateway.http.answers.records import IDEMPOTENCY_KEY_CHARACTERS_MAX
from gateway.http.filters import LIMIT_DEFAULT, LIMIT_MAX, WAIT_SECONDS_MAX
from gateway.http.routes import OPERATIONS
from reference import clients, deliveries, records, typescript_client
from reference.errors import ERRORS
from reference.events import EVENTS, Schema
from reference.words import WRITES

# Fields that a body has only where another field has a value, in the order in which they are checked. words: with how
# many at least, where the field is required then. status: of the refusal where it is sent with another value.
BETWEEN_FIELDS: Schema = {
    "StatusChange": [
        {"field": "note", "with": "status", "value": "Completed", "words": 5, "status": 422},
        {"field": "cancellation_reason_code", "with": "status", "value": "Cancelled", "words": 1, "status": 422},
        {"field": "cancellation_notes", "with": "status", "value": "Cancelled", "words": 0, "status": 422},
        {
            "field": "cancellation_notes",
            "with": "cancellation_reason_code",
            "value": "see_notes",
            "words": 5,
            "status": 400,
        },
    ]
}
# Dates of a body of which the second is not before the first.
IN_ORDER: Schema = {"MoveInCreate": ["lease_start_date", "lease_end_date"]}
# Instants of a record that a field of the body sets or clears.
STAMPS: Schema = {"StatusChange": {"completed_at": "Completed", "cancelled_at": "Cancelled"}}
# The codes of fields that have their own, by what is wrong.
CODES: Schema = {
    "events": {"empty": "events_empty", "value": "events_unknown_key"},
    "destination_url": {"value": "invalid_destination_url"},
}
_PLAIN = {int: "integer", float: "number", bool: "boolean", str: "string"}


def contract(document: Schema) -> Schema:
    """The contract as the fakes read it."""
    described = clients.described(document)
    calls = {(call.method, call.path): call for resource in described.resources for call in resource.calls}
    return {
        "version": described.version,
        "scopes": {scope: sorted(keys) for scope, keys in OPENED_BY.items()},
        "codes": {code: {"statuses": list(error.statuses), "message": error.message} for code, error in ERRORS.items()},
        "limits": {
            "page": LIMIT_DEFAULT,
            "page_max": LIMIT_MAX,
            "wait": WAIT_SECONDS_MAX,
            "key": IDEMPOTENCY_KEY_CHARACTERS_MAX,
        },
        "operations": [
            _operation(operation, calls[operation.route.method, operation.route.path]) for operation in OPERATIONS
        ],
        "collections": _collections(document),
        "bodies": {
            name: _body(kind, document["components"]["schemas"][name])
            for name, kind in sorted(records.bodies().items())
        },
        "events": [deliveries.schema_name(event) for event in EVENTS],
        "examples": _examples(document, calls.values()),
    }


def _operation(operation: Any, call: clients.Call) -> Schema:
    route = operation.route
    write = WRITES.get(f"{route.method} {route.path}")
    played: Schema = {
        "method": route.method,
        "path": route.path,
        "kind": operation.kind,
        "scope": operation.scope,
        "answer": call.answer,
        "codes": list(call.errors),
        "query": list(operation.allowed_query),
        "required": [parameter.name for parameter in call.query if parameter.is_required],
        "filters": {
            query_filter.name: {"type": _type_of_filter(query_filter)}
            | ({"values": list(query_filter.labels)} if query_filter.labels else {})
            | ({"requires": query_filter.requires} if query_filter.requires else {})
            for query_filter in operation.filters
        },
    }
    if write:
        played |= {
            "key_sentence": route.key_sentence,
            "body": write.body,
            "status": write.status,
            "differing": write.differing,
        }
    return played


def _type_of_filter(query_filter: Any) -> str:
    if query_filter.labels:
        return "enum"
    if query_filter.is_instant:
        return "instant"
    if query_filter.is_boolean:
        return "boolean"
    return "string" if query_filter.is_text else "id"


def _collections(document: Schema) -> Schema:
    """The name of the model of each collection that can be listed, by the last segment of its path."""
    described = clients.described(document)
    return {
        call.path.rpartition("/")[2]: call.answer
        for resource in described.resources
        for call in resource.calls
        if call.kind == "list"
    }


def _examples(document: Schema, calls: Iterable[clients.Call]) -> Schema:
    """The example of each record and event, by the name of its model."""
    schemas = document["components"]["schemas"].items()
    examples = {name: schema["examples"][0] for name, schema in schemas if "examples" in schema}
    for event in EVENTS:
        examples[deliveries.schema_name(event)] = _value(document["webhooks"][event.key]["post"]["requestBody"])
    for call in calls:  # answers that are no records
        if call.answer and call.answer not in examples and call.kind in ("own", "report", "search", "write"):
            responses = document["paths"][call.path][call.method.lower()]["responses"]
            examples[call.answer] = _value(next(responses[status] for status in responses if status[0] == "2"))
    return examples


def _value(message: Schema) -> Any:
    """The only example of a body of JSON."""
    (example,) = message["content"]["application/json"]["examples"].values()
    return example["value"]


def _body(kind: type[msgspec.Struct], schema: Schema) -> Schema:
    """The checks of a body, as `chassis.records.bodies` makes them. schema: the document's, which has some bounds that
    the service checks elsewhere."""
    hints = typing.get_type_hints(kind, include_extras=True)
    name = kind.__name__
    played: Schema = {
        "fields": {
            field.encode_name: {"required": field.required}
            | _field(field.encode_name, hints[field.name])
            | _bounds(schema["properties"].get(field.encode_name, {}))
            for field in msgspec.structs.fields(kind)
        },
        "unknown": getattr(kind, "unknown_keys_status", 400),
    }
    if refused := getattr(kind, "refused_keys", None):
        played["refused"] = refused
    if name in BETWEEN_FIELDS:
        played["between"] = BETWEEN_FIELDS[name]
    if name in IN_ORDER:
        played["in_order"] = IN_ORDER[name]
    if name in STAMPS:
        played["stamps"] = STAMPS[name]
    return played


def _field(name: str, hint: Any) -> Schema:
    """The check of one value."""
    arms = [arm for arm in typing.get_args(hint) if arm is not type(None)]
    if type(None) in typing.get_args(hint):
        return _field(name, arms[0])
    codes = {"codes": CODES[name]} if name in CODES else {}
    if typing.get_origin(hint) is Annotated:
        return _field(name, arms[0]) | codes | _marked(arms[1])
    if typing.get_origin(hint) is Literal:
        return {"type": "enum", "values": list(arms)}
    if typing.get_origin(hint) is list:
        items = {"type": "enum", "values": [event.key for event in EVENTS]} if name == "events" else _field("", arms[0])
        return {"type": "array", "items": items} | codes
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return {"type": "object", "object": _body(hint, {"properties": {}})}
    return {"type": _PLAIN.get(hint) or {"date": "date", "datetime": "instant"}[hint.__name__]}


def _bounds(schema: Schema) -> Schema:
    bounds = {"longest": schema["maxLength"]} if "maxLength" in schema else {}
    if "null" in schema.get("type", ()):
        bounds["optional"] = True
    if schema.get("minItems"):
        bounds["lowest"] = schema["minItems"]
    if "maxItems" in schema:
        bounds["highest"] = schema["maxItems"]
    if contained := schema.get("contains"):
        properties = contained["properties"]
        bounds["contains"] = {
            "equal": {name: about["const"] for name, about in properties.items() if "const" in about},
            "filled": [name for name, about in properties.items() if "const" not in about],
        }
    return bounds


def _marked(marker: object) -> Schema:
    if isinstance(marker, Id):
        return {"type": "id"}
    if isinstance(marker, Text):
        if marker.has_own_rule:
            return {"type": "destination", "longest": marker.longest}
        over = {"over": marker.over} if marker.over != 400 else {}
        return {"longest": marker.longest, **over} | ({} if marker.blank else {"blank": False})
    if isinstance(marker, Between):
        return {"lowest": marker.lowest, "highest": marker.highest}
    return {}


def text(played: Schema) -> str:
    """The contract as JSON."""
    return msgspec.json.encode(played).decode() + "\n"


def module(played: Schema) -> str:
    """The contract as a module of TypeScript, which holds its examples to the types of their models."""
    types = "".join(f"  {name}: models.{name};\n" for name in played["examples"])
    return (
        typescript_client.HEAD.format("The contract as the fake for tests reads it.")
        + 'import type { Contract } from "./fake.ts";\nimport type * as models from "./models.ts";\n\n'
        + f"/** The models that have an example, by name. */\nexport interface Examples {{\n{types}}}\n\n"
        + f"export const contract: Contract = {text(played).rstrip()};\n"
    )
