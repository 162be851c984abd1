"""One operation of the document: parameters, body, every response with its headers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from gateway.edge import IDEMPOTENCY_KEY_CHARACTERS_MAX
from gateway.filters import LIMIT_DEFAULT, LIMIT_MAX, Filter
from gateway.limits import REQUESTS_A_MINUTE
from gateway.routes import OPERATIONS, Operation
from reference.errors import ERRORS, codes
from reference.events import REF
from reference.words import FILTER_EXAMPLES, FILTERS, IDS, LISTS_AND_FETCHES, OTHERS, WRITES

Schema = dict[str, Any]
Example = Callable[[str], Any]

HEADERS: Schema = {
    "X-Request-Id": {
        "description": "Names the request in our logs; quote it when you ask for help.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Cache-Control": {
        "description": "Nothing here may be kept by caches.",
        "required": True,
        "schema": {"type": "string", "const": "no-store"},
    },
    "RateLimit": {
        "required": True,
        "description": 'What is left of the key\'s requests: `"key";r=119;t=60`, the remaining ones and the seconds '
        "after which more may be sent.",
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "required": True,
        "description": f'The limit itself: `"key";q={REQUESTS_A_MINUTE};w=60`, requests and seconds.',
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds to wait before the next request.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
    "WWW-Authenticate": {
        "description": "Where a key goes.",
        "required": True,
        "schema": {"type": "string", "const": "Bearer"},
    },
    "Allow": {
        "description": "The verbs that the path supports.",
        "required": True,
        "schema": {"type": "string"},
    },
    "X-Idempotent-Replay": {
        "description": "Present where an earlier request with the same `Idempotency-Key` had the effect, and this is "
        "its answer again.",
        "schema": {"type": "string", "const": "1"},
    },
}
# A request that is refused before its key was counted bears no limits.
HEADERS |= {
    f"{name}-if-counted": {"description": HEADERS[name]["description"], "schema": HEADERS[name]["schema"]}
    for name in ("RateLimit", "RateLimit-Policy")
}
# What a 4xx says in words; a write may say more.
_WORDS = {
    "list 400": "A query key that the list does not take, a repeated or empty one, a value that the parameter cannot "
    "have; a bad `limit` or `cursor`.",
    "400": "An unknown query key.",
    "write 400": "The header `Idempotency-Key` is missing or too long, or the body is not what the operation takes: "
    "not one JSON object, an unknown key, a missing or over-long value, one of a wrong type.",
    "401": "No key, or one that is unknown or revoked.",
    "403": "The key's scope does not cover the operation, or the company is inactive.",
    "any 403": "The company is inactive.",
    "404": "Not visible to the key.",
    "405": "The path does not support the verb.",
    "409": "Another request had the same `Idempotency-Key`.",
    "list 422": "A status outside its enum.",
    "503": "",
    "422": "",
    "429": "Too many requests.",
    "500": "A fault on our side.",
}


# Names of the failures that say the same wherever they come.
_SHARED = {
    "401": "Unauthorized",
    "403": "Forbidden",
    "any 403": "CompanyInactive",
    "404": "NotFound",
    "405": "MethodNotAllowed",
    "429": "RateLimited",
    "500": "InternalError",
}


def path_item(operation: Operation, record_of: Mapping[str, str], example: Example, shared: Schema) -> Schema:
    """The document's operation. Adds to `shared` the responses that others have too.

    Raises ValueError with what nobody described.
    """
    route = operation.route
    summary, description = _told(operation)
    found: Schema = {
        "operationId": _operation_id(operation),
        "summary": summary,
        "description": description,
        "tags": ["Meta" if operation.kind == "own" else route.path.split("/")[1].title()],
    }
    if route.scope == "public":
        found["security"] = []
    elif route.scope != "any":
        found["security"] = [{"bearer": [route.scope]}]
    record = record_of.get(route.path.split("/")[1])
    if parameters := _parameters(operation, example(record)["entity_id"] if record else 0):
        found["parameters"] = parameters
    if operation.kind == "write":
        body = WRITES[f"{route.method} {route.path}"].body
        found["requestBody"] = {"required": True, "content": _json({"$ref": REF + body}, {"body": example(body)})}
    found["responses"] = {
        **_success(operation, record_of, example),
        **{str(status): _failure(operation, status, names, shared) for status, names in codes(operation).items()},
    }
    return found


def _operation_id(operation: Operation) -> str:
    if operation.kind == "own":
        return {"/whoami": "getWhoami", "/openapi.json": "getOpenapiDocument"}[operation.route.path]
    method = operation.rpc_path.rpartition("/")[2]
    return method[0].lower() + method[1:]


def _told(operation: Operation) -> tuple[str, str]:
    """Summary and description."""
    route = operation.route
    name = f"{route.method} {route.path}"
    if operation.kind == "write":
        return WRITES[name].summary, WRITES[name].description
    if name in OTHERS:
        return OTHERS[name]
    collection = route.path if operation.kind == "list" else route.path.rpartition("/")[0]
    if collection not in LISTS_AND_FETCHES:
        raise ValueError(f"{name} has no words: write them in openapi/reference/words.py")
    noun, note = LISTS_AND_FETCHES[collection]
    if operation.kind == "list":
        return f"List {noun}", " ".join(filter(None, (f"A page of {noun}, ascending by id.", note)))
    one = {"properties": "property", "utility meters": "utility meter"}.get(noun, noun[:-1])
    article = "an" if one[0] in "aei" else "a"
    return f"Fetch {article} {one}", " ".join(filter(None, (f"One {one} by its id.", note)))


def _parameters(operation: Operation, example_id: int) -> list[Schema]:
    found: list[Schema] = []
    if name := operation.id_field:
        schema = {"type": "integer", "format": "int64", "minimum": 1}
        found.append(
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": IDS[name],
                "schema": schema,
                "example": example_id,
            }
        )
    found += [_filter(one) for one in operation.filters]
    if operation.kind == "list":
        found.append(
            {
                "name": "limit",
                "in": "query",
                "description": f"How many records a page may hold: {LIMIT_DEFAULT} if left out; above {LIMIT_MAX} it "
                f"counts as {LIMIT_MAX}.",
                "schema": {"type": "integer", "minimum": 1, "default": LIMIT_DEFAULT},
                "example": LIMIT_DEFAULT,
            }
        )
        found.append(
            {
                "name": "cursor",
                "in": "query",
                "description": "The `next_cursor` of the page before, with the same filters. Left out: the first page.",
                "schema": {"type": "string"},
            }
        )
    if operation.kind == "write":
        found.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": True,
                "description": f"Names this write: 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} printable ASCII characters, "
                "new with each new write, the same when you retry.",
                "schema": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": IDEMPOTENCY_KEY_CHARACTERS_MAX,
                    # Blanks at the ends are no part of a header's value.
                    "pattern": "^[!-~]([ -~]*[!-~])?$",
                },
                "example": "7f2c1f0e-6a55-4b0c-9d0a-0f6f3c1f8f11",
            }
        )
    return found


def _filter(one: Filter) -> Schema:
    if one.name not in FILTERS:
        raise ValueError(f"the filter {one.name} has no words: write them in openapi/reference/words.py")
    description = FILTERS[one.name]
    if one.requires:
        description += f" Needs `{one.requires}` beside it; alone it is refused with 400."
    schema: Schema = {"type": "integer"}
    if one.labels:
        schema = {"type": "string", "enum": list(one.labels)}
    elif one.is_instant:
        schema = {"type": "string", "format": "date-time"}
    example = one.labels[0] if one.labels else FILTER_EXAMPLES[one.name]
    return {"name": one.name, "in": "query", "description": description, "schema": schema, "example": example}


def _success(operation: Operation, record_of: Mapping[str, str], example: Example) -> Schema:
    """Status and response of what went well."""
    route = operation.route
    headers = _headers("X-Request-Id", "Cache-Control")
    if route.scope == "public":
        schema = {"type": "object", "description": "An OpenAPI 3.1 document."}
        return {"200": {"description": "The document.", "headers": headers, "content": _json(schema, {})}}
    headers |= _limits(required=True)
    if operation.kind == "delete":
        return {"204": {"description": "Deleted. The body is empty.", "headers": headers}}
    if operation.kind == "write":
        write = WRITES[f"{route.method} {route.path}"]
        headers |= _headers("X-Idempotent-Replay")
        content = _json({"$ref": REF + write.answer}, {"answer": example(write.answer)})
        links = _links(operation, "$response.body#/entity_id")
        return {str(write.status): {"description": "Done.", "headers": headers, "content": content} | links}
    if operation.kind == "list":
        record = record_of[route.path.rpartition("/")[2]]
        page = {"data": [example(record)], "next_cursor": None, "limit": LIMIT_DEFAULT}
        content = _json({"$ref": f"{REF}{record}Page"}, {"last page": page})
        links = _links(operation, "$response.body#/data/0/entity_id")
        return {"200": {"description": "A page.", "headers": headers, "content": content} | links}
    record = "Whoami" if operation.kind == "own" else record_of[route.path.split("/")[1]]
    content = _json({"$ref": REF + record}, {"record": example(record)})
    return {"200": {"description": "The record.", "headers": headers, "content": content}}


def _links(operation: Operation, entity_id: str) -> Schema:
    """Where the id of a record leads: to every operation below the collection's path."""
    found = {
        _operation_id(other): {"operationId": _operation_id(other), "parameters": {other.id_field: entity_id}}
        for other in OPERATIONS
        if other.route.path.startswith(f"{operation.route.path}/{{")
    }
    return {"links": found} if found else {}


def _failure(operation: Operation, status: int, names: tuple[str, ...], shared: Schema) -> Schema:
    route = operation.route
    own = WRITES[f"{route.method} {route.path}"].refusals if operation.kind == "write" else {}
    key = next(key for key in (f"{operation.kind} {status}", f"{route.scope} {status}", str(status)) if key in _WORDS)
    headers = _headers("X-Request-Id", "Cache-Control")
    if status in (401, 405):
        headers |= _headers("WWW-Authenticate" if status == 401 else "Allow")
    elif route.scope != "public":
        headers |= _limits(required=status in (404, 409, 422, 429, 503))
    if status == 429:
        headers |= _headers("Retry-After")
    schema = {"$ref": REF + "Error", "properties": {"error": {"properties": {"code": {"enum": list(names)}}}}}
    examples = {name: {"error": {"code": name, "message": _sentence(operation, status, name)}} for name in names}
    listed = ", ".join(f"`{name}`" for name in names)
    response = {
        "description": f"{HTTPStatus(status).phrase}: {listed}. {own.get(status) or _WORDS[key]}",
        "headers": headers,
        "content": _json(schema, examples),
    }
    if status in own or key not in _SHARED:
        return response
    assert shared.setdefault(_SHARED[key], response) == response, f"{_SHARED[key]} differs from operation to operation"
    return {"$ref": f"#/components/responses/{_SHARED[key]}"}


def _sentence(operation: Operation, status: int, code: str) -> str:
    """A message as the operation sends it."""
    if code == "idempotency_key_required":
        return operation.route.key_sentence
    if code == "invalid_request" and operation.kind == "write":
        return WRITES[f"{operation.route.method} {operation.route.path}"].messages[status]
    if code == "invalid_request" and not operation.allowed_query:
        return "This operation takes no query parameters; leave them out."
    closed = [one for one in operation.filters if one.labels]
    if status == 422 and closed:
        return f"{closed[0].name} must be one of: {', '.join(closed[0].labels)}."
    if code == "invalid_request":
        return f"The query may hold these keys only: {', '.join(operation.allowed_query)}."
    return ERRORS[code].message


def _headers(*names: str) -> Schema:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _limits(*, required: bool) -> Schema:
    suffix = "" if required else "-if-counted"
    return {name: {"$ref": f"#/components/headers/{name}{suffix}"} for name in ("RateLimit", "RateLimit-Policy")}


def _json(schema: Schema, examples: Mapping[str, Any]) -> Schema:
    content = {"schema": schema}
    if examples:
        content["examples"] = {name: {"value": value} for name, value in examples.items()}
    return {"application/json": content}
