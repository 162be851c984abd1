"""One operation of the document: its words, parameters and body."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.http.answers.records import IDEMPOTENCY_KEY_CHARACTERS_MAX
from gateway.http.filters import (
    ID_CHARACTERS_MAX,
    LIMIT_DEFAULT,
    LIMIT_MAX,
    TEXT_CHARACTERS_MAX,
    WAIT_SECONDS_MAX,
    Filter,
)
from gateway.http.routes import CHANGES, Operation
from gateway.http.waiting import WAITS_MAX
from reference.events import REF, Schema
from reference.feeds import REQUESTS
from reference.responses import Example, json_content, operation_id, responses
from reference.words import (
    AFTER,
    FILTER_EXAMPLES,
    FILTERS,
    FOLLOWED,
    FOLLOWS,
    ID_EXAMPLES,
    IDS,
    LISTS_AND_FETCHES,
    OTHERS,
    PRINTABLE,
    SNAPSHOT,
    TEXT_IDS,
    TEXT_PATTERNS,
    WRITES,
)


def path_item(operation: Operation, record_of: Mapping[str, str], example: Example, shared: Schema) -> Schema:
    """The document's operation. Adds responses that several operations have to `shared`.

    Raises ValueError with the name of anything without words.
    """
    route = operation.route
    summary, description = _told(operation)
    item: Schema = {
        "operationId": operation_id(operation),
        "summary": summary,
        "description": description,
        "tags": [_tag(operation)],
    }
    if operation.scope == "public":
        item["security"] = []
    elif operation.scope != "any":
        item["security"] = [{"bearer": [operation.scope]}]
    record = record_of.get(route.path.split("/")[1])
    if parameters := _parameters(operation, example(record)["entity_id"] if record else 0):
        item["parameters"] = parameters
    if operation.kind == "write":
        body = WRITES[f"{route.method} {route.path}"].body
        item["requestBody"] = {
            "required": True,
            "content": json_content({"$ref": REF + body}, {"body": example(body)}),
        }
    item["responses"] = responses(operation, record_of, example, shared)
    return item


def _tag(operation: Operation) -> str:
    if operation.kind in ("own", "search") or operation.route.path.startswith(REQUESTS):
        return "Meta"
    return "Changes" if operation.kind in ("feed", "snapshot") else operation.route.path.split("/")[1].title()


def _told(operation: Operation) -> tuple[str, str]:
    """The operation's summary and description."""
    route = operation.route
    name = f"{route.method} {route.path}"
    if operation.kind == "write":
        return WRITES[name].summary, WRITES[name].description
    if name in OTHERS:
        return OTHERS[name]
    if operation.kind in ("feed", "snapshot"):
        noun = route.path.rpartition("/")[2]
        plural = FOLLOWED.get(noun) or LISTS_AND_FETCHES[f"/{noun}"][0]
        if operation.kind == "feed":
            return f"Follow {plural}", FOLLOWS.format(plural=plural)
        names = operation.allowed_query
        words = {
            "order": " and ".join(name.removeprefix("after_").replace("meter_id", "meter") for name in names),
            "after": " and ".join(f"`{name}`" for name in names),
        }
        return f"Take a snapshot of {plural}", SNAPSHOT.format(plural=plural, changes=CHANGES + noun, **words)
    collection = route.path if operation.kind == "list" else route.path.rpartition("/")[0]
    if collection not in LISTS_AND_FETCHES:
        raise ValueError(f"{name} has no words: write them in openapi/reference/words.py")
    noun, note = LISTS_AND_FETCHES[collection]
    if operation.kind == "list":
        return f"List {noun}", " ".join(filter(None, (f"A page of {noun}, ascending by id.", note)))
    singular = {"properties": "property", "utility meters": "utility meter"}.get(noun, noun[:-1])
    article = "an" if singular[0] in "aei" else "a"
    return f"Fetch {article} {singular}", " ".join(filter(None, (f"One {singular} by its id.", note)))


def _parameters(operation: Operation, example_id: int) -> list[Schema]:
    parameters: list[Schema] = []
    for number, name in enumerate(operation.ids):
        schema: Schema = {"type": "integer", "format": "int64", "minimum": 1}
        if name in TEXT_IDS:
            schema = {"type": "string", "maxLength": ID_CHARACTERS_MAX}
        parameters.append(
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": IDS[name],
                "schema": schema,
                "example": ID_EXAMPLES[name] if number or name in TEXT_IDS else example_id,
            }
        )
    parameters += [_filter(query_filter, operation.route.path) for query_filter in operation.filters]
    if operation.kind == "list":
        parameters.append(_limit())
        parameters.append(
            {
                "name": "cursor",
                "in": "query",
                "description": "The `next_cursor` of the page before, with the same filters. Left out: the first page.",
                "schema": {"type": "string"},
            }
        )
    if operation.kind == "feed":
        parameters += _feed_parameters()
    if operation.kind == "snapshot":
        parameters += [_after(name) for name in operation.allowed_query]
    if operation.kind == "write":
        parameters.append(
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
                    # Blanks at the ends are not part of a header's value.
                    "pattern": "^[!-~]([ -~]*[!-~])?$",
                },
                "example": "7f2c1f0e-6a55-4b0c-9d0a-0f6f3c1f8f11",
            }
        )
    return parameters


def _limit() -> Schema:
    return {
        "name": "limit",
        "in": "query",
        "description": f"How many records a page may hold: {LIMIT_DEFAULT} if left out; above {LIMIT_MAX} it counts as "
        f"{LIMIT_MAX}.",
        "schema": {"type": "integer", "minimum": 1, "default": LIMIT_DEFAULT},
        "example": LIMIT_DEFAULT,
    }


def _feed_parameters() -> list[Schema]:
    return [
        _limit(),
        {
            "name": "cursor",
            "in": "query",
            "description": "The `resume_cursor` of the page before, however long ago. Left out: the beginning.",
            "schema": {"type": "string"},
        },
        {
            "name": "wait",
            "in": "query",
            "description": "How many seconds to wait if there is nothing yet: the answer comes as soon as there is "
            "something, else an empty page when they are over. Of more than "
            f"{WAITS_MAX} requests of a key that wait here, the oldest comes empty at once, with the header "
            "`Service-Wait`. 0 if left out.",
            "schema": {"type": "integer", "minimum": 0, "maximum": WAIT_SECONDS_MAX, "default": 0},
            "example": WAIT_SECONDS_MAX,
        },
    ]


def _after(name: str) -> Schema:
    return {
        "name": name,
        "in": "query",
        "description": f"{AFTER[name]} Left out: the beginning.",
        "schema": {"type": "integer", "format": "int64", "minimum": 0},
    }


def _filter(query_filter: Filter, path: str = "") -> Schema:
    if query_filter.name not in FILTERS:
        raise ValueError(f"the filter {query_filter.name} has no words: write them in openapi/reference/words.py")
    if not query_filter.labels and query_filter.name not in FILTER_EXAMPLES:
        raise ValueError(f"the filter {query_filter.name} has no example: write it in openapi/reference/words.py")
    description = FILTERS.get(f"{path} {query_filter.name}") or FILTERS[query_filter.name]
    if query_filter.requires:
        description += f" Needs `{query_filter.requires}` beside it; alone it is refused with 400."
    schema: Schema = {"type": "integer"}
    if query_filter.labels:
        schema = {"type": "string", "enum": list(query_filter.labels)}
    elif query_filter.is_instant:
        schema = {"type": "string", "format": "date-time"}
    elif query_filter.is_text:
        pattern = TEXT_PATTERNS.get(query_filter.name, PRINTABLE)
        schema = {"type": "string", "maxLength": query_filter.points_max or TEXT_CHARACTERS_MAX, "pattern": pattern}
    elif query_filter.is_boolean:
        schema = {"type": "boolean"}
    example = query_filter.labels[0] if query_filter.labels else FILTER_EXAMPLES[query_filter.name]
    parameter = {"name": query_filter.name, "in": "query", "description": description, "schema": schema}
    return parameter | ({"required": True} if query_filter.points_max else {}) | {"example": example}
