"""Personal data appear only where they must: e-mail address and phone number in the database alone, names in the answer
to the move-in, notes in no answer at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from makeready_local.databases import url_for
from testkit.patience import until

from .console_browser import PASSWORD, Browser
from .receiver import Receiver
from .system import Answer, Company, System

PATH = "/personal"
EMAIL, PHONE = "zq-marker-email@tenants.test", "zq-marker-phone"
FIRST_NAME, LAST_NAME = "Zqmarkerfirst", "Zqmarkerlast"
NOTE, NOTES, REASON, DESTINATION = (
    f"zq-marker-{name} with some more words" for name in ("note", "notes", "reason", "destination")
)
MARKER = b"zq-marker"
ANA = {"first_name": FIRST_NAME, "last_name": LAST_NAME, "role": "leaseholder", "email": EMAIL, "phone": PHONE}
MOVE_IN = {"move_in_date": "2026-03-01", "lease_start_date": "2026-03-01", "provider": "feed", "parties": [ANA]}
NOTICE = {
    "move_out_date": "2099-09-30",  # a sweep would vacate a unit whose day has come
    "provider": "feed",
    "notes": NOTES,
    "ntv_reason_code": REASON,
    "departure_destination_code": DESTINATION,
}


@dataclass
class Recorded:
    """A company whose records contain all markers, and every answer that it got."""

    system: System
    company: Company
    unit_id: int
    ticket_id: int
    moved_in: list[Answer] = field(default_factory=list)
    others: list[Answer] = field(default_factory=list)

    def send(self, method: str, path: str, body: object, once: str) -> Answer:
        headers = {"Idempotency-Key": once}
        return self.system.call(method, path, self.company.keys["write"], body, headers)

    def move_in(self, body: object, once: str) -> Answer:
        return self.send("POST", f"/units/{self.unit_id}/move-in", body, once)

    def notice(self, body: object, once: str) -> Answer:
        return self.send("POST", f"/units/{self.unit_id}/notice", body, once)

    def change(self, body: object, once: str) -> Answer:
        return self.send("PATCH", f"/tickets/{self.ticket_id}", body, once)


def bad_move_ins() -> Iterator[object]:
    """Bodies with markers, each refused for another reason."""
    for changed in (
        {"email": EMAIL * 10}, {"phone": PHONE * 10}, {"first_name": FIRST_NAME * 20}, {"last_name": LAST_NAME * 20},
        {"email": MARKER.decode()}, {"email": [EMAIL]}, {"phone": {PHONE: 1}}, {"role": PHONE}, {PHONE: EMAIL},
        {"role": "guarantor"}, {"external_id": EMAIL * 10}, {"first_name": " "}, {"email": EMAIL + "\0"},
        {"phone": "\ud83d" + PHONE},
    ):  # fmt: skip
        yield MOVE_IN | {"parties": [ANA | changed]}
        yield MOVE_IN | {"parties": [ANA, ANA | changed, {"role": "cat"}]}
    for more in ({EMAIL: 1}, {"provider": EMAIL * 10}, {"move_in_date": EMAIL}, {"parties": [EMAIL]}):
        yield MOVE_IN | more
    yield MOVE_IN | {"lease_end_date": "2020-01-01"}
    yield MOVE_IN | {"predecessor_transition_id": 1}
    yield MOVE_IN | {"parties": [ANA] * 21}
    yield json.dumps(MOVE_IN).encode()[:-1]
    yield json.dumps([MOVE_IN]).encode()
    yield json.dumps(MOVE_IN).encode("utf-16")
    yield json.dumps(MOVE_IN).encode().replace(b'"phone"', b'"email"')


@pytest.fixture(scope="module")
def recorded(system: System, receiver: Receiver) -> Recorded:
    company = system.company("Personal")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    ticket = {"external_id": "T1", "property": "P1", "unit": "U1", "title": "Cold", "category": "HVAC"}
    company.import_rows("tickets", [ticket])
    system.makeready("wait")
    (unit,), (opened,) = company.walk("/units"), company.walk("/tickets")
    recording = Recorded(system, company, unit["entity_id"], opened["entity_id"])
    events = ["ticket.created", "ticket.status_changed", "turn.status_changed", "turn.schedule_changed"]
    subscription = {"destination_url": f"https://receiver.test{PATH}", "events": events}
    subscribed = system.post("/webhooks", company.keys["webhook_only"], subscription, "personal")
    assert subscribed.status == 201

    for number, body in enumerate(bad_move_ins()):
        refused = recording.move_in(body, f"refused {number}")
        assert refused.status in (400, 422), (body, refused)
        recording.others.append(refused)
    recording.moved_in += [recording.move_in(MOVE_IN, "moved in"), recording.move_in(MOVE_IN, "moved in")]
    recording.others += [
        recording.move_in(MOVE_IN | {"parties": [ANA, ANA]}, "moved in"),  # idempotency mismatch
        recording.move_in(MOVE_IN, "again"),  # occupied
        recording.notice(NOTICE | {"external_id": NOTES * 10}, "too long"),
        recording.notice(NOTICE | {"notes": NOTES * 1000}, "too long"),
        recording.notice(NOTICE | {"move_out_date": NOTES}, "no date"),
        recording.notice(NOTICE, "notice"),
        recording.notice(NOTICE, "notice"),
        recording.change({"status": "Completed", "note": NOTE * 1000}, "too long"),
        recording.change({"status": "Open", "note": NOTE}, "not accepted"),
        recording.change({"status": NOTE}, "no status"),
        recording.change({"status": "Completed", "note": NOTE}, "done"),
        recording.change({"status": "Cancelled", "cancellation_reason_code": NOTE}, "no reason"),
    ]
    pid = system.runtime["processes"]["svc-occupancy"]["pid"]
    os.kill(pid, signal.SIGSTOP)  # and a request whose service does not answer
    try:
        recording.others.append(recording.notice(NOTICE, "late"))
    finally:
        os.kill(pid, signal.SIGCONT)
    statuses = [answer.status for answer in recording.others[-13:]]
    assert statuses == [409, 422, 400, 400, 400, 201, 201, 400, 422, 422, 200, 422, 500]
    system.makeready("wait")
    system.makeready("sweep", "webhooks")
    delivered = [delivery.json["event"] for delivery in receiver.at(PATH)]
    assert sorted(delivered) == ["ticket.status_changed", "turn.status_changed", "turn.status_changed"]
    return recording


def marked(text: bytes, *markers: str) -> list[str]:
    return [marker for marker in markers if marker.encode().lower() in text.lower()]


EVERYTHING = (EMAIL, PHONE, FIRST_NAME, LAST_NAME, MARKER.decode())
UNSERVED = (EMAIL, PHONE, MARKER.decode())


def test_names_are_in_the_answer_to_the_move_in_and_nothing_else_is(recorded: Recorded) -> None:
    for answer in recorded.moved_in:
        assert answer.status == 201 and not marked(answer.body, *UNSERVED)
        (party,) = answer.json["parties"]
        assert (party["first_name"], party["last_name"]) == (FIRST_NAME, LAST_NAME)
        assert not marked(bytes(str(answer.headers), "latin-1"), *EVERYTHING)


def test_no_other_answer_has_any_of_it(recorded: Recorded) -> None:
    for answer in recorded.others:
        assert not marked(answer.body + bytes(str(answer.headers), "latin-1"), *EVERYTHING), answer


def test_no_record_has_any_of_it(recorded: Recorded) -> None:
    for path in ("/tickets", "/units", "/turns", "/properties", "/webhooks"):
        for record in recorded.company.walk(path):
            assert not marked(json.dumps(record).encode(), *EVERYTHING), record
            if path != "/webhooks":
                served = recorded.system.get(f"{path}/{record['entity_id']}", recorded.company.keys["read"])
                assert served.status == 200 and not marked(served.body, *EVERYTHING)


def test_no_delivery_has_any_of_it(recorded: Recorded, receiver: Receiver) -> None:
    for delivery in receiver.at(PATH):
        assert not marked(delivery.body + json.dumps(delivery.headers).encode(), *EVERYTHING), delivery


def test_no_log_and_no_file_but_the_databases_has_any_of_it(recorded: Recorded) -> None:
    """Not even NATS's files, which store the events between services, nor after people have searched for it."""
    browser = Browser(recorded.system).sign_in(recorded.company.email)
    for words in (EMAIL, f"{FIRST_NAME} {LAST_NAME}"):
        browser.get("/search")
        page = browser.send("/search", q=words)
        assert EMAIL in page.text and PHONE in page.text
    looked_at = []
    for folder, _, names in os.walk(recorded.system.state):
        for file in (Path(folder) / name for name in names):
            part = file.relative_to(recorded.system.state).parts[0]
            if part == "postgres" or not file.is_file() or file.is_symlink():
                continue
            with contextlib.suppress(FileNotFoundError):  # NATS deletes files meanwhile
                assert not marked(file.read_bytes(), *EVERYTHING), file
                looked_at.append(part)
    assert {"logs", "nats"} <= set(looked_at)
    assert not marked(recorded.system.log.read_bytes(), *EVERYTHING)


def test_no_metric_has_any_of_it(recorded: Recorded) -> None:
    addresses = [
        process["metrics"] for process in recorded.system.runtime["processes"].values() if "metrics" in process
    ]
    assert len(addresses) == 6
    for address in addresses:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as response:
            assert not marked(response.read(), *EVERYTHING), address


def test_the_command_line_prints_none_of_it_of_deliveries(recorded: Recorded) -> None:
    company_id = str(recorded.company.company_id)
    words: list[list[Any]] = [["status"], ["company", "list"], ["webhooks", "list", company_id]]
    (subscription,) = recorded.company.walk("/webhooks")
    words.append(["webhooks", "deliveries", str(subscription["entity_id"])])
    for word in words:
        done = recorded.system.run("--json", *word)
        assert done.returncode == 0 and not marked((done.stdout + done.stderr).encode(), *EVERYTHING), word


async def _rows_with_markers(url: str) -> dict[str, int]:
    """The number of rows with a marker, by table; bytes are hexadecimal in a row's text."""
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        counts = {}
        texts = ("zq-marker", "zqmarker", *(marker.encode().hex() for marker in ("zq-marker", "Zqmarker")))
        for (table,) in tables:
            condition = " OR ".join(f"one::text ILIKE '%{text}%'" for text in texts)
            counts[table] = await connection.fetchval(f'SELECT count(*) FROM "{table}" one WHERE {condition}')
        return {table: rows for table, rows in counts.items() if rows}
    finally:
        await connection.close()


def rows_with_markers(system: System) -> dict[str, dict[str, int]]:
    """By service: what its own role reads in its database."""
    counts, secrets = {}, json.loads((system.state / "secrets.json").read_text())
    for name in ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks"):
        context = name.removeprefix("svc-")
        url = url_for(system.runtime["database_url"], context, secrets[f"database_{context}"])
        if rows := asyncio.run(_rows_with_markers(url)):
            counts[name] = rows
    return counts


def test_a_forgotten_person_is_in_no_database_any_more(recorded: Recorded) -> None:
    system, unit_id = recorded.system, recorded.unit_id
    before = rows_with_markers(system)
    assert before["svc-occupancy"] == {"idempotency": 1, "party": 1, "party_search": 1, "transition": 1}
    assert "ticket_comment" in before["svc-tickets"] and set(before) == {"svc-occupancy", "svc-tickets"}
    browser = Browser(system).sign_in(recorded.company.email)
    transitions = browser.get(f"/units/{unit_id}/transitions")
    (path,) = set(re.findall(rf"/units/{unit_id}/parties/\d+/forget", transitions.text))
    page = browser.get(path)
    note = re.findall(rf'value="({recorded.ticket_id}\.comment\.\d+)"', page.text)
    done = browser.send(path, ticket_texts=note, with_notice="1", name=f"{FIRST_NAME} {LAST_NAME}")
    if "Confirm your identity" in done.text:
        done = browser.send(path, **{"confirm.password": PASSWORD})
    assert note and "The person is forgotten." in done.text and not marked(done.text.encode(), *EVERYTHING)
    until(lambda: not rows_with_markers(system), lambda: rows_with_markers(system))
    # The move-in's replay has the turn and the lease, and nobody's name.
    replay = recorded.move_in(MOVE_IN, "moved in")
    assert replay.status == 201 and replay.json["entity_id"] == recorded.moved_in[0].json["entity_id"]
    assert not marked(replay.body, *EVERYTHING)
    company = str(recorded.company.company_id)
    entries = system.makeready("audit", "list", company)["entries"]
    by_action = {
        entry["action"]: entry
        for entry in entries
        if entry["action"] in ("unit.person_forgotten", "ticket.texts_removed")
    }
    assert {entry["actor"] for entry in by_action.values()} == {by_action["unit.person_forgotten"]["actor"]} and len(
        by_action
    ) == 2
    assert by_action["unit.person_forgotten"]["actor"].startswith("administrator:")
