"""The operator's command line against a running system: output, exit status, and the results of imports."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import gzip
import itertools
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from makeready_local.databases import url_for
from testkit.patience import PATIENCE_SECONDS, until

from .receiver import Receiver
from .system import Company, System
from .test_outages import hanging

REPORT = ["read", "created", "changed", "unchanged", "rejected", "rejects_file"]
KINDS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "importing" / "importing" / "kinds.json").read_text()
)["kinds"]
"""The kinds of records with their columns. Later kinds refer to records of earlier ones."""
# The values of columns that cannot have just any value of their type. Blank: excluded by another column's value.
CERTAIN: dict[str, dict[str, str]] = {
    "staff": {"email": "zoe.byrne@example.com"},
    "assets": {"location": "units-9", "location_type": "unit"},
    "inspections": {"status": "Finalized", "kind": "acceptance_walk"},
    "meters": {"scope": "unit"},
    "readings": {"period_start": "2020-01-01", "period_end": "2020-02-01T00:00:00Z"},
    "notices": {"area": "", "published_at": ""},
    "tickets": {"status": "Cancelled", "completed_at": "", "source": "import"},
    "pm-tasks": {"area": "", "repeat_days": "", "status": "Completed", "cancelled_at": ""},
    "turns": {"status": "Active", "move_in_date": "2024-04-01", "unit_status": "Vacant Ready"},
    "turn-tasks": {"status": "Completed", "cancelled_at": ""},
}
VALUES = {
    "text": "Größe 9",
    "integer": "12",
    "number": "4.5",
    "boolean": "yes",
    "date": "2026-03-31",
    "date-time": "2020-01-31T12:00:00+01:00",
}


def external_id(kind: str) -> str:
    return f"{kind}-9"


def full_row(kind: dict[str, Any]) -> dict[str, str]:
    """A row with every column of the kind."""

    def value(column: dict[str, Any]) -> str:
        if "refers_to" in column:
            return external_id(column["refers_to"])
        if "lowest" in column:
            return str(max(column["lowest"], int(VALUES["integer"])))
        return str(column.get("values", [VALUES[column["type"]]])[0])

    values = {column["name"]: value(column) for column in kind["columns"]}
    return values | {"external_id": external_id(kind["name"])} | CERTAIN.get(kind["name"], {})


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    return system.company("Command line")


@pytest.fixture
def number(company: Company) -> str:
    return str(company.company_id)


def write_csv(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def properties(count: int) -> list[dict[str, str]]:
    return [{"external_id": f"B{n}", "name": f"Building {n}", "address": f"{n} Main St"} for n in range(count)]


# Companies, administrators, keys

KEY = {"name": "sync", "scope": "read"}


def test_a_company_is_created_changed_and_listed(system: System) -> None:
    created = system.makeready("company", "create", "Ünited Homes", "--timezone", "America/Toronto")
    assert list(created) == ["company_id"]
    number = str(created["company_id"])
    changed = system.makeready("company", "update", number, "--inactive", "--timezone", "Europe/London")
    assert (changed["active"], changed["timezone"]) == (False, "Europe/London")
    policy = system.makeready("company", "update", number, "--photo-required", "--ticket-stale-after-hours", "24")
    assert (policy["photo_required"], policy["ticket_stale_after_hours"]) == (True, 24)
    kept = system.makeready("company", "update", number, "--no-photo-required")
    assert (kept["photo_required"], kept["ticket_stale_after_hours"]) == (False, 24)
    listed = {company["company_id"]: company for company in system.makeready("company", "list")["companies"]}
    assert listed[created["company_id"]]["name"] == "Ünited Homes"
    assert listed[created["company_id"]]["active"] is False
    assert "Ünited Homes" in system.run("company", "list").stdout


def test_companies_are_as_a_file_declares_them(system: System, tmp_path: Path) -> None:
    declared = {"external_id": "oak", "name": "Oak", "photo_required": True, "ticket_stale_after_hours": 48}
    (tmp_path / "companies.yaml").write_text(json.dumps({"companies": [declared | {"keys": [KEY]}]}))
    words = ("company", "ensure", "-f", str(tmp_path / "companies.yaml"))
    assert system.run(*words).returncode == 2, "keys need a file"
    keys = ("--keys-to", str(tmp_path / "keys.yaml"))
    done = system.makeready(*words, *keys)
    assert [(step["what"], step["action"]) for step in done["steps"]] == [
        ("company", "create"),
        ("company", "change"),
        ("key", "create"),
    ]
    (company,) = [
        company for company in system.makeready("company", "list")["companies"] if company["external_id"] == "oak"
    ]
    company_details = system.makeready("company", "show", str(company["company_id"]))
    assert (company_details["photo_required"], company_details["ticket_stale_after_hours"]) == (True, 48)
    checked = system.run(*words, *keys, "--check")
    assert (checked.returncode, checked.stdout) == (0, "1 company is as declared.\n")
    system.makeready("company", "update", str(company["company_id"]), "--no-photo-required")
    checked = system.run(*words, "--check")
    assert (checked.returncode, checked.stdout) == (3, 'oak: company oak differs: {"photo_required": true}\n')


def test_an_unknown_record_is_reported_in_one_line(system: System) -> None:
    unknown = "999999999"
    for words in (
        ("company", "update", unknown, "--active"),
        ("company", "update", unknown, "--photo-required"),
        ("company", "create", "X", "--timezone", "Mars/Olympus"),
        ("administrator", "create", unknown, "a@b.example"),
        ("key", "mint", unknown, "--scope", "read"),
        ("key", "list", unknown),
        ("key", "revoke", unknown),
        ("webhooks", "list", unknown),
        ("webhooks", "deliveries", unknown),
        ("import", unknown, "properties", str(write_csv(system.state / "one.csv", properties(1)))),
    ):
        done = system.run("--json", *words)
        assert (done.returncode, done.stdout) == (1, ""), words
        assert re.fullmatch(r"makeready: [^\n]+\.\n", done.stderr), done.stderr


def test_a_password_is_generated_and_printed_once_unless_it_is_given(system: System, number: str) -> None:
    created = system.makeready("administrator", "create", number, "made@example.com", "--name", "Ada")
    assert list(created) == ["administrator_id", "password"]
    assert len(created["password"]) >= 16
    words = ("administrator", "create", number, "given@example.com", "--password-stdin")
    assert list(system.makeready(*words, stdin="correct horse battery\n")) == ["administrator_id"]
    again = system.run(*words, stdin="correct horse battery\n")
    assert again.returncode == 1
    assert "correct horse" not in again.stdout + again.stderr


def test_a_key_is_printed_once_listed_by_its_prefix_and_revoked(system: System, company: Company, number: str) -> None:
    minted = system.makeready("key", "mint", number, "--scope", "read", "--administrator", company.email)
    assert list(minted) == ["key_id", "key"]
    listed = system.run("--json", "key", "list", number).stdout
    assert minted["key"] not in listed
    (key,) = (listed_key for listed_key in json.loads(listed)["keys"] if listed_key["key_id"] == minted["key_id"])
    assert minted["key"].startswith(key["prefix"])
    assert (key["scope"], key["administrator"], key["revoked_at"]) == ("read", company.email, None)
    assert system.get("/whoami", minted["key"]).status == 200
    assert system.makeready("key", "revoke", str(minted["key_id"]))["revoked_at"]
    until(lambda: system.get("/whoami", minted["key"]).status == 401)
    assert system.get("/whoami", minted["key"]).code == "key_revoked"


def test_keys_of_a_deactivated_administrator_are_shown_taken_over_and_revoked(system: System, number: str) -> None:
    pat, ada = "pat.left@example.com", "ada.stays@example.com"
    who = {
        email: system.makeready("administrator", "create", number, email)["administrator_id"] for email in (pat, ada)
    }
    minting = ("key", "mint", number, "--scope", "write", "--administrator", pat)
    first, second = (system.makeready(*minting) for _ in range(2))
    system.makeready("administrator", "deactivate", number, str(who[pat]))
    table = system.run("key", "list", number, "--administrator-id", str(who[pat])).stdout
    assert table.count(f"{pat} (deactivated)") == 2
    log = system.run("audit", "list", number, "--subject", "key", "--subject-id", str(first["key_id"])).stdout
    assert f"Key {first['key_id']} was minted by " in log and ", who is deactivated." in log
    (taken,) = system.makeready("key", "take-over", str(first["key_id"]), "--as", ada)["keys"]
    assert (taken["key_id"], taken["administrator"], taken["administrator_active"]) == (first["key_id"], ada, True)
    assert system.get("/whoami", first["key"]).status == 200
    again = system.run("key", "take-over", str(first["key_id"]), "--as", ada)
    assert again.returncode == 1 and "has not been deactivated" in again.stderr
    (taken_over,) = system.makeready("key", "take-over", "--of", pat, "--administrator", ada)["keys"]
    assert taken_over["key_id"] == second["key_id"]
    assert system.run("key", "take-over", "--of", pat, "--administrator", ada).stdout == "No key of theirs works.\n"
    done = system.run("key", "revoke", "--of", ada).stdout.splitlines()
    revoked = [key["key_id"] for key in (first, second)]
    assert [line.partition(" is revoked since ")[0] for line in done] == [f"Key {key_id}" for key_id in revoked]
    until(lambda: system.get("/whoami", second["key"]).code == "key_revoked")
    nobody = system.run("key", "revoke")
    assert nobody.returncode == 1 and "Name a key, or the administrator whose keys they are." in nobody.stderr


# Waiting, status, webhooks


def test_waiting_returns_when_everything_has_arrived(system: System, company: Company) -> None:
    company.import_rows("properties", [{"external_id": "W1", "name": "Waited for", "address": "1 Elm St"}])
    waited = system.makeready("wait", "--timeout", "90")
    assert list(waited) == ["waited_seconds"]
    assert waited["waited_seconds"] < 90


def test_waiting_gives_up_and_says_who_is_behind(system: System, company: Company) -> None:
    with hanging(system, "svc-catalog"):
        done = system.run("--json", "wait", "--timeout", "1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "svc-catalog" in done.stderr


def test_status_shows_every_process(system: System) -> None:
    status = system.makeready("status")
    assert status["alive"] is True
    runtime = system.runtime["processes"]
    assert status["processes"].keys() == runtime.keys()
    for name, process in status["processes"].items():
        assert process["alive"] is True
        assert process["pid"] == runtime[name]["pid"]
        if "grpc" in process:
            assert process["health"] == "SERVING"
    assert isinstance(status["processes"]["svc-tickets"]["lag"], int)
    assert "svc-webhooks" in system.run("status").stdout


def test_subscriptions_are_listed_without_their_secrets(system: System, company: Company, number: str) -> None:
    body = {"destination_url": "https://receiver.test/listing", "events": ["ticket.created"]}
    subscription = system.post("/webhooks", company.keys["write"], body, "listing").json
    listed = system.run("--json", "webhooks", "list", number).stdout
    assert subscription["secret"] not in listed
    (listed_subscription,) = json.loads(listed)["subscriptions"]
    assert listed_subscription == {name: value for name, value in subscription.items() if name != "secret"}
    deliveries = system.makeready("webhooks", "deliveries", str(subscription["entity_id"]))
    assert deliveries == {"deliveries": [], "next_before": None}
    assert "receiver.test" in system.run("webhooks", "list", number).stdout


def test_imported_tickets_fire_events_only_on_request(
    system: System, company: Company, number: str, receiver: Receiver
) -> None:
    body = {"destination_url": "https://receiver.test/imported", "events": ["ticket.created"]}
    assert system.post("/webhooks", company.keys["write"], body, "imported").status == 201
    company.import_rows("properties", [{"external_id": "E1", "name": "Loud", "address": "1 Elm St"}])
    ticket = {"property": "E1", "title": "Tap drips", "category": "Plumbing"}
    company.import_rows("tickets", [{"external_id": "silent", **ticket}])
    company.import_rows("tickets", [{"external_id": "loud", **ticket}], "--events")
    system.makeready("sweep", "webhooks")
    assert [delivery.json["data"]["external_id"] for delivery in receiver.at("/imported")] == ["loud"]


# Imports


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["name"])
def test_every_documented_column_is_taken_by_the_owner(system: System, number: str, kind: dict[str, Any]) -> None:
    name, row = kind["name"], full_row(kind)
    report = system.makeready("import", number, name, str(write_csv(system.state / f"{name}.csv", [row])))
    assert list(report) == REPORT
    assert report == {"read": 1, "created": 1, "changed": 0, "unchanged": 0, "rejected": 0, "rejects_file": None}
    blank = {column["name"]: row[column["name"]] if column["required"] else "" for column in kind["columns"]}
    cleared = system.makeready("import", number, name, str(write_csv(system.state / "blank.csv", [blank])))
    assert (cleared["changed"], cleared["rejected"]) == (1, 0)


def test_bad_rows_are_reported_corrected_and_imported(system: System, company: Company, number: str) -> None:
    header = b"external_id,name,address,year_built,latitude\r\n"
    bad = [
        b"R2,Caf\xe9,1 Elm St,,",  # not UTF-8
        b"R3," + b"n" * 5000 + b",1 Elm St,,",  # too long
        b"R4,Name,1 Elm St,nineteen,",  # not a number
        b"R1,Again,1 Elm St,,",  # an earlier line's external_id
        b"R5,Name,1 Elm St",  # ragged
        b"R6,,1 Elm St,,",  # a required value is missing
        b"R7,Na\0me,1 Elm St,,",
        b'R8,"Name,1 Elm St,,',  # an unclosed quote
        b"R9,Name,1 Elm St,,91",  # out of range
    ]
    good = [b'R1,"Two\r\nlines",1 Elm St,1931,42.5', "R10,Zoë,1 Elm St,,".encode()]
    file = system.state / "bad.csv"
    file.write_bytes(header + b"\r\n".join([good[0], *bad, good[1]]) + b"\r\n")
    words = ("import", number, "properties", str(file))
    done = system.run("--json", *words)
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    assert {name: report[name] for name in REPORT[:5]} == {
        "read": 11,
        "created": 2,
        "changed": 0,
        "unchanged": 0,
        "rejected": 9,
    }
    *lines, hint = done.stderr.splitlines()
    assert re.fullmatch(r"To undo it: makeready import undo \d+ file-[0-9a-f]{12}", hint)
    assert [line.split(": ")[:2] for line in lines] == [
        ["bad.csv:4", "name"],
        ["bad.csv:5", "name"],
        ["bad.csv:6", "year_built"],
        ["bad.csv:7", "external_id"],
        ["bad.csv:8", "the row"],
        ["bad.csv:9", "name"],
        ["bad.csv:10", "name"],
        ["bad.csv:11", "the row"],
        ["bad.csv:12", "latitude"],
    ]
    assert "line 2" in lines[3]
    rejects = Path(report["rejects_file"])
    assert rejects == system.state / "bad.rejects.csv"
    text = rejects.read_bytes()
    assert b"Caf\xe9" in text
    for wrong, mended in (
        (b"Caf\xe9", b"Caf\xc3\xa9"),
        (b"n" * 5000, b"short"),
        (b"nineteen", b"1919"),
        (b"R1,Again", b"R11,Again"),
        (b"R5,Name,1 Elm St", b"R5,Name,1 Elm St,,"),
        (b"R6,,", b"R6,Name,"),
        (b"\0", b""),
        (b'"Name,1', b"Name,1"),
        (b",91", b",9"),
    ):
        assert wrong in text
        text = text.replace(wrong, mended)
    rejects.write_bytes(text)
    again = system.makeready("import", number, "properties", str(rejects))
    assert (again["created"], again["rejected"], again["rejects_file"]) == (9, 0, None)
    served = {record["external_id"]: record for record in company.walk("/properties")}
    assert served["R1"]["name"] == "Two\r\nlines"
    assert served["R2"]["name"] == "Café"
    assert {f"R{n}" for n in range(1, 12)} <= served.keys()


def test_an_unknown_reference_is_named_by_field(system: System, number: str) -> None:
    (tickets,) = (kind for kind in KINDS if kind["name"] == "tickets")
    file = write_csv(system.state / "lost.csv", [{**full_row(tickets), "external_id": "T1", "property": "nowhere"}])
    done = system.run("import", number, "tickets", str(file), "--rejects", str(system.state / "mine.csv"))
    assert done.returncode == 3
    assert "lost.csv:2: property: " in done.stderr
    assert "mine.csv" in done.stdout
    assert (system.state / "mine.csv").read_text().startswith("reject_line,reject_field,reject_reason,external_id")


def test_a_dry_run_changes_nothing(system: System, company: Company, number: str) -> None:
    file = write_csv(
        system.state / "dry.csv", [{**row, "external_id": f"dry {row['external_id']}"} for row in properties(3)]
    )
    assert system.makeready("import", number, "properties", str(file), "--dry-run")["created"] == 3
    assert not any(record["external_id"].startswith("dry") for record in company.walk("/properties"))
    assert system.makeready("import", number, "properties", str(file))["created"] == 3


@contextlib.asynccontextmanager
async def held(system: System, company: Company, external_id: str) -> AsyncIterator[None]:
    """Another transaction holds the property: an import that changes it waits there."""
    password = json.loads((system.state / "secrets.json").read_text())["database_catalog"]
    connection = await asyncpg.connect(url_for(system.runtime["database_url"], "catalog", password))
    try:
        async with connection.transaction():
            sql = "SELECT id FROM property WHERE company_id = $1 AND external_id = $2 FOR UPDATE"
            assert await connection.fetchval(sql, company.company_id, external_id)
            yield
    finally:
        await connection.close()


async def test_an_import_that_is_interrupted_is_finished_by_running_it_again(system: System) -> None:
    company = system.company("Interrupted")
    rows = properties(6_000)
    company.import_rows("properties", [rows[5_000] | {"name": "Renamed"}])
    file = system.state / "long.csv.gz"
    write_csv(system.state / "long.csv", rows)
    file.write_bytes(gzip.compress((system.state / "long.csv").read_bytes()))
    words = ("--json", "import", str(company.company_id), "properties", str(file))
    program = [str(Path(sys.executable).with_name("makeready")), *words]
    async with held(system, company, "B5000"):
        process = await asyncio.create_subprocess_exec(
            *program, env=system.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=system.state
        )
        await asyncio.to_thread(until, lambda: len(list(itertools.islice(company.walk("/properties"), 2))) == 2)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, out) == (1, b"")
    assert re.fullmatch(rb"makeready: Interrupted[^\n]+\n", err), err
    report = system.makeready(*words[1:])
    assert report["created"] + report["changed"] + report["unchanged"] == report["read"] == 6_000
    assert report["changed"] == 1 and report["unchanged"] > 0
    assert {record["external_id"] for record in company.walk("/properties")} == {row["external_id"] for row in rows}


def test_a_file_that_is_cut_short_leaves_earlier_rows_and_reports_bad_ones(system: System) -> None:
    company = system.company("Cut short")
    rows = properties(5_000)
    rows[0]["year_built"] = "soon"
    whole = write_csv(system.state / "whole.csv", [{"year_built": "", **row} for row in rows]).read_bytes()
    file = system.state / "short.csv.gz"
    file.write_bytes(gzip.compress(whole)[:-2000])
    words = ("import", str(company.company_id), "properties", str(file))
    done = system.run(*words)
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["short.csv.gz:2", "makeready"], lines
    assert "cut short" in lines[1]
    kept = [record["external_id"] for record in company.walk("/properties")]
    # Only whole batches were imported, in the order of the file.
    assert kept == [row["external_id"] for row in rows[1 : len(kept) + 1]]
    assert len(kept) >= 1_999


@pytest.mark.slow
def test_an_import_waits_for_a_service_that_is_away_for_a_moment(system: System, number: str, tmp_path: Path) -> None:
    file = write_csv(system.state / "away.csv", properties(1200))
    with late(system.runtime["processes"]["svc-catalog"]["grpc"], 2.0) as address:
        runtime = system.runtime
        runtime["processes"]["svc-catalog"]["grpc"] = address
        (tmp_path / "runtime.json").write_text(json.dumps(runtime))
        done = subprocess.run(
            [str(Path(sys.executable).with_name("makeready")), "--json", "import", number, "properties", str(file)],
            env={**system.environment, "MAKEREADY_STATE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["read"] == report["created"] + report["unchanged"] == 1200


def test_a_reader_that_has_enough_is_no_failure(system: System) -> None:
    program = Path(sys.executable).with_name("makeready")
    process = subprocess.Popen(
        [str(program), "company", "list"], env=system.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(60) == 0


@contextlib.contextmanager
def late(target: str, seconds: float) -> Iterator[str]:
    """An address that refuses connections for a while, then forwards to the target, but cuts the first connection."""
    host, _, port = target.rpartition(":")
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        if over.wait(seconds):
            return
        listener.listen()
        listener.settimeout(0.1)  # short: until it looks whether it ends
        budget = 30_000  # bytes until the first connection is cut
        while not over.is_set():
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            # A client that leaves with unread bytes resets its connection.
            with contextlib.suppress(OSError), client, socket.create_connection((host, int(port))) as server:
                pump(client, server, budget, over)
            budget = 2**62

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        thread.join(PATIENCE_SECONDS)
        listener.close()


def pump(client: socket.socket, server: socket.socket, budget: int, over: threading.Event) -> None:
    """Passes bytes both ways until one side closes or the budget is used up."""
    other = {client: server, server: client}
    while budget > 0 and not over.is_set():
        ready, _, _ = select.select([client, server], [], [], 0.1)
        for side in ready:
            data = os.read(side.fileno(), 65_536)
            if not data:
                return
            other[side].sendall(data)
            budget -= len(data)
