"""The Python client against a running system, over HTTP alone."""

from __future__ import annotations

import http.server
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from makeready_client import AsyncMakeready, Makeready, Mirror, errors, models, webhooks

from .system import Company, System

# `make soak-sdk` walks 10,000.
TICKETS = int(os.environ.get("MAKEREADY_SDK_TICKETS", "300"))
ARRIVES_SECONDS = 20  # ten times what an event may take to a listener
PROGRAM = Path(sys.executable).with_name("makeready-client")


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    made = system.company("Client")
    made.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    made.import_rows("units", [{"external_id": f"U{n}", "property": "P1", "name": f"Unit {n}"} for n in range(3)])
    rows = [{"external_id": f"T{n}", "property": "P1", "title": f"Tap {n}", "category": "Leak"} for n in range(TICKETS)]
    made.import_rows("tickets", rows)
    return made


@pytest.fixture
def key(company: Company) -> str:
    """A fresh key of scope write."""
    return company.system.mint(company.company_id, "write", company.email)


@pytest.fixture
def client(company: Company, key: str) -> Iterator[Makeready]:
    with Makeready(key, base_url=company.system.base_url) as made:
        yield made


def run(company: Company, key: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line to its end."""
    return subprocess.run(
        [str(PROGRAM), *words], env=environment(company, key), capture_output=True, text=True, timeout=120, check=False
    )


def environment(company: Company, key: str) -> dict[str, str]:
    return os.environ | {"MAKEREADY_API_KEY": key, "MAKEREADY_BASE_URL": company.system.base_url}


def test_a_walk_has_every_record_once_and_no_refusal(client: Makeready, company: Company) -> None:
    walked = [one.entity_id for one in client.tickets.list(limit=50)]
    assert len(walked) == len(set(walked)) == TICKETS
    assert walked == sorted(walked)


def test_a_write_that_comes_again_has_one_effect(client: Makeready) -> None:
    (unit, *_) = client.units.list()
    first = client.tickets.create(unit_id=unit.entity_id, title="Tap", category="Leak", idempotency_key="one")
    again = client.tickets.create(unit_id=unit.entity_id, title="Tap", category="Leak", idempotency_key="one")
    assert (first.replayed, again.replayed, again.entity_id) == (False, True, first.entity_id)
    assert first.request_id and first.request_id != again.request_id
    with pytest.raises(errors.IdempotencyMismatch) as refused:
        client.tickets.create(unit_id=unit.entity_id, title="Sink", category="Leak", idempotency_key="one")
    assert (refused.value.status, refused.value.code) == (409, "idempotency_mismatch")
    with pytest.raises(errors.NotFound):
        client.tickets.get(2**40)


async def test_both_clients_have_the_same_answers(client: Makeready, company: Company, key: str) -> None:
    async with AsyncMakeready(key, base_url=company.system.base_url) as other:
        assert (await other.whoami()).key == client.whoami().key
        assert [one async for one in other.units.list()] == list(client.units.list())
        assert [line async for line in other.snapshots.units().lines()] == list(client.snapshots.units().lines())
        changes = await other.changes.units().page()
        assert [one.record for one in changes.data] == list(client.snapshots.units())


def test_followed_events_go_on_where_they_were_left(client: Makeready) -> None:
    (unit, *_) = client.units.list()
    ids = [client.tickets.create(unit_id=unit.entity_id, title="Tap", category="Leak").entity_id for _ in range(3)]
    seen: list[int] = []
    cursor: str | None = None
    while seen[-3:] != ids:
        events = client.events.follow(cursor)
        for event in events:
            assert isinstance(event, models.TicketCreatedEvent)
            assert json.loads(event.raw)["event_id"] == event.event_id
            if event.data.entity_id not in seen:  # a page that was not handed out whole comes again
                seen.append(event.data.entity_id)
                break
        cursor = events.cursor
    assert len(seen) == len(set(seen))


class Application(http.server.ThreadingHTTPServer):
    """A server of an integrator, with the library's own judgement of deliveries."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Delivery)
        self.secret = ""
        self.arrived: list[tuple[float, models.Event]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Delivery(http.server.BaseHTTPRequestHandler):
    server: Application

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        event = webhooks.verify(body, self.headers["Service-Signature"], self.server.secret)
        self.server.arrived.append((time.monotonic(), event))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def application() -> Iterator[Application]:
    made = Application()
    yield made
    made.shutdown()
    made.server_close()


def test_an_event_arrives_verified_at_a_server_on_this_machine(
    client: Makeready, company: Company, key: str, application: Application
) -> None:
    (unit, *_) = client.units.list()
    command = [str(PROGRAM), "listen", "--forward-to", f"http://127.0.0.1:{application.server_port}/hooks"]
    listening = subprocess.Popen(command, env=environment(company, key), stdout=subprocess.PIPE, text=True)
    try:
        assert listening.stdout is not None
        found = re.search(r"signing secret: (whsec_\S+)", listening.stdout.readline())
        assert found
        application.secret = found[1]
        began = time.monotonic()
        ticket = client.tickets.create(unit_id=unit.entity_id, title="Tap", category="Leak")
        line = listening.stdout.readline()
        ((arrived, event),) = application.arrived
        assert isinstance(event, models.TicketCreatedEvent) and event.data == ticket
        assert "ticket.created" in line and "204" in line
        assert arrived - began < ARRIVES_SECONDS
        listening.send_signal(signal.SIGINT)
        rest, _ = listening.communicate(timeout=30)
        assert re.search(r"--from \S+", rest) and listening.returncode == 0
    finally:
        listening.kill()
        listening.wait()


def test_a_copy_is_brought_in_step_once(client: Makeready, company: Company, key: str, tmp_path: Path) -> None:
    (unit, *_) = client.units.list()
    first = run(company, key, "sync", str(tmp_path), "--jsonl")
    assert first.returncode == 0, first.stderr
    came = {kind: int(count) for kind, count in re.findall(r"^(\w+) +(\d+) came", first.stdout, re.MULTILINE)}
    assert came["tickets"] >= TICKETS and came["units"] == 3 and set(came) == set(models.KINDS)
    second = run(company, key, "sync", str(tmp_path), "--sqlite")
    assert set(re.findall(r"(\d+) came", second.stdout)) == {"0"}, second.stdout
    client.tickets.create(unit_id=unit.entity_id, title="Tap", category="Leak")
    third = run(company, key, "sync", str(tmp_path), "--jsonl")
    assert re.findall(r"^(\w+) +(?!0 )\d+ came", third.stdout, re.MULTILINE) == ["tickets"]
    with sqlite3.connect(tmp_path / "makeready.sqlite") as copy:
        stored = [record.encode() for (record,) in copy.execute("SELECT record FROM tickets ORDER BY entity_id")]
    copy.close()
    assert stored == list(client.snapshots.tickets().lines())
    assert (tmp_path / "tickets.jsonl").read_bytes() == b"".join(line + b"\n" for line in stored)
    other = company.system.company("Other")
    assert run(other, other.keys["read"], "sync", str(tmp_path), "--sqlite").returncode == 2


def test_a_mirror_begins_again_where_its_cursor_has_expired(client: Makeready) -> None:
    batches = []

    def store(batch: object) -> None:
        batches.append((batch.is_whole, len(list(batch.changes))))  # type: ignore[attr-defined]

    mirror = Mirror(client, store, kinds=["units"])
    assert mirror.run() == {"units": 3} and batches[0] == (True, 3)
    assert mirror.run() == {"units": 0}


def test_the_command_line_says_what_is_wrong(company: Company, key: str) -> None:
    done = run(company, key, "whoami")
    assert done.returncode == 0 and "scope write" in done.stdout and key not in done.stdout
    assert run(company, "mk_wrong", "whoami").returncode == 1
    assert run(company, key, "listen", "--forward-to", "http://localhost:1/", "--events", "no.such").returncode == 2
    unreached = run(company, key, "--base-url", "http://127.0.0.1:1/api/v1", "whoami")
    assert unreached.returncode == 3 and unreached.stderr.count("\n") == 1
