"""The TypeScript client against the whole system: every operation, the edge of the network, real deliveries; and the
quickstart of the reference in its three languages."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from makeready_client import Makeready
from makeready_client.models import KINDS
from testkit.requirements import lacks
from testkit.typescript import from_npm, node, node_command

from .receiver import Receiver
from .system import Company, System

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "sdk" / "typescript" / "tests"
QUICKSTART = ROOT / "docs" / "quickstart"
URL = "https://receiver.test/typescript"
SETTLES_SECONDS = 120


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    """A sandbox with one record of every kind."""
    company = system.company("Callers in TypeScript", "--sandbox")
    place = {"external_id": "P1", "property": "P1"}
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{**place, "external_id": "U1", "name": "Unit 1"}])
    company.import_rows(
        "assets", [{**place, "external_id": "A1", "name": "Boiler", "category": "HVAC", "make": "X", "model": "Y"}]
    )
    company.import_rows("vendors", [{"external_id": "V1", "name": "Pipes & Sons"}])
    company.import_rows("inspections", [{**place, "external_id": "I1", "unit": "U1"}])
    company.import_rows("meters", [{**place, "external_id": "M1", "name": "Main", "utility_type": "water"}])
    company.import_rows("staff", [{"external_id": "S1", "name": "Ada Byrne"}])
    month = {"period_start": "2026-01-01", "period_end": "2026-02-01", "consumption": 12.5}
    company.import_rows("readings", [{"external_id": "R1", "meter": "M1", **month}])
    return company


@pytest.fixture
def environment(system: System, company: Company) -> dict[str, str]:
    """A key of its own for each test: each sends more than half of a minute's requests."""
    key = system.mint(company.company_id, "write", company.email)
    return os.environ | {"MAKEREADY_BASE_URL": system.base_url, "MAKEREADY_API_KEY": key}


def test_every_operation_is_called_and_answers(
    system: System, company: Company, receiver: Receiver, environment: dict[str, str], tmp_path: Path
) -> None:
    done = node(tmp_path, PROGRAMS / "every.ts", URL, environment=environment)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    paths = system.get("/openapi.json").json["paths"]
    operations = {f"{verb.upper()} {path}" for path, item in paths.items() for verb in item}
    called = set()
    for call in report["asked"]:
        matching = [name for name in operations if re.fullmatch(re.sub(r"{\w+}", "[^/]+", name), call)]
        called.add(min(matching, key=lambda name: name.count("{")))
    assert called == operations
    results = report["results"]
    secret, request_id = results.pop("secret"), results.pop("request id")
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret) and re.fullmatch("[0-9a-f]{24}", request_id)
    *logged, request_body = results.pop("logged")
    assert logged == ["/tickets", "request"] and json.loads(request_body)["title"] == "[redacted string]"
    kinds = ("tickets", "properties", "units", "assets", "vendors", "inspections", "turns", "meters", "readings")
    copies = results.pop("copies")
    assert {kind: records for kind, (records, _) in copies.items()} == dict.fromkeys(kinds, 1)
    # The move-in of a moment ago may reach its unit between the snapshot and the look at what has changed since.
    assert {kind for kind, (_, changed) in copies.items() if changed} <= {"units"}
    assert results == {
        "scope": "write",
        "openapi": "3.1.0",
        "assignee": "Ada Byrne",
        "comment": "staff",
        "found": 0,
        "reading": "unchanged",
        "readings": 1,
        "filter": ["High"],
        "own fields": 0,
        "listed": "Tap – 漏水 🚿",
        "status": "Completed",
        "photo": "https://photos.example/1.jpg",
        "turn": [True, "Active"],
        "followed": ["ticket.created", True],
        "events": 2,
        "test": "succeeded",
        "health": "healthy",
        "matched": 1,
        "missing": ["NotFound", 404, "not_found", True],
        "refused": 400,
        "triggered": "Elm Court",
        "reports": [["tickets", 7, "category"], ["vendors", 6, None], ["turns", 9, None], ["inspections", 5, "item"]],
        "advanced": ["ready", "advancing", 0],
    }
    mine = [delivery for delivery in receiver.deliveries if delivery.path == "/typescript"]
    assert mine and all(delivery.is_signed_with(secret) for delivery in mine)
    judge(mine, secret, tmp_path)


def test_the_library_of_npm_takes_deliveries_as_genuine(
    system: System, company: Company, receiver: Receiver, tmp_path: Path
) -> None:
    from_npm(tmp_path, "standardwebhooks@1")
    body = {"destination_url": "https://receiver.test/npm", "events": ["ticket.created"]}
    subscription = system.post("/webhooks", company.keys["webhook_only"], body, "for npm").json
    (unit,) = company.walk("/units")
    company.create_ticket(unit["entity_id"], "Wasserhahn \u6f0f\u6c34", "for npm")
    system.makeready("sweep", "webhooks")
    (sent,) = (delivery for delivery in receiver.deliveries if delivery.path == "/npm")
    program = tmp_path / "library.ts"
    program.write_text(
        'import { Webhook } from "standardwebhooks";\nconst { secret, body, headers } = JSON.parse(process.argv[2]!);\n'
        "const of = (text: string) => { try { return (new Webhook(secret).verify(text, headers) as any).event; } "
        "catch (error) { return (error as Error).name; } };\n"
        'console.log(of(body), of(body + " "));\n'
    )
    question = json.dumps({"secret": subscription["secret"], "body": sent.body.decode(), "headers": sent.headers})
    done = node(tmp_path, program, question)
    assert (done.stdout, done.stderr) == ("ticket.created WebhookVerificationError\n", "")


def test_the_example_completes_what_is_in_progress(
    system: System, company: Company, environment: dict[str, str], tmp_path: Path
) -> None:
    (unit,) = company.walk("/units")
    opened = company.create_ticket(unit["entity_id"], "For the example", "for the example").json
    moved = {"Idempotency-Key": "moved for the example"}
    path = f"/tickets/{opened['entity_id']}"
    assert system.call("PATCH", path, company.keys["write"], {"status": "In Progress"}, moved).status == 200
    program = ROOT / "sdk" / "typescript" / "examples" / "close.ts"
    done = node(tmp_path, program, str(unit["property"]["id"]), environment=environment)
    assert (done.stdout, done.stderr) == ("1 completed\n", "")
    assert system.get(path, company.keys["read"]).json["status"] == "Completed"


@pytest.mark.parametrize(
    ("program", "runtime", "kinds"),
    [("copy.ts", "the wheel's node", KINDS), ("journal.ts", "the machine's node", ("units", "tickets"))],
)
def test_the_examples_of_copies_survive_kills_and_get_nothing_twice(
    system: System,
    company: Company,
    environment: dict[str, str],
    tmp_path: Path,
    program: str,
    runtime: str,
    kinds: Sequence[str],
) -> None:
    file = tmp_path / "copied"
    (unit,) = company.walk("/units")
    command = [*node_command(tmp_path, ROOT / "sdk/typescript/examples" / program, runtime=runtime), str(file)]
    for number in range(3):
        with subprocess.Popen([*command, "--follow"], env=environment, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout and process.stdout.readline()
                company.create_ticket(unit["entity_id"], f"Copied {number}", f"{program} {number}")
            finally:
                process.kill()  # wherever it stands
    deadline = time.monotonic() + SETTLES_SECONDS  # what the set-up has caused may still arrive
    came, copied, listed = {"": 1}, dict[str, Any](), dict[str, Any]()
    # The first key has used up most of its minute.
    environment["MAKEREADY_API_KEY"] = key = system.mint(company.company_id, "write", company.email)
    with Makeready(key, base_url=system.base_url) as client:
        while any(came.values()) or copied != listed:
            assert time.monotonic() < deadline, (came, copied, listed)
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, done.stderr
            came = {kind: int(count) for kind, count in re.findall(r"^(\w+) (\d+)$", done.stdout, re.MULTILINE)}
            assert sorted(came) == sorted(kinds)
            listed = {kind: list(map(json.loads, getattr(client.snapshots, kind)().lines())) for kind in kinds}
            copied = in_sqlite(file) if program == "copy.ts" else in_journal(file)


def in_sqlite(file: Path) -> dict[str, list[Any]]:
    """The records that copy.ts has stored, by kind, ascending by id."""
    with closing(sqlite3.connect(file)) as copy:
        rows = {kind: copy.execute(f"SELECT record FROM {kind} ORDER BY entity_id").fetchall() for kind in KINDS}
    return {kind: [json.loads(record) for (record,) in of_kind] for kind, of_kind in rows.items()}


def in_journal(file: Path) -> dict[str, list[Any]]:
    """The records that journal.ts has stored."""
    records: dict[str, dict[int, Any]] = {}
    for batch in map(json.loads, file.read_text().splitlines()):
        of_kind = records.setdefault(batch["kind"], {})
        if batch["isWhole"]:
            of_kind.clear()
        of_kind.update({change["entity_id"]: change["record"] for change in batch["changes"]})
    return {kind: [record for _, record in sorted(of_kind.items()) if record] for kind, of_kind in records.items()}


def judge(deliveries: list[Any], secret: str, folder: Path) -> None:
    """Real deliveries are genuine to the client by either signature, and changed ones are not."""
    ours = {"service-signature"}
    lines = []
    for number, delivery in enumerate(deliveries):
        standard = {name: value for name, value in delivery.headers.items() if name not in ours}
        question = {
            "secret": secret,
            "received_at": int(delivery.headers["webhook-timestamp"]),
            "body": delivery.body.decode(),
        }
        lines.append(question | {"name": f"{number} both", "headers": delivery.headers})
        lines.append(question | {"name": f"{number} standard", "headers": standard})
        lines.append(
            question | {"name": f"{number} changed", "headers": standard, "body": delivery.body.decode() + " "}
        )
    done = node(folder, PROGRAMS / "judge.ts", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert json.loads(done.stdout) == {line["name"]: not str(line["name"]).endswith("changed") for line in lines}


def test_answers_that_are_lost_or_failures(
    system: System, company: Company, environment: dict[str, str], tmp_path: Path
) -> None:
    (unit,) = company.walk("/units")
    before = sum(1 for _ in company.walk("/tickets"))
    done = node(tmp_path, PROGRAMS / "edge.ts", str(unit["entity_id"]), environment=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "lost twice": [3, True, 1],
        "same key later": [True, True],
        "many": [20, 2, 3],
        "500 once": ["no error", 2, False],
        "500 twice": ["InternalError", 2, False],
        "503": ["no error", 4, False],
        "502 and 504 of a proxy": ["no error", 3, False],
        "503 for ever": ["VaultUnavailable", 3, False],
        "in progress": ["no error", 2, False],
        "mismatch": ["IdempotencyMismatch", 1, False],
        "429": ["no error", 2, True],
        "429 more often than retries": ["no error", 7, False],
        "400": ["InvalidRequest", 1, False],
        "401": ["KeyRevoked", 1, False],
        "404": ["NotFound", 1, False],
        "422 of a later version": ["ApiError", 1, False],
        "redirected": ["ApiError", 1, False],
        "no json": ["ApiError", 1, False],
        "the prototype": ["ApiError", 1, False],
        "beyond the deadline": ["VaultUnavailable", 1],
        "limit used up": [2, True],
        "limit beyond the deadline": ["RateLimited", 1],
        "ended by its signal": ["TimeoutError", True],
        "each request is told": [
            [
                ["GET", "/tickets/17", None, None, 1, None],
                ["GET", "/tickets/17", 503, "r1", 2, None],
                ["GET", "/tickets/17", 200, "r2", 3, 7],
            ],
            ["GET /tickets/17: no answer", "GET /tickets/17: 503", "GET /tickets/17: 200"],
            ["ops nightly true"] * 3,
            "TypeError",
        ],
        "following outlasts faults": ["e1", 3, [["ApiError", 1]], True],
        "a snapshot that breaks off": [[1, 2, 3], ["", "?after_id=1"], "one"],
        "not sent": [["TypeError"] * 5, "TypeError", 0],
    }
    assert sum(1 for _ in company.walk("/tickets")) == before + 21


@pytest.mark.parametrize("language", ["curl", "Python", "TypeScript"])
def test_the_quickstart_works_when_pasted(
    system: System, environment: dict[str, str], tmp_path: Path, language: str
) -> None:
    with urlopen(system.base_url.removesuffix("/api/v1") + "/docs", timeout=30) as answer:
        page = answer.read().decode()
    steps = page.partition('<ol class="steps">')[2].partition("</ol>")[0]
    number = ("curl", "Python", "TypeScript").index(language)
    blocks = [unescape(block) for block in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", steps, re.DOTALL)]
    program = "\n\n".join(blocks[number::3]) + "\n"
    if language == "curl":
        shell = shutil.which("bash") if shutil.which("curl") else None
        if not shell:
            lacks("curl", "there is no such command here")
        assert "'mk_…'" in program and system.base_url in program
        pasted = program.replace("mk_…", environment["MAKEREADY_API_KEY"])
        done = subprocess.run([shell, "-e"], input=pasted, capture_output=True, text=True, timeout=120, check=False)
        output = done.stdout
        assert '"scope":"write"' in output and '"title":"Kitchen tap drips"' in output
        assert output.rpartition('"positions"')[0].count('"event":"ticket.created"') >= 1
    elif language == "Python":
        path = os.pathsep.join(filter(None, (str(ROOT / "sdk" / "python"), os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-P", "-c", program]
        done = subprocess.run(
            command, env=environment | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False
        )
        output = done.stdout
    else:
        file = tmp_path / "pasted.ts"
        file.write_text(program)
        done = node(tmp_path, file, environment=environment)
        output = done.stdout
    assert done.returncode == 0, done.stderr
    if language != "curl":
        assert [line.split()[0] for line in output.splitlines()[:2]] == ["Callers", "1"]
        assert output.splitlines()[-1].startswith("ticket.created ")
