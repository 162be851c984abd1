"""The pages of the reference: one for each resource, one of the deliveries, one of the errors."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import partial
from html import escape
from typing import Any

from reference import html, site
from reference.errors import ERRORS
from reference.events import Schema
from reference.site import EVENTS, operations, place_of_tag
from reference.words import GUIDE_FILES


def _verifying() -> str:
    """The verifying function of the guide's receiver, and the names that it needs."""
    source = GUIDE_FILES[0].read_text()
    snippets = [
        ast.get_source_segment(source, node) or ""
        for node in ast.parse(source).body
        if (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TOLERANCE_SECONDS")
        or (isinstance(node, ast.FunctionDef) and node.name == "is_genuine")
    ]
    return "import hashlib, hmac, re\n\n{}\n\n{}\n".format(*snippets)


VERIFYING = _verifying()
# Refusals that nearly every operation shares: described once, on the page of errors.
EVERYWHERE = {"Unauthorized", "Forbidden", "MethodNotAllowed", "RateLimited", "InternalError"}
DELIVERY = """\
Deliveries are JSON POSTs to the subscription's `destination_url`. [Receiving webhooks](../webhooks) is the guide for
receivers: code to start from, test vectors, a checklist. [The event catalogue](../events) says when and how often
each event fires. In short:

Each event is delivered at least once: drop those whose `event_id` you have seen. Events are delivered by an hourly
sweep. A failed attempt is repeated 1, 2, 4, 8 and 24 hours after the first one. After that, the delivery is parked for
30 days, and an administrator can see and retry it. Any 2xx within 10 seconds is a success. A redirect is not followed.
An answer that is missing or incomplete after 10 seconds is a failure. Events of different records may come out of
order; order the events of one record by `occurred_at`. A new signing secret takes effect at once: the old one stops
working.

`data` is the response of the matching fetch at the time of the event, to the byte. The last three events carry an
object of their own, which cannot be fetched."""


class Pages:
    """Writes the pages from the finished document."""

    def __init__(self, document: Schema) -> None:
        self._document = document
        self._schemas: Schema = document["components"]["schemas"]
        self._owner = self._owners()

    def all(self) -> Iterator[tuple[str, str, str]]:
        """(path, title, what stands in the page's main part) of each page."""
        for tag in self._document["tags"]:
            place = place_of_tag(tag["name"])
            if place == EVENTS:
                yield place, site.title_of_tag(tag["name"]), self._deliveries()
            else:
                yield place, tag["name"], self._resource(tag)
        yield site.ERRORS, "Errors", self._errors()

    def _owners(self) -> dict[str, str]:
        """The page that describes each schema: the first one that needs it."""
        owners = dict.fromkeys(["Error"], site.ERRORS)
        for item in self._document["webhooks"].values():
            content = item["post"]["requestBody"]["content"]["application/json"]
            name = content["schema"]["$ref"].rpartition("/")[2]
            owners[name] = EVENTS
        for tag in self._document["tags"]:
            for _, _, operation in operations(self._document, tag["name"]):
                for name in self._reached(operation):
                    owners.setdefault(name, place_of_tag(tag["name"]))
        for name in self._reached(self._document["webhooks"]):
            owners.setdefault(name, EVENTS)
        assert owners.keys() == self._schemas.keys(), owners.keys() ^ self._schemas.keys()
        return owners

    def _reached(self, start: Any) -> Iterator[str]:
        """The names of the schemas that something refers to, each once, the nearest first."""
        done: set[str] = set()
        waiting = [start]
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, dict):
                if "$ref" in node:
                    _, _, kind, name = node["$ref"].split("/")
                    if kind == "schemas" and name not in done:
                        done.add(name)
                        yield name
                        # What carries another page's objects, such as an event's record, leaves them there.
                        waiting.append(self._schemas[name])
                    elif kind == "responses":
                        waiting.append(self._document["components"]["responses"][name])
                waiting += [inside for key, inside in node.items() if key not in ("examples", "x-codeSamples")]
            elif isinstance(node, list):
                waiting += node

    def _link(self, at: str, name: str) -> str:
        return site.href(f"{self._owner[name]}#schema-{name}", at)

    def _resource(self, tag: Schema) -> str:
        name = tag["name"]
        place = place_of_tag(name)
        listed = operations(self._document, name)
        entries = "".join(
            f'<li><a href="#{operation["operationId"]}">{_verb(verb)} {html.code(path)} '
            f"<span>{escape(operation['summary'])}</span></a></li>\n"
            for path, verb, operation in listed
        )
        summaries = _without_twins(
            (
                _operation_outline(operation),
                f"{verb.upper()} {path}",
                operation["summary"],
                self._operation(place, path, verb, operation),
            )
            for path, verb, operation in listed
        )
        return "".join(
            [
                f'<h1>{escape(name)}</h1>\n<p class="lead">{html.inline(tag["description"])}</p>\n',
                f'<ul class="operations">\n{entries}</ul>\n',
                *summaries,
                *self._objects(place),
            ]
        )

    def _objects(self, at: str) -> Iterator[str]:
        """The objects that a page describes."""
        names = sorted(name for name, owner in self._owner.items() if owner == at)
        if names:
            yield "<h2>Objects</h2>\n"
        yield from _without_twins(
            (_object_outline(self._schemas[name]), name, "", self._object(at, name)) for name in names
        )

    def _operation(self, at: str, path: str, verb: str, operation: Schema) -> str:
        anchor = operation["operationId"]
        link = partial(self._link, at)
        parts = [
            f'<h2><a href="#{anchor}">{escape(operation["summary"])}</a></h2>\n',
            f'<p class="path">{_verb(verb)} {html.code(path)}</p>\n<p>{html.inline(operation["description"])}</p>\n',
            f"<p>{_scope(operation)}</p>\n",
        ]
        if parameters := operation.get("parameters"):
            rows = [
                (
                    html.code(parameter["name"]),
                    f"{parameter['in']}, {html.type_of(parameter['schema'], link)}"
                    + (", required" if parameter.get("required") else ""),
                    html.inline(parameter["description"]),
                )
                for parameter in parameters
            ]
            parts.append("<h3>Parameters</h3>\n" + html.fields(rows))
        if body := operation.get("requestBody", {}).get("content", {}).get("application/json"):
            parts.append(f"<h3>Body</h3>\n<p>{html.type_of(body['schema'], link)}, as JSON:</p>\n")
            parts.append(self._fields(at, body["schema"]["$ref"].rpartition("/")[2]))
        rows = []
        samples = []
        everywhere = []
        for status, answer in operation["responses"].items():
            if answer.get("$ref", "").rpartition("/")[2] in EVERYWHERE:
                everywhere.append(html.code(status))
                continue
            response = self._resolved(answer)
            content: Schema = next(iter(response.get("content", {}).values()), {})
            shape = ""
            if status.startswith("2"):
                schema = content.get("schema", {})
                schema = schema.get("contentSchema", {}).get("items", schema)  # of lines: that of a line
                shape = html.type_of(schema, link) if "$ref" in schema else ""
                samples += [(status, example["value"]) for example in content.get("examples", {}).values()]
            rows.append((html.code(status), shape, html.inline(response["description"])))
        if everywhere:
            errors = f'As for every operation: <a href="{site.href(site.ERRORS, at)}">Errors</a>.'
            rows.append((" ".join(everywhere), "", errors))
        parts.append("<h3>Answers</h3>\n" + html.fields(rows))
        side = [html.samples(anchor, {sample["label"]: sample["source"] for sample in operation["x-codeSamples"]})]
        for status, value in samples:
            inside = html.block(value) if isinstance(value, str) else html.json_block(value)
            side.append(html.folded(f"Answer {status}", inside))
        return (
            f'<article id="{anchor}" class="operation"><div>\n{"".join(parts)}</div>\n'
            f'<div class="side">\n{"".join(side)}</div></article>\n'
        )

    def _object(self, at: str, name: str) -> str:
        schema = self._schemas[name]
        about = f"<p>{html.inline(schema['description'])}</p>\n" if "description" in schema else ""
        values = f"<p>{html.type_of(schema, partial(self._link, at))}</p>\n" if "enum" in schema else ""
        fields = "" if values else self._fields(at, name)
        heading = f'<h3 id="schema-{name}"><a href="#schema-{name}">{name}</a></h3>'
        return f"<article>{heading}\n{about}{values}{fields}</article>\n"

    def _fields(self, at: str, name: str) -> str:
        schema = self._schemas[name]
        optional = set(schema["properties"]) - set(schema["required"])
        return html.fields(
            (
                html.code(field),
                ("object" if about.get("type") == "object" else html.type_of(about, partial(self._link, at)))
                + (", optional" if field in optional else ""),
                html.inline(about.get("description", "")),
            )
            for field, about in schema["properties"].items()
        )

    def _resolved(self, response: Schema) -> Schema:
        if "$ref" in response:
            responses: Schema = self._document["components"]["responses"]
            return dict(responses[response["$ref"].rpartition("/")[2]])
        return response

    def _deliveries(self) -> str:
        webhooks = self._document["webhooks"]
        first = next(iter(webhooks.values()))["post"]
        headers = [
            (html.code(header["name"]), "", html.inline(header["description"])) for header in first["parameters"]
        ]
        answers = [
            (html.code(status), "", html.inline(response["description"]))
            for status, response in first["responses"].items()
        ]
        sections = [
            f"<h1>Deliveries</h1>\n{html.markdown(DELIVERY)}",
            '<h2 id="headers">Headers of a delivery</h2>\n' + html.fields(headers),
            '<h2 id="answers">What your answer means</h2>\n' + html.fields(answers),
            '<h2 id="signature">Signature</h2>\n<p>How to tell that a delivery is genuine, in Python:</p>\n',
            html.block(VERIFYING),
            "<h2>Events</h2>\n",
        ]
        link = partial(self._link, EVENTS)
        for key, item in webhooks.items():
            content = item["post"]["requestBody"]["content"]["application/json"]
            name = content["schema"]["$ref"].rpartition("/")[2]
            properties = self._schemas[name]["properties"]
            moved = "null"
            if change_properties := properties["change"].get("properties"):
                moved = ", ".join(
                    f"{html.code(part)}: {html.type_of(change_properties[part], link)}"
                    for part in ("field", "from", "to")
                )
            (example,) = content["examples"].values()
            sections.append(
                f'<article id="event-{key}">\n<h3><a href="#event-{key}">{key}</a></h3>\n'
                f"<p>{html.inline(item['post']['description'])}</p>\n"
                f"<p>{html.code('data')}: {html.type_of(properties['data'], link)}. "
                f"{html.code('change')}: {moved}.</p>\n"
                + html.folded("Example of a delivery", html.json_block(example["value"]))
                + "</article>\n"
            )
        return "".join([*sections, *self._objects(EVENTS)])

    def _errors(self) -> str:
        rows = [
            (
                f'<code id="{code}">{code}</code>',
                " or ".join(str(status) for status in error.statuses),
                f"{html.inline(error.meaning)} {html.inline(error.remedy)}",
            )
            for code, error in ERRORS.items()
        ]
        return (
            '<h1>Errors</h1>\n<p class="lead">Branch on the code; the message is for people, and may be reworded.</p>\n'
            + html.json_block({"error": {"code": "not_found", "message": ERRORS["not_found"].message}})
            + html.fields(rows)
            + "<h2>Objects</h2>\n"
            + self._object(site.ERRORS, "Error")
        )


def _without_twins(articles: Iterable[tuple[Any, str, str, str]]) -> Iterator[str]:
    """The articles; those that say the same as an earlier one, of other records, are folded behind it.

    articles: (what an article says but for the names of records, its name, a remark, the article in HTML).
    """
    groups: list[tuple[Any, str, list[str]]] = []
    for outline, name, remark, article in articles:
        twins = next((twins for before, _, twins in groups if before == outline), None)
        if twins is None:
            groups.append((outline, article, []))
        else:
            twins.append(html.folded_article(name, remark, article))
    for _, first, twins in groups:
        yield first + ('<div class="twins">\n<p>The same of other records:</p>\n' if twins else "")
        yield "".join(twins) + ("</div>\n" if twins else "")


def _operation_outline(operation: Schema) -> Any:
    parameters = [(parameter["name"], parameter["description"]) for parameter in operation.get("parameters", ())]
    answers = [
        (status, response.get("description") or response["$ref"]) for status, response in operation["responses"].items()
    ]
    # A body is an operation's own, and so is a path with an id.
    alone = "requestBody" in operation or any(
        parameter["in"] == "path" for parameter in operation.get("parameters", ())
    )
    return operation["operationId"] if alone else (parameters, answers)


def _object_outline(schema: Schema) -> Any:
    fields = [(name, about.get("description")) for name, about in schema.get("properties", {}).items()]
    return (schema.get("description"), fields) if fields else id(schema)


def _verb(verb: str) -> str:
    return f'<span class="verb {verb}">{verb.upper()}</span>'


def _scope(operation: Schema) -> str:
    if "security" not in operation:
        return "Any active key."
    if not operation["security"]:
        return "Public: no key."
    (scope,) = operation["security"][0]["bearer"]
    opened = [scope] if scope == "write" else [scope, "write"]
    return "Scope " + " or ".join(map(html.code, opened)) + "."
