"""The demo company's story: complete, the same for the same day, and never in the future."""

import datetime
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing.demo import residents, story
from makeready_local.demo_data import acts

DAYS = [datetime.date(2026, 11, 21), datetime.date(2024, 2, 29), datetime.date(2031, 1, 1), datetime.date(2027, 7, 4)]
# The fields that name a record by external_id, and its kind. An asset's location is a unit only if it says so.
NAMED = {
    "property": "properties",
    "unit": "units",
    "asset": "assets",
    "assignee": "staff",
    "assigned_vendor": "vendors",
    "meter": "meters",
    "turn": "turns",
}
PAST = (
    "created_at",
    "updated_at",
    "completed_at",
    "cancelled_at",
    "onboarded_at",
    "retired_at",
    "occupancy_fed_at",
    "published_at",
)
# How an external_id of the demo looks, by which acts name its records.
KEY = re.compile(r"(?:row:|task:)?([PSVATIRNK]|PM)-[0-9A-Z-]+(?::.+)?")


@pytest.fixture(params=DAYS, ids=str)
def day(request: pytest.FixtureRequest) -> datetime.date:
    date: datetime.date = request.param
    return date


def test_a_day_always_has_the_same_story(day: datetime.date) -> None:
    assert story.fingerprint(story.rows(day)) == story.fingerprint(story.rows(day))
    assert story.fingerprint(story.rows(day)) != story.fingerprint(story.rows(day + datetime.timedelta(1)))


def test_every_row_names_only_what_stands_before_it_and_of_its_own_property(day: datetime.date) -> None:
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for kind, rows in story.rows(day).items():
        for row in rows:
            for field, named_kind in NAMED.items():
                if row.get(field) is not None:
                    named = tables[named_kind][row[field]]
                    if "property" in row and "property" in named:
                        assert named["property"] == row["property"], (kind, row)
            if row.get("location") is not None and "location_type" not in row:
                assert tables["units"][row["location"]]["property"] == row["property"], row
        tables[kind] = {row["external_id"]: row for row in rows}
        assert len(tables[kind]) == len(rows), f"an external_id stands twice among {kind}"


def test_no_instant_of_the_story_is_in_the_future(day: datetime.date) -> None:
    dawn = story.instant(day, "00:00:00")
    for kind, rows in story.rows(day).items():
        for row in rows:
            for field in PAST:
                assert row.get(field) is None or row[field] < dawn, (kind, row)
                assert row.get(field) is None or row[field] >= row.get("created_at", ""), (kind, row)


def test_what_the_company_works_on_is_of_the_last_weeks(day: datetime.date) -> None:
    tickets = story.rows(day)["tickets"]
    lately = story.instant(day - datetime.timedelta(days=30), "00:00:00")
    under_way = [ticket for ticket in tickets if ticket["status"] not in ("Completed", "Cancelled")]
    assert sum(ticket["created_at"] >= lately for ticket in under_way) > len(under_way) / 2
    assert [ticket["created_at"] for ticket in tickets] == sorted(ticket["created_at"] for ticket in tickets)


@given(st.dates(datetime.date(2024, 1, 1), datetime.date(2040, 12, 31)))
def test_on_whatever_day_it_begins_inspections_and_readings_are_where_a_calendar_allows_them(
    day: datetime.date,
) -> None:
    tables = story.rows(day)
    for inspection in tables["inspections"]:
        dates = [inspection[name] for name in ("scheduled_date", "completed_date") if inspection.get(name)]
        assert all(datetime.date.fromisoformat(date).weekday() < 5 for date in dates), inspection
        assert dates == sorted(dates) and ("completed_date" not in inspection or dates[-1] < day.isoformat())
    dawn = story.instant(day, "00:00:00")
    for reading in tables["readings"]:
        assert reading["period_start"] < reading["period_end"] < reading["created_at"] < dawn


def test_the_rows_hold_what_the_api_does_not_distinguish() -> None:
    tables = story.rows(DAYS[0])
    assert {"unknown", None} <= {
        vendor["last_compliance_state"] for vendor in tables["vendors"] if "legal_name" in vendor
    }
    inspections = tables["inspections"]
    assert "Finalized" in {inspection["status"] for inspection in inspections}
    walks = {(inspection.get("kind", "operations"), "engagement" in inspection) for inspection in inspections}
    assert walks == {
        ("operations", False),
        ("consulting_walk", True),
        ("acceptance_walk", False),
        ("acceptance_walk", True),
    }


def all_acts(day: datetime.date) -> list[acts.Act]:
    return [
        *acts.vendors(day),
        *acts.inspections(day),
        *acts.upkeep(day),
        *acts.turns(day),
        *acts.reports(day, lambda name: f"http://localhost/{name}.svg"),
        *acts.endings(day),
        *acts.lately(day),
    ]


def test_every_act_names_records_of_the_story_and_no_two_are_the_same(day: datetime.date) -> None:
    tables = story.rows(day)
    external_ids = {row["external_id"] for rows in tables.values() for row in rows}
    external_ids |= {residency.external_id for residency in residents.RESIDENCIES}
    done = all_acts(day)
    assert len({act.key for act in done}) == len(done) and all(len(act.key) <= 64 for act in done)
    for act in done:
        named = [act.who] if act.who not in (acts.OPERATOR, acts.ADMINISTRATOR) else []
        for word, before in zip(act.words[2:], act.words[1:], strict=False):
            if before == "--external-id":
                external_ids.add(word)
            elif KEY.fullmatch(word):
                named.append(word.split(":")[1] if ":" in word else word)
        assert external_ids.issuperset(named), act
    assert {act.who for act in done} >= {"S-02", "S-04", "S-05", acts.ADMINISTRATOR, acts.OPERATOR}


def test_residents_move_into_units_that_are_free_and_their_addresses_belong_to_nobody(day: datetime.date) -> None:
    tables = story.rows(day)
    taken = {row["unit"] for row in tables["turns"] if row["status"] == "Active"}
    units = {row["external_id"] for row in tables["units"]}
    calls = [*residents.moves(day), *residents.moves_ahead(day)]
    lived_in = set(residents.MOVED_IN)
    assert units - taken >= lived_in and len({move.key for move in calls}) == len(calls)
    assert {move.unit for move in calls if move.verb == "notice"} <= lived_in
    for move in residents.moves(day):
        lease_ends = move.body.get("lease_end_date", "9999")
        assert move.verb == "notice" or move.body["move_in_date"] < day.isoformat() <= lease_ends
    for move in calls:
        for party in move.body.get("parties", []):
            assert party["email"].endswith("@example.com") and party["phone"].startswith("+1 555 01")
            assert len(party["phone"]) <= 20


def test_an_earlier_resident_left_before_the_next_one_came(day: datetime.date) -> None:
    """Days that a unit stood empty are weeks, not years."""
    came = {unit: (day - datetime.timedelta(days)).isoformat() for unit, days in residents.MOVED_IN.items()}
    turns = story.rows(day)["turns"]
    came |= {row["unit"]: row["move_in_date"] for row in turns if row["status"] == "Active" and row.get("move_in_date")}
    gaps = []
    for row in turns:
        if row["status"] == "Completed" and row["unit"] in came:
            moved_out, next_came = map(datetime.date.fromisoformat, (row["move_out_date"], came[row["unit"]]))
            gaps.append((next_came - moved_out).days)
    assert len(gaps) > 20 and min(gaps) > 0 and max(gaps) < 60, sorted(gaps)


def test_units_are_let_ahead_one_of_them_too_early_and_one_from_tomorrow(day: datetime.date) -> None:
    leaves: dict[str, str] = {}
    comes: dict[str, str] = {}
    for move in (*residents.moves(day), *residents.moves_ahead(day)):
        if move.verb == "notice":
            leaves[move.unit] = move.body["move_out_date"]
        elif move.body["move_in_date"] > day.isoformat():
            comes[move.unit] = move.body["move_in_date"]
    ahead = {unit: comes[unit] >= leaves[unit] for unit in comes if unit in leaves}
    assert sorted(ahead.values()) == [False, True, True]
    tomorrow = (day + datetime.timedelta(1)).isoformat()
    assert [unit for unit in comes if unit not in leaves] == ["P-600-A02"] and comes["P-600-A02"] == tomorrow
    # On vacant units the files plan move-ins, too: residencies that have not begun have no other date.
    rows = [row for row in story.rows(day)["turns"] if row["status"] == "Active"]
    planned = [row for row in rows if row["move_in_date"] and row["move_in_date"] > day.isoformat()]
    assert planned and all(row["unit_status"] == "Vacant Ready" for row in planned)


def test_meters_have_more_than_two_years_of_readings_with_a_gap_a_jump_and_estimates(day: datetime.date) -> None:
    readings: dict[str, list[dict[str, Any]]] = {}
    for reading in story.rows(day)["readings"]:
        readings.setdefault(reading["meter"], []).append(reading)
    assert len(readings["M-100-W"]) == 26 and sum(reading["is_estimated"] for reading in readings["M-100-W"]) >= 1
    used = [reading["consumption"] for reading in readings["M-100-W"]]
    assert max(used) > 2 * sorted(used)[-2]
    ends = [reading["period_end"] for reading in readings["M-400-W"][:-1]]
    starts = [reading["period_start"] for reading in readings["M-400-W"][1:]]
    assert sum(end != start for end, start in zip(ends, starts, strict=True)) == 1
