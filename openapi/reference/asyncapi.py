"""The events as an AsyncAPI 3 document, for tools that read no `webhooks` of OpenAPI. It is made from that document."""

from __future__ import annotations

import re

from reference.events import Schema

VERSION = "3.0.0"
_SCHEMA = re.compile(r"#/components/schemas/(\w+)")


def of_events(document: Schema) -> Schema:
    """An application that sends each event to the address of a subscription."""
    webhooks = {key: item["post"] for key, item in document["webhooks"].items()}
    messages = {operation["operationId"]: _message(key, operation) for key, operation in webhooks.items()}
    info = document["info"]
    return {
        "asyncapi": VERSION,
        "info": {
            "title": f"{info['title']}: events",
            "version": info["version"],
            "description": "Signed deliveries by HTTP POST. A subscription names the address and the events: "
            "`POST /webhooks` of the API.",
        },
        "defaultContentType": "application/json",
        "channels": {
            "receiver": {
                "address": None,
                "description": "The `destination_url` of a subscription.",
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
            }
        },
        "operations": {
            "deliver": {
                "action": "send",
                "channel": {"$ref": "#/channels/receiver"},
                "bindings": {"http": {"method": "POST", "bindingVersion": "0.3.0"}},
            }
        },
        "components": {"messages": messages, "schemas": _schemas(messages, document["components"]["schemas"])},
    }


def _message(key: str, operation: Schema) -> Schema:
    content = operation["requestBody"]["content"]["application/json"]
    headers = [parameter for parameter in operation["parameters"] if parameter["in"] == "header"]
    return {
        "name": key,
        "title": key,
        "summary": operation["description"],
        "headers": {
            "type": "object",
            "properties": {
                header["name"]: header["schema"] | {"description": header["description"]} for header in headers
            },
            "required": [header["name"] for header in headers if header["required"]],
        },
        "payload": content["schema"],
        "examples": [{"name": name, "payload": example["value"]} for name, example in content["examples"].items()],
    }


def _schemas(messages: Schema, schemas: Schema) -> Schema:
    """Those that the messages refer to, and those that these refer to."""
    referred_to: set[str] = set()
    names = _names_in(messages)
    while names:
        referred_to |= names
        names = _names_in([schemas[name] for name in names]) - referred_to
    return {name: schemas[name] for name in schemas if name in referred_to}


def _names_in(value: object) -> set[str]:
    return set(_SCHEMA.findall(repr(value)))
