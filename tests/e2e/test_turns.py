"""Turns as an integrator sees them: imported with their units, listed, and visible in GET /units."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testkit.clocks import today
from testkit.patience import took, until

from .system import Company, System
from .test_outages import hanging

UNITS = 600


def units(company: Company) -> dict[str, tuple[str | None, str | None]]:
    return {unit["external_id"]: (unit["unit_status"], unit["projected_ready_on"]) for unit in company.walk("/units")}


def house(company: Company, count: int) -> None:
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    rows = [{"external_id": f"U{n}", "property": "P1", "name": f"Unit {n}"} for n in range(count)]
    company.import_rows("units", rows)


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    company = system.company("Turns")
    house(company, 2)
    return company


def test_the_next_look_at_a_unit_shows_its_turn(system: System, company: Company) -> None:
    steps: list[tuple[dict[str, Any], tuple[str, str | None]]] = [
        ({"move_in_date": "2024-04-01"}, ("Occupied", None)),
        ({"move_out_date": "2999-01-31", "projected_ready_on": "2999-02-09"}, ("Notice", "2999-02-09")),
        ({"move_out_date": "2020-01-31"}, ("Vacant Not Ready", "2999-02-09")),
        ({"unit_status": "Vacant Ready"}, ("Vacant Ready", "2999-02-09")),
        ({"status": "Completed"}, ("Vacant Ready", None)),
    ]
    # Polling uses up a rate limit, so it gets its own key.
    watching = Company(system, company.company_id, company.email, {"read": system.mint(company.company_id, "read")})
    seconds: list[float] = []
    for change, expected in steps:
        done = company.import_rows("turns", [{"external_id": "T1", "unit": "U0", **change}])
        assert done["created"] + done["changed"] == 1
        seconds.append(until(lambda expected_state=expected: units(watching)["U0"] == expected_state))  # type: ignore[misc]
        took(f"GET /units shows {expected[0]}", seconds[-1])
    # About 0.1 s. A reconciliation comes each 30 s: without events, they would all have waited for one.
    assert min(seconds) < 10
    assert units(company)["U1"] == (None, None)
    (turn,) = company.walk("/turns")
    assert system.get(f"/turns/{turn['entity_id']}", company.keys["read"]).json == turn


def test_filters_narrow_and_refuse_as_those_of_other_lists_do(system: System, company: Company) -> None:
    rows = [{"external_id": f"F{n}", "unit": "U1", "status": "Completed"} for n in range(3)]
    company.import_rows("turns", [*rows, {"external_id": "F3", "unit": "U1"}])
    turns = list(company.walk("/turns", limit=2, status="Completed"))
    assert {turn["status"] for turn in turns} == {"Completed"} and len(turns) >= 3
    (active,) = company.walk("/turns", status="Active")
    assert [turn["external_id"] for turn in company.walk("/turns", unit_id=active["unit"]["id"])][-1] == "F3"
    assert list(company.walk("/turns", unit_id=active["unit"]["id"], status="Cancelled")) == []
    assert active in list(
        company.walk("/turns", property_id=active["property"]["id"], updated_since=active["updated_at"])
    )
    for query, status in (
        ({"status": "active"}, 422),
        ({"updated_since": "2026-01-31T10:00:00"}, 400),
        ({"x": 1}, 400),
    ):
        answer = system.get("/turns", company.keys["read"], **query)
        assert (answer.status, answer.code) == (status, "invalid_request")


def test_units_and_turns_at_once_lose_no_row_though_nothing_replicates(system: System) -> None:
    """Creates a company, its units and their turns while NATS hangs. In Pago Pago the move-out day is not over yet."""
    with hanging(system, "nats"):
        number = system.makeready("company", "create", "At once", "--timezone", "Pacific/Pago_Pago")["company_id"]
        email = f"admin@{number}.test"
        system.makeready(
            "administrator", "create", str(number), email, "--password-stdin", stdin="correct horse battery\n"
        )
        company = Company(system, number, email, {"read": system.mint(number, "read", email)})
        house(company, UNITS)
        there = today("Pacific/Pago_Pago")
        rows = [{"external_id": f"T{n}", "unit": f"U{n}", "move_out_date": str(there)} for n in range(UNITS)]
        done = company.import_rows("turns", rows)
        assert (done["created"], done["rejected"]) == (UNITS, 0)
        assert len(list(company.walk("/turns"))) == UNITS
    system.makeready("wait", "--timeout", "60")
    assert set(units(company).values()) == {("Notice", None)}
    assert company.import_rows("turns", rows)["unchanged"] == UNITS


def test_a_file_hands_every_unit_on_whatever_batches_its_rows_travel_in(system: System) -> None:
    company = system.company("Handed on")
    house(company, UNITS)
    company.import_rows("turns", [{"external_id": f"A{n}", "unit": f"U{n}"} for n in range(UNITS)])
    ended = [{"external_id": f"A{n}", "unit": f"U{n}", "status": "Completed"} for n in range(UNITS)]
    opened = [{"external_id": f"B{n}", "unit": f"U{n}", "move_out_date": "2999-01-31"} for n in range(UNITS)]
    done = company.import_rows("turns", [*ended, *opened])
    assert (done["created"], done["changed"], done["rejected"]) == (UNITS, UNITS, 0)
    assert {turn["external_id"][0] for turn in company.walk("/turns", status="Active")} == {"B"}
    system.makeready("wait", "--timeout", "60")
    assert set(units(company).values()) == {("Notice", None)}


def test_a_departure_before_the_arrival_is_imported_and_named(system: System) -> None:
    company = system.company("Strange dates")
    house(company, 1)
    rows = [("2026-02-01", "2026-01-31"), ("2026-03-01", "2026-02-28"), ("2026-04-01", "2026-04-02")]
    turns = [
        {"external_id": f"A{n}", "unit": "U0", "status": "Completed", "move_in_date": came, "move_out_date": departed}
        for n, (came, departed) in enumerate(rows)
    ]
    file = system.state.with_name("strange-dates.jsonl")
    file.write_text("".join(json.dumps(row) + "\n" for row in turns))
    done = system.run("import", str(company.company_id), "turns", str(file))
    assert "3 rows read: 3 created" in done.stdout
    warning = "Look at 2 rows that are accepted: turns: move_out_date is before the move_in_date (line 1, 2)"
    assert warning in done.stderr + done.stdout


def test_turns_are_listed_while_everything_else_hangs(system: System, company: Company) -> None:
    expected = list(company.walk("/turns"))
    with hanging(system, "svc-catalog"), hanging(system, "svc-tickets"), hanging(system, "nats"):
        assert list(company.walk("/turns")) == expected
