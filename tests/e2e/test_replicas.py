"""A rename appears in every nested object of every resource; replicas are rebuilt while everything runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from testkit.api_contract import SUMMARIES
from testkit.clocks import today
from testkit.patience import until

from .system import Company, System

# One second is promised. The summary reports the times; a test fails only if a change never appears.
NEVER_SECONDS = 60.0
WEST, EAST = "Pacific/Pago_Pago", "Pacific/Kiritimati"  # 25 hours apart: never the same day
LEASE = {"move_in_date": "2026-01-15", "lease_start_date": "2026-01-01"}
ANA = {"first_name": "Ana", "last_name": "Ortiz", "role": "leaseholder"}


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    """One record of each kind; the records refer to one another."""
    company = system.company("Renaming")
    place = {"property": "P1", "unit": "U1"}
    rows: dict[str, dict[str, Any]] = {
        "staff": {"name": "Ada Byrne"},
        "vendors": {"name": "Cascade Elevator"},
        "properties": {"name": "Elm Court", "address": "1 Elm St"},
        "units": {"property": "P1", "name": "Unit 1"},
        "assets": {
            "property": "P1",
            "location": "U1",
            "name": "Boiler",
            "category": "HVAC",
            "make": "Acme",
            "model": "B1",
        },
        "inspections": place | {"assignee": "S1"},
        "meters": place | {"name": "Gas", "utility_type": "gas"},
        "tickets": place | {"asset": "A1", "title": "T", "category": "HVAC", "assignee": "S1", "assigned_vendor": "V1"},
        "turns": {"unit": "U1", "move_in_date": "2024-04-01"},
    }
    for kind, row in rows.items():
        done = company.import_rows(kind, [row | {"external_id": f"{kind[0].upper()}1"}])
        assert done["created"] == 1, (kind, done)
    system.makeready("wait")
    return company


@pytest.fixture(scope="module")
def ids(company: Company) -> dict[str, int]:
    entity_ids = {}
    for kind in ("properties", "units", "assets", "vendors", "inspections", "meters", "tickets", "turns"):
        (record,) = company.walk(f"/{kind}")
        entity_ids[kind] = record["entity_id"]
    (person,) = company.system.makeready("staff", "list", str(company.company_id))["staff"]
    return entity_ids | {"staff": person["staff_id"]}


def seen(company: Company, ids: dict[str, int], places: dict[str, str], name: str) -> float:
    """Waits until each record has the name in its field; returns the seconds that this took. places: the field by
    kind, with dots for nested ones."""
    started = time.monotonic()
    waiting = dict(places)
    while waiting:
        for kind, field in list(waiting.items()):
            record = company.system.get(f"/{kind}/{ids[kind]}", company.key_for(1, "read")).json
            for part in field.split("."):
                record = record[part]
            if record == name:
                del waiting[kind]
        assert time.monotonic() - started < NEVER_SECONDS, f"{name} is not seen in {waiting}"
    return time.monotonic() - started


OF_PROPERTY = dict.fromkeys(("units", "assets", "inspections", "meters", "tickets", "turns"), "property.name")
OF_UNIT = dict.fromkeys(("inspections", "meters", "tickets", "turns"), "unit.name") | {"assets": "location.name"}
RENAMES: dict[str, tuple[str, dict[str, str]]] = {
    "property": ("properties", OF_PROPERTY | {"properties": "name"}),
    "unit": ("units", OF_UNIT | {"units": "name"}),
    "vendor": ("vendors", {"tickets": "assigned_vendor.name", "vendors": "name"}),
    "staff": ("staff", {"tickets": "assignee.name", "inspections": "assignee.name"}),
    "asset": ("assets", {"assets": "name"}),
}


@pytest.fixture(scope="module")
def compare() -> Iterator[Callable[[str, float], None]]:
    lines: list[str] = []
    yield lambda change, seconds: lines.append(f"{seconds:8.3f} s until {change} was seen everywhere\n")
    SUMMARIES["Renames"] = "".join(lines)


@pytest.mark.parametrize("noun", RENAMES)
def test_a_rename_is_seen_in_every_nested_object(
    company: Company, ids: dict[str, int], compare: Callable[[str, float], None], noun: str
) -> None:
    kind, places = RENAMES[noun]
    name = f"Renamed {noun}"
    company.key_for(100, "read")  # so that no key is minted while the time is measured
    company.system.makeready(noun, "update", str(company.company_id), str(ids[kind]), "--name", name)
    compare(f"another name of the {noun}", seen(company, ids, places, name))


def test_an_assets_new_name_is_known_where_a_ticket_is_opened_about_it(company: Company, ids: dict[str, int]) -> None:
    """Tickets do not show their asset, so the test imports a ticket that names the asset's new external_id."""
    number = str(company.company_id)
    company.system.makeready("asset", "update", number, str(ids["assets"]), "--external-id", "A2")
    row = {"external_id": "T2", "property": "P1", "asset": "A2", "title": "T", "category": "HVAC"}
    assert company.import_rows("tickets", [row])["created"] == 1


def test_another_timezone_counts_at_once(company: Company, compare: Callable[[str, float], None]) -> None:
    """In the west, a resident who leaves today still lives there; in the east, that day is already over."""
    system, number = company.system, str(company.company_id)
    key = company.key_for(100)
    system.makeready("company", "update", number, "--timezone", WEST)
    system.makeready("wait")
    (unit,) = company.walk("/units")
    path = f"/units/{unit['entity_id']}"
    day = today(WEST).isoformat()
    leaves = {"move_out_date": day, "provider": "entrata"}
    assert system.post(f"{path}/notice", key, leaves, "leaves").status == 201
    comes = LEASE | {"provider": "entrata", "parties": [ANA]}
    early = system.post(f"{path}/move-in", key, comes, "early")
    assert (early.status, early.code) == (422, "invalid_request"), datetime.now(UTC)
    system.makeready("company", "update", number, "--timezone", EAST)
    started = time.monotonic()
    until(lambda: system.get("/whoami", key).json["company"]["timezone"] == EAST)
    tries = 0
    while system.post(f"{path}/move-in", key, comes, f"late {tries}").status != 201:
        tries += 1
        time.sleep(0.1 + 0.02 * tries)  # within the rate limit
        assert time.monotonic() - started < NEVER_SECONDS
    compare("another timezone", time.monotonic() - started)


def test_replicas_are_made_anew_while_all_goes_on_and_nothing_changes(company: Company, ids: dict[str, int]) -> None:
    system = company.system
    system.makeready("wait")
    before = {kind: list(company.walk(f"/{kind}")) for kind in ids if kind != "staff"}
    for options in ([], ["--overwrite"], ["--service", "svc-tickets"]):
        done = system.makeready("replicas", "rebuild", *options)
        assert done["overwrite"] == ("--overwrite" in options)
        rows = {(replica["service"], replica["kind"]): replica["rows"] for replica in done["replicas"]}
        services = {service for service, _ in rows}
        assert services == ({"svc-tickets"} if "--service" in options else set(KEEPERS))
        assert {kind for service, kind in rows if service == "svc-tickets"} == KEEPERS["svc-tickets"]
        assert all(count > 0 for count in rows.values())
        assert {replica["owner"] for replica in done["replicas"]} <= {"gateway", "svc-catalog", "svc-occupancy"}
    assert {kind: list(company.walk(f"/{kind}")) for kind in before} == before
    lines = system.run("replicas", "rebuild", "--service", "svc-webhooks").stdout.splitlines()
    assert lines[0].split() == ["SERVICE", "KIND", "OWNER", "ROWS"]
    assert lines[1].split()[:3] == ["svc-webhooks", "companies", "gateway"]
    assert system.run("replicas", "rebuild", "--service", "nobody").returncode == 2
    assert system.makeready("replicas", "rebuild", "--service", "gateway")["replicas"] == []


KEEPERS = {
    "svc-catalog": {"companies", "staff", "unit_occupancies"},
    "svc-tickets": {"companies", "staff", "properties", "units", "assets", "vendors"},
    "svc-occupancy": {"companies", "properties", "units"},
    "svc-webhooks": {"companies"},
}
