"""Imports after feeds: which row refers to which turn that a feed created."""

from __future__ import annotations

from typing import Any

import pytest

from ..harness import Company


@pytest.fixture
async def units(company: Company) -> dict[str, int]:
    """Two units without turns."""
    await company.make_units("U1", "U2")
    return await company.unit_ids()


async def turns(company: Company) -> list[tuple[Any, ...]]:
    names = ("entity_id", "external_id", "source", "status")
    return [tuple(turn[name] for name in names) for turn in await company.turns()]


async def test_one_external_id_may_be_fed_many_times(company: Company, units: dict[str, int]) -> None:
    first = await company.move_in(units["U1"], external_id="R1")
    other = await company.move_in(units["U2"], external_id="R1")
    assert await turns(company) == [
        (first["entity_id"], "R1", "api", "Active"),
        (other["entity_id"], "R1", "api", "Active"),
    ]


async def test_a_row_means_the_turn_that_a_feed_made_in_its_unit(company: Company, units: dict[str, int]) -> None:
    fed = await company.move_in(units["U1"], external_id="R1")
    other = await company.move_in(units["U2"], external_id="R1")
    row = {"external_id": "R1", "unit": "U2", "move_out_date": "2999-01-31"}
    assert await company.put("turns", row) == ["changed"]
    assert await company.put("turns", row) == ["unchanged"]
    first, second = await company.turns()
    assert (first["entity_id"], first["move_out_date"]) == (fed["entity_id"], None)
    assert (second["entity_id"], second["move_out_date"]) == (other["entity_id"], "2999-01-31")
    assert second["source"] == "api" and second["occupancy_source"] == "feed"


async def test_a_row_means_the_newest_of_those_that_a_feed_made_in_its_unit(
    company: Company, units: dict[str, int]
) -> None:
    old = await company.move_in(units["U1"], external_id="R1")
    await company.notice(units["U1"], "2020-01-31")
    new = await company.move_in(units["U1"], external_id="R1")
    assert await company.put("turns", {"external_id": "R1", "unit": "U1", "move_in_date": "2026-02-02"}) == ["changed"]
    dates = {turn["entity_id"]: turn["move_in_date"] for turn in await company.turns()}
    assert dates == {old["entity_id"]: "2026-01-01", new["entity_id"]: "2026-02-02"}


async def test_a_file_finds_its_own_turns_again_whatever_is_fed(company: Company, units: dict[str, int]) -> None:
    row = {"external_id": "R1", "unit": "U1"}
    assert await company.put("turns", row) == ["created"]
    fed = await company.move_in(units["U2"], external_id="R1")
    assert await company.put("turns", row) == ["unchanged"]
    assert await company.put("turns", row | {"unit": "U2"}) == ["rejected unit"]
    await company.notice(units["U1"], "2020-01-31")
    again = await company.move_in(units["U1"], external_id="R1")
    assert await company.put("turns", row | {"move_out_date": "2020-01-31"}) == ["unchanged"]
    statuses = {turn["entity_id"]: turn["status"] for turn in await company.turns()}
    assert statuses[fed["entity_id"]] == statuses[again["entity_id"]] == "Active" and len(statuses) == 3


async def test_a_file_that_names_the_resident_otherwise_does_not_drive_out_who_a_feed_moved_in(
    company: Company, units: dict[str, int]
) -> None:
    fed = await company.move_in(units["U1"], external_id="R1")
    assert await company.put("turns", {"external_id": "F1", "unit": "U1"}) == ["rejected unit"]
    ended = {"external_id": "R1", "unit": "U1", "status": "Completed"}
    assert await company.put("turns", ended, {"external_id": "F1", "unit": "U1"}) == ["changed", "created"]
    (first, second) = await turns(company)
    assert first == (fed["entity_id"], "R1", "api", "Completed") and second[1:] == ("F1", "import", "Active")


async def test_a_feed_goes_on_with_the_turn_that_a_file_made(company: Company, units: dict[str, int]) -> None:
    await company.put("turns", {"external_id": "T1", "unit": "U1", "move_in_date": "2024-04-01"})
    turn = await company.turn("T1")
    record = await company.notice(units["U1"], external_id="N1")
    assert (record["entity_id"], record["move_in_date"]) == (turn["entity_id"], "2024-04-01")
    assert (await company.turn("T1"))["source"] == "import"
    assert await company.put("turns", {"external_id": "T1", "unit": "U1", "move_in_date": "2024-04-01"}) == [
        "unchanged"
    ]
    # A file with a blank move_out_date cancels the notice.
    assert await company.put("turns", {"external_id": "T1", "unit": "U1", "move_out_date": ""}) == ["changed"]
    assert (await company.turn("T1"))["move_out_date"] is None
