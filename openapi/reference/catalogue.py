"""docs/events.md: the event catalogue for people, made only from the document's `webhooks` and the declared events."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from gateway.http.routes import OPERATIONS
from reference.events import EVENTS, INLINE, REF, Event, Schema
from reference.html import slug

GENERATED = "<!-- Made by `make openapi` from openapi/reference/events.py: change that instead. -->\n\n"
INTRODUCTION = """\
# Events

The ten events that a subscription can name: when each fires and how often, what `data` holds, what `change` tells.
How deliveries come, are verified and retried stands in [Receiving webhooks](webhooks.md). The reference (`/docs` of the
API) has the fields of each record, and a whole delivery of each event below `/docs/events`.

`data` is the record as it was right after the event: what its GET answered then, to the byte. Three events carry an
object of their own instead: those keys and no others, without `schema_version`, `entity_type` and `entity_id`, and with
nothing to fetch afterwards. `change` is `{field, from, to}` where something moved, else null.

What happens at 06:00 in the company's timezone happens once a day there, when the clocks change too. Records that are
imported from a file fire events only with `--events`; without it, overdue work counts as announced.
An inactive company's records do not go stale until it is active again.
"""


def markdown(schemas: Schema) -> str:
    """The catalogue without the examples, which the reference adds. schemas: of the document."""
    rows = "".join(f"| [`{event.key}`](#{slug(event.key)}) | {_data(event)} | {_change(event)} |\n" for event in EVENTS)
    parts = [INTRODUCTION, f"| event | `data` | `change` |\n|---|---|---|\n{rows}"]
    parts += ["".join(_event(event, schemas)) for event in EVENTS]
    return "\n".join(parts)


def _event(event: Event, schemas: Schema) -> Iterator[str]:
    yield f"## {event.key}\n\n{_filled(event.fires_when)}\n\n"
    yield _filled(f"**How often.** {event.how_often}") + "\n\n**`data`.** "
    if event.data in INLINE:
        properties = schemas[event.data]["properties"]
        yield "Exactly these keys:\n\n| key | type | |\n|---|---|---|\n"
        yield from (f"| `{name}` | {_type(about)} | {about['description']} |\n" for name, about in properties.items())
    else:
        yield f"The {_data(event)}, as `GET {_place(event)}` serves it.\n"
    if event.change is None:
        yield "\n**`change`.** null.\n"
    else:
        before, after = (_values(states, schemas) for states in (event.change.before, event.change.after))
        described = f"**`change`.** `field` is `{event.change.field}`; `from` is {before}; `to` is {after}."
        yield f"\n{_filled(described)}\n"


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False)


def _data(event: Event) -> str:
    if event.data in INLINE:
        return ", ".join(f"`{name}`" for name in INLINE[event.data]["properties"])
    return event.data.lower()


def _change(event: Event) -> str:
    return f"`{event.change.field}`" if event.change else "null"


def _place(event: Event) -> str:
    """The path of the route that fetches the record."""
    routes = (operation.route for operation in OPERATIONS)
    (path,) = (
        route.path for route in routes if route.method == "GET" and route.path.endswith(f"/{{{event.data.lower()}_id}}")
    )
    return path


def _type(schema: Schema) -> str:
    form = f", {schema['format']}" if "format" in schema else ""
    return f"{schema['type']}{form}"


def _values(schema: Schema, schemas: Schema) -> str:
    """The values that a schema allows, as text."""
    if "$ref" in schema:
        return _values(schemas[schema["$ref"].removeprefix(REF)], schemas)
    if "anyOf" in schema:
        return " or ".join(_values(option, schemas) for option in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " or ".join("a date" if kind == "string" and schema.get("format") == "date" else kind for kind in types)
