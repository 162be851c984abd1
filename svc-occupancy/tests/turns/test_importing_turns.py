"""Imports of turns: upsert by external_id, one active turn a unit, rows rejected by field, nothing twice."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from chassis.auth.identity import INTEGRATION, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from makeready.events.v1.events_pb2 import CompanyReference, References
from svc_occupancy import tables as t
from svc_occupancy.replicas import consumers
from testkit.clocks import today
from testkit.examples import examples

TODAY = datetime.datetime.now(datetime.UTC).date()
YESTERDAY, TOMORROW = str(TODAY - datetime.timedelta(2)), str(TODAY + datetime.timedelta(2))
HELD = "The unit has another active turn; complete that one in an earlier row."


def row(external_id: str, unit: str = "U1", **fields: Any) -> dict[str, Any]:
    return {"external_id": external_id, "unit": unit, **fields}


async def states(served: Database, company: Any) -> dict[str, tuple[Any, ...]]:
    """The stored state of each unit, by external_id: status, ready date, version."""
    form = select(t.unit_state, t.unit.c.external_id).join_from(t.unit_state, t.unit)
    rows = await served.rows(Statement(form.where(t.unit_state.c.company_id == company.id)))
    return {
        row["external_id"]: (
            row["unit_status"],
            row["projected_ready_on"] and str(row["projected_ready_on"]),
            row["version"],
        )
        for row in rows
    }


async def test_the_second_time_nothing_changes(company: Any, served: Database) -> None:
    await company.make_units("U1", "U2")
    rows = [
        row("T1", status="Completed", move_out_date=YESTERDAY),
        row("T2", move_out_date=TOMORROW, projected_ready_on=TOMORROW, unit_status="Notice"),
        row("T3", "U2", move_in_date="2024-01-01", unit_status=""),
    ]
    assert await company.put("turns", *rows) == ["created"] * 3
    before, kept = await company.turns(), await states(served, company)
    assert kept == {"U1": ("Notice", TOMORROW, 1), "U2": ("Occupied", None, 1)}
    assert await company.put("turns", *rows) == ["unchanged"] * 3
    assert await company.put("turns", rows[2], rows[0]) == ["unchanged"] * 2
    assert (await company.turns(), await states(served, company)) == (before, kept)


async def test_a_changed_row_changes_what_it_gives_and_leaves_the_rest(company: Any) -> None:
    await company.make_units("U1")
    first = row("T", move_in_date="2024-01-01", occupancy_source="yardi", occupancy_fed_at="2026-01-01")
    await company.put("turns", first)
    before = await company.turn("T")
    assert await company.put("turns", row("T", move_out_date=TOMORROW, occupancy_fed_at="")) == ["changed"]
    after = await company.turn("T")
    assert after["move_out_date"] == TOMORROW and after["move_in_date"] == "2024-01-01"
    assert after["occupancy_source"] == "yardi" and after["occupancy_fed_at"] is None
    assert after["updated_at"] > before["updated_at"] and after["created_at"] == before["created_at"]
    assert after["entity_id"] == before["entity_id"] and after["status"] == "Active"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"unit": "nowhere"}, "unit"),
        ({"unit": ""}, "unit"),
        ({"external_id": " "}, "external_id"),
        ({"external_id": "x" * 201}, "external_id"),
        ({"status": "active"}, "status"),
        ({"status": "Down"}, "status"),
        ({"unit_status": "Vacant"}, "unit_status"),
        ({"move_out_date": "31/03/2026"}, "move_out_date"),
        ({"move_in_date": "2026-02-30"}, "move_in_date"),
        ({"projected_ready_on": "2026-04-01"}, "projected_ready_on"),
        ({"occupancy_source": "x" * 41}, "occupancy_source"),
        ({"occupancy_source": "a\0b"}, ""),
        ({"occupancy_fed_at": "2026-04-01"}, "occupancy_fed_at"),
        ({"occupancy_source": "yardi", "occupancy_fed_at": "2026-04-01T10:00:00"}, "occupancy_fed_at"),
        ({"created_at": "soon"}, "created_at"),
        ({"updated_at": "9999-12-31T23:59:59.999999Z"}, "updated_at"),
        ({"property": "P1"}, "property"),
        ({"source": "api"}, "source"),
        ({"notes": "x"}, "notes"),
    ],
)
async def test_a_bad_row_is_rejected_by_field_and_the_others_kept(
    company: Any, changes: dict[str, Any], field: str
) -> None:
    await company.make_units("U1", "U2")
    (bad, good) = await company.results("turns", [row("T1") | changes, row("T2", "U2")])
    assert (bad.field, good.reason) == (field, "") and bad.reason.endswith(".")
    assert [turn["external_id"] for turn in await company.turns()] == ["T2"]


async def test_what_is_no_json_object_is_rejected_and_the_others_kept(company: Any) -> None:
    await company.make_units("U1")
    outcomes = await company.put("turns", b"[]", b"{", b'{"unit": "\xff"}', row("T"))
    assert outcomes == ["rejected", "rejected", "rejected", "created"]


async def test_a_second_active_turn_of_a_unit_is_a_rejected_row(company: Any) -> None:
    await company.make_units("U1", "U2")
    results = await company.results("turns", [row("T1"), row("T2"), row("T3", "U2"), row("T4", status="Completed")])
    assert [result.reason for result in results] == ["", HELD, "", ""] and results[1].field == "unit"
    # The rule also holds against stored turns, from whichever batch.
    assert await company.put("turns", row("T5"), row("T4", status="Active"), row("T1")) == [
        "rejected unit",
        "rejected unit",
        "unchanged",
    ]
    assert {turn["external_id"]: turn["status"] for turn in await company.turns()} == {
        "T1": "Active",
        "T3": "Active",
        "T4": "Completed",
    }


@pytest.mark.parametrize("end", ["Completed", "Cancelled"])
async def test_one_batch_ends_a_turn_and_opens_the_next(company: Any, served: Database, end: str) -> None:
    await company.make_units("U1")
    await company.put("turns", row("T1", move_out_date=YESTERDAY), row("T0", status="Completed"))
    assert await company.put("turns", row("T1", status=end), row("T2")) == ["changed", "created"]
    assert {turn["external_id"]: turn["status"] for turn in await company.turns()} == {
        "T0": "Completed",
        "T1": end,
        "T2": "Active",
    }
    assert await states(served, company) == {"U1": ("Occupied", None, 2)}
    # An older turn can become the next active one: two rows swap their status.
    assert await company.put("turns", row("T2", status=end), row("T1", status="Active")) == ["changed", "changed"]
    assert await states(served, company) == {"U1": ("Vacant Not Ready", None, 3)}


async def test_the_row_that_opens_must_follow_the_row_that_ends(company: Any) -> None:
    await company.make_units("U1")
    await company.put("turns", row("T1"))
    rows = [row("T2"), row("T1", status="Completed")]
    assert await company.put("turns", *rows) == ["rejected unit", "changed"]
    assert await company.put("turns", *rows) == ["created", "unchanged"]


async def test_a_row_rejected_for_another_reason_ends_no_turn(company: Any) -> None:
    await company.make_units("U1")
    await company.put("turns", row("T1"))
    ending = row("T1", status="Completed", projected_ready_on="2026-01-01")
    assert await company.put("turns", ending, row("T2")) == ["rejected projected_ready_on", "rejected unit"]


async def test_a_turn_stays_with_its_unit(company: Any) -> None:
    await company.make_units("U1", "U2")
    await company.put("turns", row("T1"))
    assert await company.put("turns", row("T1", "U2")) == ["rejected unit"]
    assert (await company.turn("T1"))["unit"]["external_id"] == "U1"


async def test_a_ready_date_goes_with_the_move_out_date_that_it_needs(company: Any, served: Database) -> None:
    await company.make_units("U1")
    await company.put("turns", row("T1", move_out_date=TOMORROW, projected_ready_on=TOMORROW))
    assert await company.put("turns", row("T1", move_out_date="")) == ["rejected projected_ready_on"]
    assert await company.put("turns", row("T1", move_out_date="", projected_ready_on="")) == ["changed"]
    assert await states(served, company) == {"U1": ("Occupied", None, 2)}


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ({}, "Occupied"),
        ({"move_out_date": TOMORROW}, "Notice"),
        ({"move_out_date": YESTERDAY}, "Vacant Not Ready"),
        ({"move_out_date": YESTERDAY, "unit_status": "Vacant Ready"}, "Vacant Ready"),
        ({"unit_status": "Down"}, "Down"),
        ({"status": "Completed"}, "Vacant Not Ready"),
        ({"status": "Cancelled", "unit_status": "Occupied"}, "Vacant Not Ready"),
        ({"status": "Completed", "unit_status": "Vacant Ready"}, "Vacant Ready"),
    ],
)
async def test_a_units_status_is_the_files_or_follows_from_its_active_turn(
    company: Any, served: Database, turn: dict[str, str], expected: str
) -> None:
    await company.make_units("U1")
    assert await company.put("turns", row("T1", **turn)) == ["created"]
    assert (await states(served, company))["U1"] == (expected, None, 1)


async def test_the_active_turns_row_speaks_for_the_unit_and_no_other(company: Any, served: Database) -> None:
    await company.make_units("U1")
    over = row("T1", status="Completed", unit_status="Vacant Ready")
    await company.put("turns", over, row("T2"))
    assert (await states(served, company))["U1"][0] == "Occupied"
    assert await company.put("turns", over) == ["unchanged"]
    assert (await states(served, company))["U1"] == ("Occupied", None, 1)


async def test_a_row_that_says_nothing_new_is_unchanged_though_its_unit_is_vacated(
    company: Any, served: Database
) -> None:
    await company.make_units("U1")
    await company.put("turns", row("T1"), row("T2", status="Completed"))
    outcomes = await company.put("turns", row("T2", status="Completed"), row("T1", status="Completed"))
    assert outcomes == ["unchanged", "changed"]
    assert (await states(served, company))["U1"] == ("Vacant Not Ready", None, 2)


async def test_a_unit_that_the_file_calls_otherwise_changes_though_its_turn_does_not(
    company: Any, served: Database
) -> None:
    await company.make_units("U1")
    await company.put("turns", row("T1", move_out_date=YESTERDAY))
    before = await company.turn("T1")
    assert await company.put("turns", row("T1", unit_status="Vacant Ready"), row("T0", status="Cancelled")) == [
        "changed",
        "created",
    ]
    assert await states(served, company) == {"U1": ("Vacant Ready", None, 2)}
    assert (await company.turn("T1"))["updated_at"] > before["updated_at"]
    # A file without unit_status leaves the status, even if the ready date changes; so does a blank.
    await company.put("turns", row("T1", projected_ready_on=TOMORROW))
    assert await states(served, company) == {"U1": ("Vacant Ready", TOMORROW, 3)}
    assert await company.put("turns", row("T1", unit_status="")) == ["unchanged"]
    assert await states(served, company) == {"U1": ("Vacant Ready", TOMORROW, 3)}


async def test_the_last_day_is_the_companys_own(company: Any, served: Database) -> None:
    """The date in Kiritimati (UTC+14) or Pago Pago (UTC-11) differs from UTC's for much of the day."""
    await company.make_units("U1", "U2")
    for number, zone in enumerate(("Pacific/Kiritimati", "Pacific/Pago_Pago"), 1):
        reference = CompanyReference(id=company.id, version=1 + number, name="C", active=True, timezone=zone)
        async with served.transaction() as connection:
            await consumers.put_references(connection, [References(companies=[reference])])
        there = today(zone)
        await company.put("turns", row(f"T{number}", f"U{number}", move_out_date=str(there)))
        assert (await states(served, company))[f"U{number}"][0] == "Notice"
        gone = str(there - datetime.timedelta(1))
        await company.put("turns", row(f"T{number}", f"U{number}", move_out_date=gone))
        assert (await states(served, company))[f"U{number}"][0] == "Vacant Not Ready"


async def test_a_dry_run_reports_and_changes_nothing(company: Any, served: Database) -> None:
    await company.make_units("U1")
    rows = [row("T1", status="Completed"), row("T2"), row("T3")]
    assert await company.put("turns", *rows, dry_run=True) == ["created", "created", "rejected unit"]
    assert await company.turns() == [] and await states(served, company) == {}
    assert await company.put("turns", *rows) == ["created", "created", "rejected unit"]


async def test_callers_import_nothing(company: Any) -> None:
    import grpc

    from makeready.occupancy.v1 import turns_pb2 as pb

    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await company.house(
            "ImportTurns", pb.ImportTurnsRequest(), Identity(INTEGRATION, "gateway", company.id, 1, "write")
        )
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED


class Model:
    """A plain model of the import's rule, row by row: one active turn a unit."""

    def __init__(self) -> None:
        self.status: dict[str, str] = {}

    def take(self, external_id: str, status: str) -> bool:
        others = [
            other_id for other_id, held in self.status.items() if held == "Active" and other_id[0] == external_id[0]
        ]
        if status == "Active" and others not in ([], [external_id]):
            return False
        self.status[external_id] = status
        return True


_rows = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(1, 3)).map(
        lambda letter_and_number: f"{letter_and_number[0]}{letter_and_number[1]}"
    ),
    st.sampled_from(["Active", "Completed", "Cancelled"]),
    max_size=6,
)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(_rows, min_size=1, max_size=3))
async def test_however_rows_come_a_unit_has_one_active_turn_and_its_state_says_so(
    new_company: Any, served: Database, batches: list[dict[str, str]]
) -> None:
    company = await new_company()
    await company.make_units("a", "b")
    model = Model()
    for batch in batches:
        if not batch:
            continue
        rows = [row(name, name[0], status=status) for name, status in batch.items()]
        expected = [model.take(name, status) for name, status in batch.items()]
        outcomes = await company.put("turns", *rows)
        assert [not outcome.startswith("rejected") for outcome in outcomes] == expected
    turns = await company.turns()
    assert {turn["external_id"]: turn["status"] for turn in turns} == model.status
    lived_in = {turn["unit"]["external_id"] for turn in turns if turn["status"] == "Active"}
    stored = await states(served, company)
    assert stored.keys() == {turn["unit"]["external_id"] for turn in turns}
    assert {unit for unit, state in stored.items() if state[0] == "Occupied"} == lived_in


_cell = st.fixed_dictionaries(
    {"unit": st.sampled_from("ab")},
    optional={
        "status": st.sampled_from(["Active", "Completed", "Cancelled", ""]),
        "move_out_date": st.sampled_from([YESTERDAY, TOMORROW, ""]),
        "unit_status": st.sampled_from(["Occupied", "Notice", "Vacant Ready", "Down", ""]),
    },
)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.lists(_cell, min_size=1, max_size=6), size=st.integers(1, 3), data=st.data())
async def test_an_import_cut_off_and_run_again_ends_as_if_run_once(
    new_company: Any, served: Database, cells: list[dict[str, str]], size: int, data: Any
) -> None:
    """Batches of `size` rows; the first run ends after some of them."""
    cut = data.draw(st.integers(0, len(cells)))
    ends = []
    for runs in ([len(cells)], [cut, len(cells)]):
        company = await new_company()
        await company.make_units("a", "b")
        rows = [row(f"T{n}", **cell) for n, cell in enumerate(cells)]
        outcomes: list[str] = []
        for run in runs:
            outcomes = []
            for start in range(0, run, size):
                outcomes += await company.put("turns", *rows[start : start + size])
        turns = [[turn[key] for key in ("external_id", "status", "move_out_date")] for turn in await company.turns()]
        stored = {unit: state[:2] for unit, state in (await states(served, company)).items()}
        rejected = [outcome.startswith("rejected") for outcome in outcomes]
        ends.append((turns, stored, rejected))
    assert ends[0] == ends[1]
