"""Schemathesis over the whole document: well-formed and malformed requests, with all of its checks."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.api_contract import SUMMARIES
from testkit.examples import examples

from .system import Company, System

HERE = Path(__file__).parent
KEYS = 30
EXAMPLES = 40  # of each operation, in the profile `nightly`
SUBSCRIPTIONS = 100  # one for each DELETE that succeeds
REPLAYED = 100  # one for each replay: a subscription has one at a time
TESTED = 20  # in turn, as each gets 10 tests a minute
VACANT_UNITS = 1000  # one for each move-in that succeeds, in the profile `nightly`
DESTINATION = "https://receiver.test/schemathesis"
EVENTS = ["pm.stale"]
PLACE = {"property": "P1", "unit": "U1"}
# One record of every kind, so that every fetch finds one.
ROWS: dict[str, dict[str, Any]] = {
    "staff": {"external_id": "S1", "name": "Ana Ortiz"},
    "properties": {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"},
    "units": {"external_id": "U1", "property": "P1", "name": "Unit 1"},
    "assets": {
        "external_id": "A1", "property": "P1", "name": "Boiler", "category": "HVAC", "make": "Lochinvar", "model": "K5",
    },
    "vendors": {"external_id": "V1", "name": "Lakeside Plumbing"},
    "inspections": {"external_id": "I1", "property": "P1", "unit": "U1"},
    "meters": {"external_id": "M1", **PLACE, "name": "Unit 1 electric", "utility_type": "electric"},
    "readings": {
        "external_id": "R1", "meter": "M1", "period_start": "2026-01-01", "period_end": "2026-02-01", "consumption": 9,
    },
    "tickets": {"external_id": "T1", **PLACE, "title": "A tap drips", "category": "Plumbing"},
    "turns": {"external_id": "N1", "unit": "U1"},
}  # fmt: skip


@pytest.fixture(scope="module")
def company(system: System) -> Iterator[Company]:
    company = system.company("Schemathesis", "--sandbox")
    for kind, row in ROWS.items():
        company.import_rows(kind, [row])
    vacant = [ROWS["units"] | {"external_id": f"V{number}"} for number in range(examples(VACANT_UNITS))]
    company.import_rows("units", vacant)
    yield company
    # Delete its subscriptions, so that sweeps of other tests deliver nothing to them.
    key = ""
    for count, subscription in enumerate(list(company.walk("/webhooks"))):
        if count % 100 == 0:
            key = system.mint(company.company_id, "webhook_only", company.email)
        assert system.call("DELETE", f"/webhooks/{subscription['entity_id']}", key).status == 204


def subscribed(company: Company, number: int) -> int:
    """The id of a new subscription."""
    body = {"destination_url": DESTINATION, "events": EVENTS}
    answer = company.system.post("/webhooks", company.key_for(1), body, f"subscription {number}")
    assert answer.status == 201, answer
    sub_id: int = answer.json["entity_id"]
    return sub_id


@pytest.mark.slow
def test_every_operation_stands_any_request(system: System, company: Company, tmp_path: Path) -> None:
    assert system.contract is not None
    document = system.contract.document
    ids = {}
    for path in document["paths"]:
        match = re.fullmatch(r"(/[a-z]+)/\{(\w+)\}", path)
        if match and match[1] not in ("/webhooks", "/requests"):
            (record, *_) = company.walk(match[1])
            ids[match[2]] = record["entity_id"]
    numbers = itertools.count(1)
    ids["request_id"] = system.get("/whoami", company.keys["read"]).headers["X-Request-Id"]
    ids["sub_id"] = subscribed(company, next(numbers))
    its, replayed = f"/webhooks/{ids['sub_id']}", {"since": "2026-01-01T00:00:00Z"}
    ids["event_id"] = system.post(f"{its}/test", company.key_for(1), {}, "a test").json["event_id"]
    ids["replay_id"] = system.post(f"{its}/replay", company.key_for(1), replayed, "a replay").json["entity_id"]
    world = {
        "keys": [system.mint(company.company_id, "write", company.email) for _ in range(KEYS)],
        "ids": ids,
        "vacant_unit_ids": [unit["entity_id"] for unit in company.walk("/units") if unit["external_id"] != "U1"],
        **{
            name: [subscribed(company, next(numbers)) for _ in range(count)]
            for name, count in (
                ("subscription_ids", examples(SUBSCRIPTIONS)),
                ("replayed_ids", REPLAYED),
                ("tested_ids", TESTED),
            )
        },
        "events": EVENTS,
        "destination_url": DESTINATION,
    }
    # Loaded from a file: Schemathesis does not test the URL that it loads the document from.
    file = tmp_path / "openapi.json"
    file.write_bytes(system.get("/openapi.json").body)
    words = ["--config-file", str(HERE / "schemathesis.toml"), "run", str(file), "--url", system.base_url, "--no-color"]
    words += ["--max-examples", str(examples(EXAMPLES))]
    done = subprocess.run(
        [str(Path(sys.executable).with_name("st")), *words],
        env=os.environ
        | {
            "CONTRACT_WORLD": json.dumps(world),
            "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
            "PYTHONPATH": str(HERE),
            "PYTHONSAFEPATH": "1",
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=tmp_path,
    )
    summary = done.stdout[done.stdout.find("= SUMMARY =") :]
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    SUMMARIES["Schemathesis"] = summary.partition("\n")[2]
    operations = sum(len(item) for item in document["paths"].values())
    assert f"Selected: {operations}/{operations}" in summary and f"Tested: {operations}\n" in summary
    assert re.search(r"(\d+) generated, \1 passed", summary)
