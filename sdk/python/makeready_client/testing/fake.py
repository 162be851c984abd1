"""An API in this process, which plays the contract's examples."""

from __future__ import annotations

import datetime
import re
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl

import httpx
import msgspec

from makeready_client.answers import Model
from makeready_client.testing.bodies import Refused, checked, instant, invalid
from makeready_client.testing.contract import Schema, contract, example

PREFIX = "/api/v1"
Fields = dict[str, Any]


@dataclass(slots=True)
class _Collection:
    """Records that have a list, by id, and the ids in the order of their last changes."""

    records: dict[Any, Fields] = field(default_factory=dict)
    changes: list[Any] = field(default_factory=list)

    def put(self, record_id: Any, record: Fields) -> None:
        self.records[record_id] = record
        self.changes.append(record_id)


@dataclass(slots=True)
class _Call:
    """A request that is answered."""

    operation: Schema
    ids: dict[str, str]
    query: dict[str, str]
    request: httpx.Request
    body: Fields = field(default_factory=dict)


class FakeApi(httpx.MockTransport):
    """A transport for `Makeready` and `AsyncMakeready` that answers as the API does, without a network.

    It has one record of each kind at first, the contract's example. It refuses what the API refuses by the contract:
    other paths, verbs, keys, scopes, query keys, values and bodies, a write without `Idempotency-Key`, ids that it does
    not have. It does not keep the rules between records, such as that a unit is occupied: let `refuse_next` answer
    those. It counts no rate limit, and answers a `wait` at once.

    keys: the scope of each key; any key has the scope `write` if left out.
    """

    def __init__(self, keys: Mapping[str, Literal["read", "write", "webhook_only"]] | None = None) -> None:
        super().__init__(self._answer)
        self.base_url = f"https://makeready.test{PREFIX}"
        self.requests: list[httpx.Request] = []
        """What was asked, in its order."""
        self._keys = keys
        self._lock = threading.Lock()
        self._refusals: list[tuple[str, int | None, str | None]] = []
        self._kept: dict[tuple[str, str], tuple[bytes, httpx.Response]] = {}
        self._collections = {noun: _Collection() for noun in contract()["collections"]} | {"replays": _Collection()}
        self._events = [example(name) for name in contract()["events"]]
        for noun, model in contract()["collections"].items():
            self._put(noun, example(model))
        self._put("replays", example("WebhookReplay"))

    def add(self, record: Model | Mapping[str, Any]) -> None:
        """Adds a record or an event, or replaces the one with its id. Raises ValueError for what has no list."""
        fields: Fields = record.to_dict() if isinstance(record, Model) else dict(record)
        with self._lock:
            if "event_id" in fields and "occurred_at" in fields and "data" in fields:
                self._events.append(fields)
                return
            types = {example(model).get("entity_type"): noun for noun, model in contract()["collections"].items()}
            if fields.get("entity_type") not in types:
                raise ValueError(f"no list has records of the type {fields.get('entity_type')}")
            self._put(types[fields["entity_type"]], fields)

    def remove(self, record: Model) -> None:
        """Removes a record: its feed of changes says then that it is gone."""
        with self._lock:
            for collection in self._collections.values():
                for record_id, fields in list(collection.records.items()):
                    if fields.get("entity_type") == getattr(record, "entity_type", "") and fields.get(
                        "entity_id"
                    ) == getattr(record, "entity_id", 0):
                        del collection.records[record_id]
                        collection.changes.append(record_id)

    def refuse_next(self, code: str, *, status: int | None = None, message: str | None = None) -> None:
        """Refuses the next request with a code of the contract, whatever it is. Raises ValueError for another code."""
        if code not in contract()["codes"]:
            raise ValueError(f"no such code: {code}; there are {', '.join(contract()['codes'])}")
        self._refusals.append((code, status, message))

    def _put(self, noun: str, record: Fields) -> None:
        self._collections[noun].put(record["event_id"] if noun == "deliveries" else record["entity_id"], record)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            self.requests.append(request)
            try:
                response = self._answered(request)
            except Refused as refused:
                error = {"error": {"code": refused.code, "message": refused.message}}
                response = httpx.Response(refused.status, json=error, headers=refused.headers)
            response.headers["Cache-Control"] = "no-store"
            response.headers["X-Request-Id"] = uuid.uuid4().hex[:24]
            return response

    def _answered(self, request: httpx.Request) -> httpx.Response:
        if self._refusals:
            raise _of_code(*self._refusals.pop(0))
        operation, ids = _operation(request)
        key = self._authorized(request, operation)
        call = _Call(operation, ids, _query(request, operation), request)
        if operation["kind"] != "write":
            return self._read(call)
        idempotency_key = request.headers.get("Idempotency-Key", "")
        if not idempotency_key:
            raise Refused(400, "idempotency_key_required", operation["key_sentence"])
        if len(idempotency_key) > contract()["limits"]["key"]:
            raise invalid(f"Idempotency-Key must be at most {contract()['limits']['key']} characters.")
        call.body = checked(contract()["bodies"][operation["body"]], request.content)
        content = f"{request.method} {request.url.path} ".encode() + msgspec.json.encode(call.body, order="sorted")
        if kept := self._kept.get((key, idempotency_key)):
            if kept[0] != content:
                raise _of_code("idempotency_mismatch")
            replayed = {name: value for name, value in kept[1].json().items() if name != "secret"}
            return httpx.Response(kept[1].status_code, json=replayed, headers={"X-Idempotent-Replay": "1"})
        response = httpx.Response(operation["status"], json=self._written(call))
        self._kept[key, idempotency_key] = content, response
        return response

    def _authorized(self, request: httpx.Request, operation: Schema) -> str:
        """The key of a request that may be answered; empty where none is needed."""
        if operation["scope"] == "public":
            return ""
        authorization: str = request.headers.get("Authorization", "")
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not key or (self._keys is not None and key not in self._keys):
            raise _of_code("unauthorized", headers={"WWW-Authenticate": "Bearer"})
        if self._scope(key) not in contract()["scopes"][operation["scope"]]:
            message = f"This key's scope does not cover this operation; use a key with the scope {operation['scope']}."
            raise Refused(403, "insufficient_scope", message)
        return key

    def _scope(self, key: str) -> str:
        scope: str = "write" if self._keys is None else self._keys[key]
        return scope

    def _read(self, call: _Call) -> httpx.Response:
        kind, path = call.operation["kind"], call.operation["path"]
        last = path.rpartition("/")[2]
        if kind == "snapshot":
            return self._snapshot(call, last)
        if kind == "delete":
            collection = self._collections[path.split("/")[1]]
            if collection.records.pop(_number(*call.ids.values()), None) is None:
                raise _not_found(path)
            return httpx.Response(204)
        if kind == "list":
            self._check_parents(call)
            answer = self._page(call, self._of_list(call))
        elif kind == "feed":
            answer = self._feed(call, last)
        elif kind == "search":
            answer = {"data": list(self._with_external_id(**call.query))}
        else:
            answer = self._own(call) if kind == "own" else self._fetched(call)
        return httpx.Response(200, json=answer)

    def _with_external_id(self, external_id: str, kind: str | None = None) -> Iterator[Fields]:
        """What a search finds."""
        for noun in self._collections:
            for _, record in sorted(self._collections[noun].records.items()):
                if record.get("external_id") == external_id and kind in (None, record["entity_type"]):
                    yield {name: record[name] for name in example("FoundRecord")}

    def _own(self, call: _Call) -> Fields:
        if call.operation["path"] != "/whoami":
            return {"openapi": "3.1.0", "info": {"title": "A fake", "version": contract()["version"]}, "paths": {}}
        whoami = example("Whoami")
        whoami["key"]["scope"] = self._scope(call.request.headers["Authorization"].partition(" ")[2])
        return whoami

    def _fetched(self, call: _Call) -> Fields:
        path, answer = call.operation["path"], call.operation["answer"]
        *_, noun, last = path.split("/")
        if not last.startswith("{"):  # a part of the record, such as its filter
            self._check_parents(call)
            return example(answer) | ({"entity_id": _number(*call.ids.values())} if call.ids else {})
        self._check_parents(call, but_last=True)
        *_, text = call.ids.values()
        record = self._collections[noun].records.get(text if last == "{event_id}" else _number(text))
        if record is None:
            raise _not_found(path)
        return record if contract()["collections"].get(noun) == answer else example(answer) | record

    def _check_parents(self, call: _Call, *, but_last: bool = False) -> None:
        """Refuses ids of the path that no record has."""
        segments = call.operation["path"].split("/")
        names = list(call.ids)
        for name in names[:-1] if but_last else names:
            noun = segments[segments.index(f"{{{name}}}") - 1]
            if noun in self._collections and _number(call.ids[name]) not in self._collections[noun].records:
                raise _not_found(f"/{noun}/{{{name}}}")

    def _of_list(self, call: _Call) -> list[Fields]:
        collection = self._collections[call.operation["path"].rpartition("/")[2]]
        filters = call.query | {name: value for name, value in call.ids.items() if name != "sub_id"}
        return [
            record
            for _, record in sorted(collection.records.items())
            if all(_passes(record, name, text) for name, text in filters.items())
        ]

    def _page(self, call: _Call, records: list[Fields]) -> Fields:
        limit = _limit(call)
        begin = _position(call, records)
        is_last = begin + limit >= len(records)
        return {
            "data": records[begin : begin + limit],
            "next_cursor": None if is_last else f"at.{begin + limit}",
            "limit": limit,
        }

    def _feed(self, call: _Call, noun: str) -> Fields:
        if noun == "events":
            items = [event for event in self._events if _names(event, call.query)]
        elif noun in self._collections:
            items = self._changed(call, noun)
        else:
            items = [example(call.operation["answer"])]
        page = self._page(call, items)
        end = _position(call, items) + len(page["data"])
        page |= {"resume_cursor": f"at.{end}"}
        if noun == "events":
            page["positions"] = list(range(end - len(page["data"]) + 1, end + 1))
        return page

    def _changed(self, call: _Call, noun: str) -> list[Fields]:
        """Each change; an earlier one of a record shows its latest state, as a page of the API does."""
        collection = self._collections[noun]
        return [
            example(call.operation["answer"])
            | {"entity_id": record_id, "gone": record_id not in collection.records}
            | {"record": collection.records.get(record_id)}
            for record_id in collection.changes
        ]

    def _snapshot(self, call: _Call, noun: str) -> httpx.Response:
        collection = self._collections[noun]
        begin = int(call.query.get("after_id", 0))
        lines = [record for record_id, record in sorted(collection.records.items()) if record_id > begin]
        body = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        headers = {"Content-Type": "application/x-ndjson"}
        if "after_id" not in call.query:
            headers["Service-Resume-Cursor"] = f"at.{len(collection.changes)}"
        return httpx.Response(200, content=body, headers=headers)

    def _written(self, call: _Call) -> Fields:
        """The answer of a write: the contract's example with what the body says."""
        operation, body = call.operation, call.body
        self._check_parents(call)
        self._check_named(body)
        noun = operation["path"].split("/")[1]
        answer = operation["answer"]
        is_stored = contract()["collections"].get(noun) == answer or answer == "NewSubscription"
        number = _number(*call.ids.values()) if call.ids else 0
        record = self._collections[noun].records[number].copy() if is_stored and number else example(answer)
        differing = operation["differing"]
        if all(body.get(name, value) == value for name, value in differing.items()) or not number:
            record |= differing
        record |= {name: value for name, value in body.items() if name in record}
        self._refer(record, body, call.ids)
        _stamp(record, body, contract()["bodies"][operation["body"]])
        if is_stored and not number:
            record["entity_id"] = max(self._collections[noun].records, default=0) + 1
        elif answer == "WebhookFilter":
            record |= {"entity_id": number} | {
                name: body.get(name) for name in ("property_ids", "categories", "priorities")
            }
        if "updated_at" in record:
            record["updated_at"] = _now()
        if is_stored:
            self._put(noun, {name: value for name, value in record.items() if name != "secret"})
        return record

    def _check_named(self, body: Fields) -> None:
        """Refuses ids of the body that no record has."""
        for name, value in body.items():
            noun = f"{name.removesuffix('_id')}s"
            if name.endswith("_id") and noun in self._collections and value not in self._collections[noun].records:
                raise _not_found(f"/{noun}/{{{name}}}")

    def _refer(self, record: Fields, body: Fields, ids: Mapping[str, str]) -> None:
        """Lets the record name the records whose ids the body and the path have."""
        for name, value in {**body, **{name: _number(text) for name, text in ids.items()}}.items():
            referred, noun = name.removesuffix("_id"), f"{name.removesuffix('_id')}s"
            if name in record:
                record[name] = value
            elif referred in record and noun in self._collections:
                other = self._collections[noun].records[value]
                record[referred] = {"id": value, "name": other["name"], "external_id": other["external_id"]}
                if "property" in record and "property" in other:
                    record["property"] = other["property"]


def _operation(request: httpx.Request) -> tuple[Schema, dict[str, str]]:
    path = request.url.path
    matching: dict[str, Schema] = {}
    ids: dict[str, str] = {}
    if path.startswith(f"{PREFIX}/"):
        for operation in contract()["operations"]:
            pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(operation["path"]))
            if match := re.fullmatch(pattern, path.removeprefix(PREFIX)):
                matching[operation["method"]] = operation
                ids = match.groupdict()
    if not matching:
        raise Refused(404, "not_found", "This path does not exist; the reference lists those that do.")
    if request.method not in matching:
        allow = ", ".join(matching)
        raise Refused(405, "method_not_allowed", f"This path supports {allow}.", Allow=allow)
    return matching[request.method], ids


def _query(request: httpx.Request, operation: Schema) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, text in parse_qsl(request.url.query.decode(), keep_blank_values=True):
        if name not in operation["query"]:
            names = ", ".join(operation["query"])
            raise invalid(
                f"The query may hold these keys only: {names}." if names else "There are no query parameters."
            )
        if name in values:
            raise invalid(f"{name} is given more than once; give it once.", name)
        values[name] = text
    if "limit" in values and not re.fullmatch("0*[1-9][0-9]*", values["limit"]):
        raise _of_code("invalid_limit")
    wait = values.get("wait", "0")
    if not wait.isdecimal() or int(wait) > contract()["limits"]["wait"]:
        raise invalid(f"wait must be a whole number of seconds from 0 to {contract()['limits']['wait']}.", "wait", 422)
    for name in operation["required"]:
        if name not in values:
            raise invalid(f"{name} is required.", name)
    for name, about in operation["filters"].items():
        if name in values:
            _check_filter(name, about, values)
    return values


def _check_filter(name: str, about: Schema, values: Mapping[str, str]) -> None:
    text = values[name]
    if about["type"] == "enum" and text not in about["values"]:
        raise invalid(f"{name} must be one of: {', '.join(about['values'])}.", name, 422)
    if not text:
        raise invalid(f"{name} is empty; give it a value or leave it out.", name)
    if about["type"] == "id" and not re.fullmatch("-?[0-9]+", text):
        raise invalid(f"{name} must be an integer.", name)
    if about["type"] == "boolean" and text not in ("true", "false"):
        raise invalid(f"{name} must be true or false.", name)
    if about["type"] == "instant" and instant(text) is None:
        raise invalid(f"{name} must be a date-time in ISO 8601 with a UTC offset.", name)
    if "requires" in about and about["requires"] not in values:
        raise invalid(f"{name} needs {about['requires']} beside it; give both.", name)


def _passes(record: Fields, name: str, text: str) -> bool:
    """Whether a record is one of those that a filter asks for."""
    if name in ("limit", "cursor"):
        return True
    if name in ("updated_since", "since"):
        at = instant(record.get("updated_at") or record.get("occurred_at"))
        since = instant(text)
        return at is None or since is None or at >= since
    referred = record.get(name.removesuffix("_id"))
    value = referred["id"] if isinstance(referred, dict) and name.endswith("_id") else record.get(name)
    if name == "unit_id" and value is None and isinstance(record.get("location"), dict):
        value = record["location"].get("id")
    return str(value) == text


def _names(event: Fields, query: Mapping[str, str]) -> bool:
    data = event["data"]
    return all(
        str({"event": event["event"], "entity_type": data.get("entity_type"), "entity_id": data.get("entity_id")}[name])
        == text
        for name, text in query.items()
        if name in ("event", "entity_type", "entity_id")
    )


def _limit(call: _Call) -> int:
    limits = contract()["limits"]
    return min(int(call.query.get("limit", limits["page"])), int(limits["page_max"]))


def _position(call: _Call, records: list[Fields]) -> int:
    """Where a page begins: cursors are `at.NUMBER` here."""
    match = re.fullmatch(r"at\.([0-9]+)", call.query.get("cursor", "at.0"))
    if not match:
        raise _of_code("invalid_cursor")
    return min(int(match[1]), len(records))


def _stamp(record: Fields, body: Fields, schema: Schema) -> None:
    """Sets and clears what belongs to a value of the body."""
    for name, value in schema.get("stamps", {}).items():
        record[name] = _now() if body.get("status") == value else None
    for rule in schema.get("between", ()):
        if rule["field"] in record and body.get(rule["with"]) != rule["value"]:
            record[rule["field"]] = None


def _number(*texts: str) -> int:
    """The id in the first segment of a path that has one; 0 for what is none."""
    return int(texts[0]) if texts and texts[0].isdecimal() else 0


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _not_found(path: str) -> Refused:
    *_, noun, _ = path.split("/")
    singular = {"properties": "property", "webhooks": "webhook subscription", "deliveries": "delivery"}.get(
        noun, noun[:-1]
    )
    return Refused(404, "not_found", f"No {singular} with that id is visible to this key; check the id and the key.")


def _of_code(
    code: str, status: int | None = None, message: str | None = None, headers: Mapping[str, str] | None = None
) -> Refused:
    """The refusal of a code, with its example's sentence."""
    about = contract()["codes"][code]
    more = dict(headers or {}) | ({"Retry-After": "1"} if code == "rate_limited" else {})
    return Refused(status or about["statuses"][0], code, message or about["message"], **more)
