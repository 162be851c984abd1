"""The reference page for people, made only from the document; and the pages of changes, events and webhooks."""

from __future__ import annotations

import ast
import json
import re
from html import escape

from gateway.http.reference import BASE_URL
from reference import html
from reference.catalogue import anchor
from reference.document import ROOT
from reference.errors import ERRORS
from reference.html import Schema

GUIDE = ROOT / "docs" / "webhooks.md"
GUIDE_FILES = tuple(
    ROOT / "docs" / "webhooks" / name for name in ("receiver.py", "receiver.ts", "receiver.sh", "vectors.json")
)

SYNC = ROOT / "docs" / "sync.md"
SYNC_FILE = ROOT / "docs" / "sync" / "copy.py"


def _verifying() -> str:
    """The verifying function of the guide's receiver, and the names that it needs."""
    source = GUIDE_FILES[0].read_text()
    wanted = [
        ast.get_source_segment(source, node) or ""
        for node in ast.parse(source).body
        if (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TOLERANCE_SECONDS")
        or (isinstance(node, ast.FunctionDef) and node.name == "is_genuine")
    ]
    return "import hashlib, hmac, re\n\n{}\n\n{}\n".format(*wanted)


VERIFYING = _verifying()
DELIVERY = """\
Deliveries are JSON POSTs to the subscription's `destination_url`. [Receiving webhooks](docs/webhooks) is the guide for
receivers: code to start from, test vectors, a checklist. [The event catalogue](docs/events) says when and how often
each event fires. In short:

Each event is delivered at least once: drop those whose `event_id` you have seen. Events are delivered by an hourly
sweep. A failed attempt is repeated 1, 2, 4, 8 and 24 hours after the first one. After that, the delivery is parked for
30 days, and an administrator can see and retry it. Any 2xx within 10 seconds is a success. A redirect is not followed.
An answer that is missing or incomplete after 10 seconds is a failure. Events of different records may come out of
order; order the events of one record by `occurred_at`. A new signing secret takes effect at once: the old one stops
working.

`data` is the response of the matching fetch at the time of the event, to the byte. The last three events carry an
object of their own, which cannot be fetched."""


def reference(document: Schema) -> str:
    """The whole reference."""
    info = document["info"]
    body = (
        '<a class="skip" href="#content">Skip to the content</a>\n'
        f"<header><p>Makeready</p><h1>{escape(info['title'])}</h1>\n"
        f'<p>Version 1, last changed {escape(info["version"])} · <a href="docs/webhooks">Receiving webhooks</a> · '
        '<a href="docs/events">Events</a> · '
        '<a href="docs/sync">Keeping a copy</a> · '
        '<a href="docs/changes">Changes</a> · '
        f'<a href="{BASE_URL}/openapi.json">OpenAPI document</a></p>\n'
        f"<p>Base URL {html.code(BASE_URL)}</p></header>\n"
        f'<nav aria-label="Contents">{_contents(document)}</nav>\n'
        f'<main id="content">\n<section id="introduction">\n{html.markdown(info["description"])}</section>\n'
        f"{_operations(document)}{_events(document)}{_errors()}{_schemas(document)}</main>\n"
    )
    return html.document(info["title"], body, style="docs/style.css")


def guide(text: str) -> str:
    """docs/webhooks.md as a page."""
    body = (
        '<header><p><a href="../docs">Reference</a></p></header>\n'
        f'<main id="content" class="alone">\n{html.markdown(text.replace("](events.md)", "](events)"))}</main>\n'
    )
    return html.document("Receiving webhooks", body, style="style.css")


def sync(text: str) -> str:
    """docs/sync.md as a page."""
    inside = html.markdown(text.replace("](events.md)", "](events)").replace("](webhooks.md)", "](webhooks)"))
    inside = inside.replace("<h2>Without changes</h2>", '<h2 id="without-changes">Without changes</h2>')
    body = (
        f'<header><p><a href="../docs">Reference</a></p></header>\n<main id="content" class="alone">\n{inside}</main>\n'
    )
    return html.document("Keeping a copy in step", body, style="style.css")


def catalogue(text: str) -> str:
    """docs/events.md as a page."""
    inside = html.markdown(text.replace("](webhooks.md)", "](webhooks)"))
    for key in re.findall(r"(?m)^## (\S+)$", text):
        inside = inside.replace(f"<h2>{key}</h2>", f'<h2 id="{anchor(key)}">{key}</h2>')
    body = (
        f'<header><p><a href="../docs">Reference</a></p></header>\n<main id="content" class="alone">\n{inside}</main>\n'
    )
    return html.document("Events", body, style="style.css")


def changes(text: str) -> str:
    """docs/changes.md as a page."""
    text = text.replace("](sync.md)", "](sync)")
    body = (
        '<header><p><a href="../docs">Reference</a></p></header>\n'
        f'<main id="content" class="alone">\n{html.markdown(text)}</main>\n'
    )
    return html.document("Changes of the API", body, style="style.css")


def _contents(document: Schema) -> str:
    found = ['<details open><summary>Contents</summary>\n<ul>\n<li><a href="#introduction">Introduction</a></li>\n']
    for tag in document["tags"]:
        name = tag["name"]
        entries = [
            f'<li><a href="#{one["operationId"]}">{_verb(verb)} {escape(path)}</a></li>\n'
            for path, verb, one in _all(document)
            if name in one["tags"]
        ]
        if name == "Events":
            entries = [f'<li><a href="#event-{key}">{key}</a></li>\n' for key in document["webhooks"]]
        found.append(f'<li><a href="#tag-{name}">{name}</a>\n<ul>\n{"".join(entries)}</ul></li>\n')
    found.append('<li><a href="#errors">Errors</a></li>\n<li><a href="#schemas">Objects</a>\n<ul>\n')
    schemas = document["components"]["schemas"]
    # Pages, deliveries and enums are linked from where they are used.
    found += [
        f"<li>{html.link(name)}</li>\n"
        for name, schema in schemas.items()
        if "enum" not in schema and not name.endswith(("Page", "Event"))
    ]
    return "".join([*found, "</ul></li>\n</ul></details>\n"])


def _all(document: Schema) -> list[tuple[str, str, Schema]]:
    return [(path, verb, one) for path, item in document["paths"].items() for verb, one in item.items()]


def _verb(verb: str) -> str:
    return f'<span class="verb {verb}">{verb.upper()}</span>'


def _operations(document: Schema) -> str:
    found = []
    for tag in document["tags"]:
        if tag["name"] == "Events":
            continue
        found.append(f'<section id="tag-{tag["name"]}">\n<h2>{tag["name"]}</h2>\n<p>{escape(tag["description"])}</p>\n')
        found += [_operation(document, *one) for one in _all(document) if tag["name"] in one[2]["tags"]]
        found.append("</section>\n")
    return "".join(found)


def _operation(document: Schema, path: str, verb: str, operation: Schema) -> str:
    anchor = operation["operationId"]
    found = [
        f'<article id="{anchor}">\n<h3><a href="#{anchor}">{escape(operation["summary"])}</a></h3>\n',
        f'<p class="path">{_verb(verb)} {html.code(path)}</p>\n<p>{html.inline(operation["description"])}</p>\n',
        f"<p>{_scope(operation)}</p>\n",
    ]
    if parameters := operation.get("parameters"):
        rows = [
            (
                html.code(one["name"]) + (" <small>required</small>" if one.get("required") else ""),
                one["in"],
                html.type_of(one["schema"]),
                html.inline(one["description"]),
            )
            for one in parameters
        ]
        found.append("<h4>Parameters</h4>\n" + html.table(("Name", "In", "Type", "Meaning"), rows))
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        found.append(f"<h4>Body</h4>\n<p>{html.type_of(body['schema'])}, as JSON.</p>\n")
    found.append(html.block(_curl(path, verb, operation, body)))
    answers = []
    examples = []
    for status, given in operation["responses"].items():
        response = _resolved(document, given)
        content: Schema = next(iter(response.get("content", {}).values()), {})
        shape = ""
        if status.startswith("2"):
            schema = content.get("schema", {})
            schema = schema.get("contentSchema", {}).get("items", schema)  # of lines: that of a line
            shape = html.type_of(schema) if "$ref" in schema else ""
            examples = [(status, name, one["value"]) for name, one in content.get("examples", {}).items()]
        answers.append((html.code(status), html.inline(response["description"]) + (f" {shape}" if shape else "")))
    found.append("<h4>Answers</h4>\n" + html.table(("Status", "Meaning"), answers))
    for status, _, value in examples:
        found.append(
            html.folded(f"Example of {status}", html.block(value) if isinstance(value, str) else html.json_block(value))
        )
    return "".join([*found, "</article>\n"])


def _scope(operation: Schema) -> str:
    if "security" not in operation:
        return "Any active key."
    if not operation["security"]:
        return "Public: no key."
    (scope,) = operation["security"][0]["bearer"]
    opened = [scope] if scope == "write" else [scope, "write"]
    return "Scope " + " or ".join(html.code(one) for one in opened) + "."


def _curl(path: str, verb: str, operation: Schema, body: Schema | None) -> str:
    for one in operation.get("parameters", []):
        if one["in"] == "path":
            path = path.replace("{" + one["name"] + "}", str(one["example"]))
    words = ["curl"]
    if verb != "get":
        words.append(f"-X {verb.upper()}")
    words.append(f"'{BASE_URL}{path}'")
    if operation.get("security") != []:
        words.append("\\\n  -H 'Authorization: Bearer <API_KEY>'")
    if body:
        (example,) = body["examples"].values()
        words.append("\\\n  -H 'Content-Type: application/json' -H \"Idempotency-Key: $(uuidgen)\"")
        printed = json.dumps(example["value"], indent=2, ensure_ascii=False).replace("'", "'\\''")
        words.append(f"\\\n  -d '{printed}'")
    return " ".join(words)


def _resolved(document: Schema, found: Schema) -> Schema:
    if "$ref" in found:
        responses: Schema = document["components"]["responses"]
        return dict(responses[found["$ref"].rpartition("/")[2]])
    return found


def _events(document: Schema) -> str:
    if not document["webhooks"]:
        return ""
    first = next(iter(document["webhooks"].values()))["post"]
    headers = [(html.code(one["name"]), html.inline(one["description"])) for one in first["parameters"]]
    answers = [(html.code(status), html.inline(one["description"])) for status, one in first["responses"].items()]
    found = [
        '<section id="tag-Events">\n<h2>Events</h2>\n',
        html.markdown(DELIVERY),
        "<h3>Headers of a delivery</h3>\n" + html.table(("Header", "Meaning"), headers),
        "<h3>What your answer means</h3>\n" + html.table(("Status", "Meaning"), answers),
        '<h3 id="signature">Signature</h3>\n<p>How to tell that a delivery is genuine, in Python:</p>\n',
        html.block(VERIFYING),
    ]
    for key, item in document["webhooks"].items():
        content = item["post"]["requestBody"]["content"]["application/json"]
        schema = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        change = schema["properties"]["change"]
        moved = "null"
        if "properties" in change:
            of = change["properties"]
            moved = (
                f"{html.code('field')}: {html.type_of(of['field'])}, {html.code('from')}: {html.type_of(of['from'])}, "
                f"{html.code('to')}: {html.type_of(of['to'])}"
            )
        found.append(
            f'<article id="event-{key}">\n<h3><a href="#event-{key}">{key}</a></h3>\n'
            f"<p>{html.inline(item['post']['description'])}</p>\n"
            f"<p>{html.code('data')}: {html.type_of(schema['properties']['data'])}. "
            f"{html.code('change')}: {moved}.</p>\n"
        )
        (example,) = content["examples"].values()
        found.append(html.folded("Example of a delivery", html.json_block(example["value"])) + "</article>\n")
    return "".join([*found, "</section>\n"])


def _errors() -> str:
    rows = [
        (
            html.code(code),
            ", ".join(str(status) for status in error.statuses),
            html.inline(error.meaning),
            html.inline(error.remedy),
        )
        for code, error in ERRORS.items()
    ]
    return (
        '<section id="errors">\n<h2>Errors</h2>\n'
        + html.json_block({"error": {"code": "not_found", "message": ERRORS["not_found"].message}})
        + html.table(("Code", "Status", "Meaning", "What to do"), rows)
        + "</section>\n"
    )


def _schemas(document: Schema) -> str:
    found = ['<section id="schemas">\n<h2>Objects</h2>\n']
    for name, schema in document["components"]["schemas"].items():
        found.append(f'<article id="schema-{name}">\n<h3><a href="#schema-{name}">{name}</a></h3>\n')
        if "description" in schema:
            found.append(f"<p>{html.inline(schema['description'])}</p>\n")
        if "enum" in schema:
            found.append(f"<p>{html.type_of(schema)}</p>\n")
        else:
            optional = set(schema["properties"]) - set(schema["required"])
            rows = [
                (
                    html.code(field) + (" <small>optional</small>" if field in optional else ""),
                    "object" if about.get("type") == "object" else html.type_of(about),
                    html.inline(about.get("description", "")),
                )
                for field, about in schema["properties"].items()
            ]
            found.append(html.table(("Field", "Type", "Meaning"), rows))
        found.append("</article>\n")
    return "".join([*found, "</section>\n"])
