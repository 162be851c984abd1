"""Every response of an operation: the success with its links, and each failure with its possible codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from gateway.http.filters import LIMIT_DEFAULT, WAIT_SECONDS_MAX
from gateway.http.limits import REQUESTS_A_MINUTE
from gateway.http.routes import OPERATIONS, SANDBOX, SNAPSHOTS, Operation
from gateway.http.waiting import WAITS_MAX
from reference import feeds
from reference.errors import ERRORS, codes
from reference.events import REF, Schema
from reference.words import ENTITY_TYPES, FETCHED, NO_SANDBOX, WRITES

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
    "Service-Resume-Cursor": {
        "description": "The `cursor` with which the changes since the snapshot's beginning begin. Absent where "
        "`after_id` was given: the cursor of the first answer stays good.",
        "schema": {"type": "string"},
    },
    "Service-Wait": {
        "description": f"Present where the page came before its `wait` was over, as {WAITS_MAX} newer requests of the "
        "key wait here. Pause before you ask again.",
        "schema": {"type": "string", "const": "superseded"},
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
    "Link": {
        "description": 'The page about the error\'s code, with `rel="help"`.',
        "required": True,
        "schema": {"type": "string"},
    },
    "Service-Error-Param": {
        "description": "What is at fault, a field, header or query key, as in `parties[0].email`, where one is.",
        "schema": {"type": "string"},
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
# A request that is refused before its key was counted has no limit headers.
HEADERS |= {
    f"{name}-if-counted": {"description": HEADERS[name]["description"], "schema": HEADERS[name]["schema"]}
    for name in ("RateLimit", "RateLimit-Policy")
}
# The description of each failure; a write may add to it.
_WORDS = {
    "list 400": "A query key that the list does not take, a repeated or empty one, a value that the parameter cannot "
    "have; a bad `limit` or `cursor`.",
    "feed 400": "A query key that the feed does not take, a repeated or empty one; a bad `limit` or `cursor`.",
    "feed 422": f"`wait` is not a whole number of seconds from 0 to {WAIT_SECONDS_MAX}.",
    "snapshot 400": "A query key that the snapshot does not take, a repeated or empty one; no id as `after_id`.",
    "snapshot 429": "Too many requests, or a snapshot of these records is under way for the company.",
    "400": "An unknown query key.",
    "write 400": "The header `Idempotency-Key` is missing or too long, or the body is not valid: "
    "not one JSON object, an unknown key, a missing or over-long value, one of a wrong type.",
    "401": "No key, or one that is unknown or revoked.",
    "403": "The key's scope does not cover the operation, or the company is inactive.",
    "any 403": "The company is inactive.",
    "404": "Not visible to the key.",
    "405": "The path does not support the verb.",
    "409": "Another request had the same `Idempotency-Key`.",
    "/sandbox/clock 404": "The key's company is live.",
    "410": "The cursor is from before a restore of the service's records.",
    "/events 410": "The cursor is older than the events that are kept, or from before a restore.",
    "/requests 422": "`status` is neither an HTTP status nor a class such as `4xx`, or `wait` is not a whole number of "
    f"seconds from 0 to {WAIT_SECONDS_MAX}.",
    "/events 422": "`event` or `entity_type` is outside its enum, or `wait` is not a whole number of seconds from 0 "
    f"to {WAIT_SECONDS_MAX}.",
    "list 422": "A value outside its enum.",
    "search 400": "`external_id` is missing, empty or too long; an unknown or repeated query key.",
    "search 422": "`kind` is outside its enum.",
    "report 400": "No month as `from_month` or `to_month`, an unknown or repeated query key.",
    "report 404": "No property with that id is visible to the key.",
    "report 422": "`bucket` or `group_by` is outside its enum, or the period is longer than a report covers.",
    "503": "",
    "422": "",
    "429": "Too many requests.",
    "500": "A fault on our side.",
}

# The collection of an answer's entity_id, if it differs from the collection that was written to.
_COLLECTIONS = {"OccupancyRecord": "/turns"}
# Names of the failures whose description is the same for every operation.
_SHARED = {
    "401": "Unauthorized",
    "403": "Forbidden",
    "any 403": "CompanyInactive",
    "404": "NotFound",
    "405": "MethodNotAllowed",
    "429": "RateLimited",
    "500": "InternalError",
}


def responses(operation: Operation, record_of: Mapping[str, str], example: Example, shared: Schema) -> Schema:
    """All responses by status. Adds those that several operations have to `shared`."""
    return {
        **_success(operation, record_of, example),
        **{str(status): _failure(operation, status, names, shared) for status, names in codes(operation).items()},
    }


def _success(operation: Operation, record_of: Mapping[str, str], example: Example) -> Schema:
    """Status and response of a success."""
    route = operation.route
    headers = _headers("X-Request-Id", "Cache-Control")
    if operation.scope == "public":
        document = {"type": "object", "description": "An OpenAPI 3.1 document."}
        return {"200": {"description": "The document.", "headers": headers, "content": json_content(document, {})}}
    headers |= _limits(required=True)
    if operation.kind == "delete":
        return {"204": {"description": "Deleted. The body is empty.", "headers": headers}}
    if operation.kind == "write":
        write = WRITES[f"{route.method} {route.path}"]
        headers |= _headers("X-Idempotent-Replay")
        is_event = write.answer == "Event"
        schema = feeds.any_event() if is_event else {"$ref": REF + write.answer}
        answer = feeds.event_example(example) if is_event else example(write.answer) | write.differing
        content = json_content(schema, {"answer": answer})
        links = {} if is_event else _links(_COLLECTIONS.get(write.answer, route.path), "$response.body#/entity_id")
        return {str(write.status): {"description": "Done.", "headers": headers, "content": content} | links}
    if operation.kind == "list":
        record = record_of[route.path.rpartition("/")[2]]
        page = {"data": [example(record)], "next_cursor": None, "limit": LIMIT_DEFAULT}
        content = json_content({"$ref": f"{REF}{record}Page"}, {"last page": page})
        links = _links(route.path, "$response.body#/data/0/entity_id")
        return {"200": {"description": "A page.", "headers": headers, "content": content} | links}
    if operation.kind in ("feed", "snapshot"):
        return _copied(operation, record_of, example, headers)
    record = FETCHED.get(route.path) or ("Whoami" if operation.kind == "own" else record_of[route.path.split("/")[1]])
    content = json_content({"$ref": REF + record}, {"record": example(record)})
    return {"200": {"description": "The record.", "headers": headers, "content": content}}


def _copied(operation: Operation, record_of: Mapping[str, str], example: Example, headers: Schema) -> Schema:
    """The success of a feed or of a snapshot."""
    noun = operation.route.path.rpartition("/")[2]
    if operation.kind == "feed":
        headers |= _headers("Service-Wait")
    if operation.route.path == feeds.EVENTS:
        content: Schema = json_content({"$ref": REF + "EventPage"}, {"last page": feeds.event_page_example(example)})
        return {"200": {"description": "A page.", "headers": headers, "content": content}}
    if operation.route.path == feeds.REQUESTS:
        page = feeds.page_example(example("LoggedRequest"))
        content = json_content({"$ref": REF + "LoggedRequestPage"}, {"last page": page})
        return {"200": {"description": "A page.", "headers": headers, "content": content}}
    record = record_of[noun]
    if operation.kind == "snapshot":
        headers |= _headers("Service-Resume-Cursor")
        content = {"application/x-ndjson": _lines(record, example)}
        return {"200": {"description": "The records, one on each line.", "headers": headers, "content": content}}
    page = feeds.page_example(feeds.change_example(record, ENTITY_TYPES[noun], example))
    content = json_content({"$ref": f"{REF}{record}ChangePage"}, {"last page": page})
    return {"200": {"description": "A page.", "headers": headers, "content": content}}


def _lines(record: str, example: Example) -> Schema:
    """A body of lines. OpenAPI 3.1 has no schema of a sequence, and a $ref to the record would say that the whole body
    is one JSON object: generated clients would read it as that."""
    schema = {
        "description": "One JSON object on each line; each line ends with a newline.",
        "type": "string",
        "contentMediaType": "application/x-ndjson",
        "contentSchema": {"type": "array", "items": {"$ref": REF + record}},
    }
    line = json.dumps(example(record), ensure_ascii=False, separators=(",", ":"))
    return {"schema": schema, "examples": {"one line": {"value": f"{line}\n"}}}


def _links(collection: str, entity_id: str) -> Schema:
    """Links from a record's id to every operation below the path of its collection."""
    links = {
        operation_id(other): {"operationId": operation_id(other), "parameters": {other.id_field: entity_id}}
        for other in OPERATIONS
        if other.route.path.startswith(f"{collection}/{{") and len(other.ids) == 1
    }
    return {"links": links} if links else {}


def _failure(operation: Operation, status: int, names: tuple[str, ...], shared: Schema) -> Schema:
    route = operation.route
    refusals = WRITES[f"{route.method} {route.path}"].refusals if operation.kind == "write" else {}
    key = next(
        key
        for key in (f"{route.path} {status}", f"{operation.kind} {status}", f"{operation.scope} {status}", str(status))
        if key in _WORDS
    )
    headers = _headers("X-Request-Id", "Cache-Control", "Link")
    if status in (400, 404, 410, 422):
        headers |= _headers("Service-Error-Param")
    if status in (401, 405):
        headers |= _headers("WWW-Authenticate" if status == 401 else "Allow")
    elif operation.scope != "public":
        headers |= _limits(required=status in (404, 409, 410, 422, 429, 503))
    if status == 429:
        headers |= _headers("Retry-After")
    words = refusals.get(status) or _WORDS[key]
    if key == "list 422" and not any(query_filter.labels for query_filter in operation.filters):
        words += " No filter of this list has one at present."
    schema = {"$ref": REF + "Error", "properties": {"error": {"properties": {"code": {"enum": list(names)}}}}}
    examples = {name: {"error": {"code": name, "message": _sentence(operation, status, name)}} for name in names}
    listed = ", ".join(f"`{name}`" for name in names)
    response = {
        "description": f"{HTTPStatus(status).phrase}: {listed}. {words}",
        "headers": headers,
        "content": json_content(schema, examples),
    }
    if status in refusals or key not in _SHARED:
        return response
    assert shared.setdefault(_SHARED[key], response) == response, f"{_SHARED[key]} differs from operation to operation"
    return {"$ref": f"#/components/responses/{_SHARED[key]}"}


def _sentence(operation: Operation, status: int, code: str) -> str:
    """A message as the operation answers it."""
    if code == "idempotency_key_required":
        return operation.route.key_sentence
    if code == "invalid_request":
        return _invalid_request(operation, status)
    if code == "not_found" and operation.route.path.startswith(SANDBOX):
        return NO_SANDBOX
    write = WRITES.get(f"{operation.route.method} {operation.route.path}")
    message = write.messages.get(status) if write and code == "not_found" else None
    return message or ERRORS[code].message


def _invalid_request(operation: Operation, status: int) -> str:
    if operation.kind == "write":
        return WRITES[f"{operation.route.method} {operation.route.path}"].messages[status]
    if not operation.allowed_query:
        return "This operation takes no query parameters; leave them out."
    if status == 400:
        return f"The query may hold these keys only: {', '.join(operation.allowed_query)}."
    if operation.kind == "feed" and not operation.filters:
        return f"wait must be a whole number of seconds from 0 to {WAIT_SECONDS_MAX}."
    closed = [query_filter for query_filter in operation.filters if query_filter.labels]
    return (
        f"{closed[0].name} must be one of: {', '.join(closed[0].labels)}."
        if closed
        else "A filter's value is outside its enum."
    )


def _headers(*names: str) -> Schema:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _limits(*, required: bool) -> Schema:
    suffix = "" if required else "-if-counted"
    return {name: {"$ref": f"#/components/headers/{name}{suffix}"} for name in ("RateLimit", "RateLimit-Policy")}


def json_content(schema: Schema, examples: Mapping[str, object]) -> Schema:
    content = {"schema": schema}
    if examples:
        content["examples"] = {name: {"value": value} for name, value in examples.items()}
    return {"application/json": content}


def operation_id(operation: Operation) -> str:
    if operation.kind == "own":
        return {"/whoami": "getWhoami", "/openapi.json": "getOpenapiDocument"}[operation.route.path]
    if operation.kind == "snapshot":
        return f"get{operation.route.path.removeprefix(SNAPSHOTS).title()}Snapshot"
    method = operation.rpc_path.rpartition("/")[2]
    return method[0].lower() + method[1:]
