"""The log of requests: each answered one once, bodies of sandboxes alone, and nothing that may say who somebody is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import asyncpg
import pytest

from makeready_local.databases import url_for
from testkit.patience import until

from .system import Answer, Company, System
from .test_personal_data import EVERYTHING, MOVE_IN, NOTE, NOTICE, PHONE, bad_move_ins

EMAIL = EVERYTHING[0]
CONTACTS = ("zq-marker", "Zqmarker")
UNPLACED = "zq-marker-path@tenants.test"


@dataclass
class Caller:
    """A company, and the ids of all requests that were answered to it. provider: a text of its bodies alone."""

    company: Company
    provider: str
    unit_id: int = 0
    ids: list[str] = field(default_factory=list)

    def send(
        self, method: str, path: str, body: object = None, once: str = "", scope: str = "write", **headers: str
    ) -> Answer:
        key = self.company.key_for(scope=scope)
        answer = self.company.system.call(method, path, key, body, {"Idempotency-Key": once, **headers})
        self.ids.append(answer.headers["X-Request-Id"])
        return answer


def hostile_bodies(provider: str) -> Iterator[object]:
    for body in bad_move_ins():
        is_ours = isinstance(body, dict) and body["provider"] == MOVE_IN["provider"]
        yield {**body, "provider": provider} if isinstance(body, dict) and is_ours else body
    whole = json.dumps(MOVE_IN | {"provider": provider})
    yield b"\0" + whole.encode()
    yield whole.replace(provider, provider + "\\u0000").encode()
    yield whole.replace(provider, f"{provider}\xff").encode("latin-1")
    yield whole[:-1].encode() + b', "notes": "' + EMAIL.encode() * 40_000 + b'"}'  # 1 MB
    yield whole[:-1].encode() + b', "notes": "' + EMAIL.encode() * 800 + b'"}'
    yield {"provider": provider, "tenant": MOVE_IN["parties"], "move_in_date": PHONE, EMAIL: [EMAIL, {PHONE: EMAIL}]}


@pytest.fixture(scope="module")
def callers(system: System) -> dict[str, Caller]:
    """Both companies, after the same requests."""
    callers = {}
    for provider, options in (("zq-live", ()), ("zq-sandbox", ("--sandbox",))):
        company = system.company(provider, *options)
        company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
        company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
        system.makeready("wait")
        callers[provider] = caller = Caller(company, provider)
        caller.unit_id = caller.send("GET", "/units").json["data"][0]["entity_id"]
        send_everything(system, caller)
    return callers


def send_everything(system: System, caller: Caller) -> None:
    move_in, notice = f"/units/{caller.unit_id}/move-in", f"/units/{caller.unit_id}/notice"
    for number, body in enumerate(hostile_bodies(caller.provider)):
        assert caller.send("POST", move_in, body, f"refused {number}").status in (400, 422)
    for once in ("moved in", "moved in", EMAIL):
        caller.send("POST", move_in, MOVE_IN | {"provider": caller.provider}, once)
    assert caller.send("POST", notice, NOTICE | {"provider": caller.provider}, "notice").status == 201
    ticket = {"unit_id": caller.unit_id, "title": f"Call {EMAIL}", "description": NOTE, "category": "HVAC"}
    opened = caller.send("POST", "/tickets", ticket, "ticket")
    assert opened.status == 201
    change = {"status": "Completed", "note": NOTE}
    assert caller.send("PATCH", f"/tickets/{opened.json['entity_id']}", change, "done").status == 200
    for path in ("/tickets", "/events", "/turns", "/requests", f"/tickets?cursor={EMAIL}", f"/tickets?{EMAIL}=1"):
        caller.send("GET", path, scope="read")
    for path in (f"/{UNPLACED}", f"/tickets/{EMAIL}", f"/tickets/{EMAIL}/{PHONE}", f"/nothing?q={EMAIL}"):
        assert caller.send("GET", path).status == 404
    assert caller.send("DELETE", "/tickets/17").status == 405
    assert caller.send("POST", "/tickets", ticket, scope="read").status == 403
    pid = system.runtime["processes"]["svc-tickets"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        assert caller.send("GET", "/tickets").status == 500
    finally:
        os.kill(pid, signal.SIGCONT)


async def rows_of(system: System, name: str, *texts: str) -> dict[str, int]:
    """The number of rows of each table of a service's database that have one of the texts, as text or as bytes."""
    secrets = json.loads((system.state / "secrets.json").read_text())
    context = name.removeprefix("svc-")
    url = url_for(system.runtime["database_url"], context, secrets[f"database_{context}"])
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch(
            "SELECT oid::regclass::text AS name FROM pg_class WHERE relkind IN ('r', 'p', 'm') AND NOT relispartition"
            " AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
        )
        patterns = [f"%{text}%" for text in texts] + [f"%{text.encode().hex()}%" for text in texts]
        counts = {}
        for (table,) in tables:
            query = f"SELECT count(*) FROM {table} x WHERE x::text ILIKE ANY ($1)"
            counts[table] = await connection.fetchval(query, patterns)
        return {table: count for table, count in counts.items() if count}
    finally:
        await connection.close()


async def logged(system: System, company_id: int) -> list[asyncpg.Record]:
    """The rows of the log that a company has."""
    secrets = json.loads((system.state / "secrets.json").read_text())
    url = url_for(system.runtime["database_url"], "gateway", secrets["database_gateway"])
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetch("SELECT * FROM request WHERE company_id = $1 ORDER BY id", company_id)
    finally:
        await connection.close()


def ids_of(caller: Caller) -> list[str]:
    return sorted(row["request_id"] for row in asyncio.run(logged(caller.company.system, caller.company.company_id)))


@pytest.mark.parametrize("provider", ["zq-live", "zq-sandbox"])
def test_every_answered_request_is_in_the_log_once(callers: dict[str, Caller], provider: str) -> None:
    caller = callers[provider]
    until(lambda: len(ids_of(caller)) >= len(caller.ids), lambda: f"{len(ids_of(caller))} of {len(caller.ids)}")
    assert ids_of(caller) == sorted(caller.ids)


def test_bodies_are_in_the_log_of_the_sandbox_alone(system: System, callers: dict[str, Caller]) -> None:
    for caller in callers.values():
        rows = asyncio.run(logged(system, caller.company.company_id))
        with_bodies = [row for row in rows if row["request_body"] is not None or row["response_body"] is not None]
        if caller.provider == "zq-live":
            assert not with_bodies
            continue
        # Every answer has a body here; those of the log itself are not kept, nor those of paths without an operation.
        assert len(with_bodies) == len([row for row in rows if row["route"] not in ("", "/requests")]) - 1
        sent = [row["request_body"] for row in rows if row["request_body"] and caller.provider in row["request_body"]]
        assert len(sent) > 30 and all(len(text.encode()) <= 16 * 1024 for text in sent)


def test_a_live_body_is_in_its_records_alone_and_no_contact_is_in_the_gateway(
    system: System, callers: dict[str, Caller]
) -> None:
    names = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks", "console")
    places = {name: asyncio.run(rows_of(system, name, *CONTACTS)) for name in names}
    assert not places["gateway"] and not places["svc-catalog"] and not places["console"]
    assert {"party", "idempotency", "transition"} <= places["svc-occupancy"].keys()
    # The provider is in the name of the company, in the turn's record, and in events about it.
    assert "request" not in asyncio.run(rows_of(system, "gateway", "zq-live"))
    assert "request" in asyncio.run(rows_of(system, "gateway", "zq-sandbox"))


def test_a_request_is_fetched_with_its_bodies_by_who_may(system: System, callers: dict[str, Caller]) -> None:
    live, sandbox = callers["zq-live"], callers["zq-sandbox"]
    key = sandbox.company.key_for()
    page = system.get("/requests", key, route="/units/{unit_id}/move-in", status="201").json
    assert "request_body" not in page["data"][0]
    request_id = page["data"][0]["request_id"]
    fetched = system.get(f"/requests/{request_id}", key).json
    assert {name: fetched[name] for name in page["data"][0]} == page["data"][0]
    body = json.loads(fetched["request_body"])
    assert body["provider"] == "zq-sandbox" and body["parties"][0]["role"] == "leaseholder"
    assert body["parties"][0]["email"] == "[redacted string]"
    answer = json.loads(fetched["response_body"])
    assert answer["entity_type"] == "occupancy" and answer["entity_id"] == fetched["record_id"]
    assert answer["parties"][0]["last_name"] == "[redacted string]"
    for stranger in (live.company.key_for(), sandbox.company.key_for(scope="read")):
        assert system.get(f"/requests/{request_id}", stranger).status == 404
    assert system.get(f"/requests/{request_id}", sandbox.company.key_for(scope="webhook_only")).status == 403
    for unknown in ("0" * 24, "x" * 200, "%00", "17"):
        assert system.get(f"/requests/{unknown}", key).status == 404
    key = live.company.key_for()
    page = system.get("/requests", key, route="/units/{unit_id}/move-in", status="201").json
    fetched = system.get(f"/requests/{page['data'][0]['request_id']}", key).json
    assert (fetched["request_body"], fetched["response_body"]) == (None, None)


def test_a_path_that_does_not_exist_is_logged_without_what_may_be_a_persons(
    system: System, callers: dict[str, Caller]
) -> None:
    rows = asyncio.run(logged(system, callers["zq-live"].company.company_id))
    details = {row["details"].split(",")[0]: row for row in rows if not row["route"]}
    assert len(details) == 3 and all(row["status"] == 404 for row in details.values())
    (refused,) = [row for row in rows if row["status"] == 405]
    assert (refused["route"], refused["code"]) == ("/tickets/{ticket_id}", "method_not_allowed")


def test_a_caller_that_leaves_or_never_ends_its_body_is_logged_once(system: System, callers: dict[str, Caller]) -> None:
    caller = callers["zq-sandbox"]
    company_id, key = caller.company.company_id, caller.company.key_for(10)
    parts = urlsplit(system.base_url)
    head = f"Host: x\r\nUser-Agent: leaver\r\nAuthorization: Bearer {key}\r\n"
    requests = (
        # Leaves at once, while it waits for news, and in the middle of the body.
        f"GET {parts.path}/whoami HTTP/1.1\r\n{head}\r\n",
        f"GET {parts.path}/events?since=2100-01-01T00:00:00Z&wait=20 HTTP/1.1\r\n{head}\r\n",
        f"POST {parts.path}/tickets HTTP/1.1\r\n{head}Idempotency-Key: left\r\nContent-Length: 90\r\n\r\n{{",
    )
    for request in requests:
        with socket.create_connection((parts.hostname or "", parts.port or 0)) as connection:
            connection.sendall(request.encode())

    def left() -> list[tuple[str, int]]:
        rows = asyncio.run(logged(system, company_id))
        return sorted((row["route"], row["status"]) for row in rows if row["details"].split(",").count('"leaver"'))

    until(lambda: len(left()) >= 3, left)
    assert left() == [("/events", 200), ("/tickets", 400), ("/whoami", 200)]
