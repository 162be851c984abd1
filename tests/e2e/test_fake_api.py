"""The fakes of the client libraries refuse what a running system refuses, and answer with the same fields."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest

from makeready_client import Makeready, models
from makeready_client.testing import FakeApi
from testkit.typescript import node

from .system import System
from .writes import ALL, NOBODYS, READINGS, SUBSCRIPTION, House, Write

ROOT = Path(__file__).resolve().parents[2]
# Of the fakes' keys.
SCOPES: dict[str, Literal["read", "write", "webhook_only"]] = {
    "read": "read",
    "write": "write",
    "webhook_only": "webhook_only",
}
COMPARED_HEADERS = ("Service-Error-Param", "Allow", "WWW-Authenticate", "X-Idempotent-Replay")
# Refused by rules between records or rows, and of a photo's address; the fakes do not keep these.
OF_RECORDS = ({"predecessor_transition_id": NOBODYS}, {"photo_url": "ftp://photos.test/1.jpg"}, READINGS.refused[1])


# What else a body may be wrong with.
OTHERS: dict[str, tuple[dict[str, Any], ...]] = {
    "PATCH /tickets/{ticket_id}": (
        {"status": "Completed"}, {"status": "Completed", "note": "too short"}, {"status": "Open", "note": "x"},
        {"status": "Cancelled"}, {"status": "Cancelled", "cancellation_reason_code": "see_notes"},
        {"status": "Cancelled", "cancellation_reason_code": "see_notes", "cancellation_notes": "too short"},
        {"status": "Cancelled", "cancellation_reason_code": "duplicate_ticket", "cancellation_notes": "x"},
        {"status": "Cancelled", "cancellation_reason_code": "lost"}, {"status": "On Hold", "cancellation_notes": "x"},
        {"status": "Cancelled", "cancellation_reason_code": "duplicate_ticket"}, {"status": "In Progress"},
    ),
    "POST /webhooks": (
        *({"destination_url": f"{url}/"} for url in (
            "http://a.test", "https://a.test:8443", "https://127.0.0.1", "https://localhost", "https://[::1]", "x"
        )),
        {"events": ["no.such"]},
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A request. scope: of its key; empty for none."""

    name: str
    method: str
    path: str
    scope: str = "write"
    body: str | None = None
    key: str | None = None
    group: str = "reads"
    """Calls of one group have one API key of each scope."""


@dataclass(frozen=True)
class Outcome:
    """What is compared of an answer: a refusal's status, code and headers; a success's status, headers and fields."""

    status: int
    code: str
    headers: dict[str, str]
    fields: list[str]


def outcome(response: httpx.Response) -> Outcome:
    body = {}
    if response.headers.get("Content-Type", "").startswith("application/json"):
        body = response.json()
    code = body["error"]["code"] if response.is_error else ""
    headers = {name: response.headers[name] for name in COMPARED_HEADERS if name in response.headers}
    return Outcome(response.status_code, code, headers, sorted(body))


def reads() -> Iterator[Call]:
    for noun in ("tickets", "units", "assets", "turns", "meters", "vendors", "staff", "webhooks"):
        for query in ("", "?limit=1", "?limit=0", "?limit=x", "?cursor=nonsense", "?nonsense=1", "?limit=1&limit=2"):
            yield Call(f"GET {noun}{query}", "GET", f"/{noun}{query}")
    for query in (
        "status=Open", "status=Lost", "status=", "property_id=1", "property_id=x", "property_id=", "ticket_number=1",
        "updated_since=2026-01-01T00:00:00", "updated_since=2026-01-01T00:00:00Z", "ticket_number=1&property_id=1",
    ):  # fmt: skip
        yield Call(f"tickets by {query}", "GET", f"/tickets?{query}")
    for path in (
        "/whoami", "/whoami?a=1", "/nowhere", "/units/x", f"/units/{NOBODYS}", f"/meters/{NOBODYS}/readings",
        "/changes/units", "/changes/units?wait=x", "/changes/units?wait=26", "/changes/units?cursor=x",
        "/events?limit=1", "/events?event=no.such", "/events?entity_id=1", f"/webhooks/{NOBODYS}/filter",
        "/requests?limit=1", f"/webhooks/{NOBODYS}/deliveries", f"/webhooks/{NOBODYS}/deliveries/nonsense",
    ):  # fmt: skip
        yield Call(f"GET {path}", "GET", path)
    for query in ("", "?external_id=P1", "?external_id=", "?external_id=P1&kind=unit", "?external_id=P1&kind=cat"):
        yield Call(f"search {query}", "GET", f"/search{query}")
    yield Call("another verb", "DELETE", "/tickets")
    yield Call("a verb of another path", "POST", "/units/1")
    yield Call("a webhook that is not there", "DELETE", f"/webhooks/{NOBODYS}")
    for scope, path in itertools.product(("", "read", "webhook_only"), ("/whoami", "/units", "/webhooks", "/events")):
        yield Call(f"{path} with the scope {scope}", "GET", path, scope)


def writes(house: House, write: Write) -> Iterator[Call]:
    target = write.target(house)
    keys = (f"{write.name} {number}" for number in itertools.count())
    numbers = itertools.count()

    def call(name: str, body: object, **more: Any) -> Call:
        raw = body if isinstance(body, str) else json.dumps(body)
        fields = {"key": next(keys), "path": target.path, "group": write.name} | more
        return Call(f"{write.name}: {name} {next(numbers)}", write.method, body=raw, **fields)

    for change in (write.malformed, write.refused[1]):
        if change not in OF_RECORDS:
            yield call(f"with {change}", target.body | change)
    for name in target.body:
        if name != "lease_end_date":  # a unit is let once, and this one may be left out
            yield call(f"without {name}", {key: value for key, value in target.body.items() if key != name})
        yield call(f"{name} of another type", target.body | {name: {}})
    texts = [name for name, value in target.body.items() if isinstance(value, str)]
    for name in texts:
        yield call(f"{name} blank", target.body | {name: " "})
        yield call(f"{name} long", target.body | {name: "x" * 20_001})
    yield call("an unknown key", target.body | {"nonsense": 1})
    for raw in ("", "[]", "{"):
        yield call(f"the body {raw}", raw)
    yield call("no key", target.body, key=None)
    yield call("a long key", target.body, key="x" * 65)
    yield call("a query", target.body, path=f"{target.path}?a=1")
    for scope in ("read", "webhook_only", ""):
        if scope != "webhook_only" or write.name != "POST /webhooks":
            yield call(f"the scope {scope}", target.body, scope=scope)
    if write.of_a_record:
        yield call("an unknown record", target.body, path=write.path_of(NOBODYS))
    for change in OTHERS.get(write.name, ()):
        yield call(f"with {change}", target.body | change if write is SUBSCRIPTION else change)
    first = call("as it should be", target.body)
    yield first
    yield replace(first, name=f"{write.name} again")
    changed = target.body | (write.others[0] if write.others else {})
    if changed != target.body:
        yield call("another body with the key", changed, key=first.key)


@pytest.fixture(scope="module")
def house(system: System) -> House:
    house = House(system, system.company("Fakes"))
    house.fill()
    place = {"external_id": "P1", "property": "P1"}
    house.company.import_rows(
        "assets", [{**place, "external_id": "A1", "name": "Boiler", "category": "HVAC", "make": "X", "model": "Y"}]
    )
    house.company.import_rows("vendors", [{"external_id": "V1", "name": "Pipes & Sons"}])
    house.company.import_rows("meters", [{**place, "external_id": "M1", "name": "Main", "utility_type": "water"}])
    return house


def test_the_fakes_answer_as_the_system_does(house: House, tmp_path: Path) -> None:
    of_live_companies = [write for write in ALL if "/sandbox/" not in write.name]
    calls = [*reads(), *(call for write in of_live_companies for call in writes(house, write))]
    house.system.makeready("wait")
    snapshots = Makeready(house.key(), base_url=house.system.base_url).snapshots
    records = [json.loads(line) for kind in models.KINDS for line in getattr(snapshots, kind)().lines()]
    records += list(house.company.walk("/webhooks"))
    pairs = {(call.group, call.scope) for call in calls if call.scope}
    keys = {pair: house.another_key(pair[1]) for pair in pairs}
    expected = {call.name: outcome(answered(house.system, call, keys)) for call in calls}
    assert len(expected) == len(calls) > 250
    for language, responses in {
        "Python": in_python(calls, records),
        "TypeScript": in_typescript(calls, records, tmp_path),
    }.items():
        faked = {call.name: outcome(response) for call, response in zip(calls, responses, strict=True)}
        differing = [(name, faked[name], answer) for name, answer in expected.items() if faked[name] != answer]
        assert (language, differing) == (language, [])


def in_python(calls: Sequence[Call], records: Sequence[dict[str, Any]]) -> list[httpx.Response]:
    """The answers of the Python client's fake."""
    api = FakeApi(keys=SCOPES)
    for record in records:
        api.add(record)
    with httpx.Client(transport=api) as client:
        return [
            client.request(call.method, api.base_url + call.path, headers=headers(call), content=call.body)
            for call in calls
        ]


def in_typescript(calls: Sequence[Call], records: Sequence[dict[str, Any]], folder: Path) -> list[httpx.Response]:
    """The answers of the TypeScript client's fake."""
    sent = [{"method": call.method, "path": call.path, "headers": headers(call), "body": call.body} for call in calls]
    question = json.dumps({"keys": SCOPES, "records": records, "calls": sent})
    done = node(folder, ROOT / "sdk" / "typescript" / "tests" / "fake.ts", stdin=question)
    assert done.returncode == 0, done.stderr
    return [httpx.Response(status, headers=more, text=text) for status, more, text in json.loads(done.stdout)]


def headers(call: Call, key: str | None = None) -> dict[str, str]:
    authorization = {"Authorization": f"Bearer {key or call.scope}"} if call.scope else {}
    return authorization | ({"Idempotency-Key": call.key} if call.key else {}) | {"Content-Type": "application/json"}


def answered(system: System, call: Call, keys: Mapping[tuple[str, str], str]) -> httpx.Response:
    key = keys.get((call.group, call.scope))
    return httpx.request(
        call.method, system.base_url + call.path, headers=headers(call, key), content=call.body, timeout=60
    )
