"""Meters and their readings for people: newest first, sums by month, gaps and jumps."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from svc_catalog.search.rules import Note, Period, months_before, notes

from .conftest import Ask, asks

UTC = datetime.UTC


def at(month: int, day: int = 1, year: int = 2026) -> datetime.datetime:
    return datetime.datetime(year, month, day, tzinfo=UTC)


def row(name: str, start: datetime.datetime, end: datetime.datetime, consumption: float, **more: Any) -> dict[str, Any]:
    period = {"period_start": f"{start:%Y-%m-%dT%H:%M:%SZ}", "period_end": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
    return {"external_id": name, "meter": "M1", "consumption": str(consumption), **period, **more}


@pytest.fixture
async def meter(company: Any, elm: Any) -> int:
    """The meter M1 of the property P1, with readings in another order than their periods."""
    await company.put("units", {"external_id": "U1", "property": "P1", "name": "Unit 1"})
    await company.put(
        "meters",
        {
            "external_id": "M1",
            "property": "P1",
            "name": "Main 10",
            "utility_type": "electric",
            "unit_of_measure": "kWh",
        },
        {"external_id": "M2", "property": "P1", "name": "Main 9", "utility_type": "water", "is_active": "false"},
        {"external_id": "M3", "property": "P1", "unit": "U1", "name": "Unit 1 gas", "utility_type": "gas"},
    )
    outcomes = await company.put(
        "readings",
        row("R5", at(5), at(6), 310, cost="31.00", is_estimated="true"),
        row("R1", at(1), at(2), 310),
        row("R2", at(2), at(3), 280, cost="28.00"),
        row("R3", at(3, 16), at(4, 16), 310),
        row("R6", at(6), at(7), 900),
        row("R7", at(7), at(8), 1, unit_of_measure="MWh"),
        row("R8", at(7, 10), at(7, 20), 100),
    )
    assert outcomes == ["created"] * 7
    return int((await company.by_external_id("meters"))["M1"]["entity_id"])


async def test_readings_are_newest_first_with_gaps_overlaps_and_jumps(company: Any, ask: Ask, meter: int) -> None:
    every = (await ask("ListReadingsSince", meter_id=meter)).readings
    assert [reading.external_id for reading in every] == ["R8", "R7", "R6", "R5", "R3", "R2", "R1"]
    gaps = {reading.external_id: reading.gap_seconds // 86400 for reading in every if reading.gap_seconds}
    assert gaps == {"R8": -22, "R5": 15, "R3": 15}
    jumps = {reading.external_id: round(reading.times_usual, 1) for reading in every if reading.HasField("times_usual")}
    assert jumps == {"R6": 3.0}
    assert every[3].is_estimated and every[3].cost == 31 and not every[2].HasField("cost")
    paged, before = [], 0
    for number in range(4):
        page = await ask("ListReadingsSince", meter_id=meter, limit=2, before_id=before)
        paged += [(reading.external_id, reading.gap_seconds, reading.times_usual) for reading in page.readings]
        before = page.next_before_id
        if number == 0:  # a newer reading shifts nothing
            await company.put("readings", row("R9", at(8), at(9), 300))
    assert (
        paged == [(reading.external_id, reading.gap_seconds, reading.times_usual) for reading in every] and not before
    )
    since = await ask("ListReadingsSince", meter_id=meter, since=at(6), before_id=0)
    assert [reading.external_id for reading in since.readings] == ["R9", "R8", "R7", "R6"]


async def test_sums_split_a_reading_among_its_months(company: Any, ask: Ask, meter: int, database: Database) -> None:
    sums = await ask("SumReadings", meter_id=meter, until=at(7, 21), months=8)
    months = {month.month: month for month in sums.months}
    assert list(months) == [f"2025-{month}" for month in (12,)] + [f"2026-0{month}" for month in range(1, 8)]
    assert sums.unit_of_measure == "kWh" and sums.left_out == 1
    assert [round(month.consumption) for month in sums.months] == [0, 310, 280, 160, 150, 310, 900, 100]
    assert [round(month.covered, 2) for month in sums.months] == [0, 1, 1, 0.52, 0.5, 1, 1, 0.5]
    assert (
        months["2026-05"].estimated == 310 and months["2026-02"].cost == 28 and not months["2026-01"].HasField("cost")
    )
    async with database.connection() as connection:  # midnight of New York is 5 am in UTC
        await connection.raw.execute(
            "INSERT INTO company (id, version, timezone) VALUES ($1, 1, 'America/New_York')"
            " ON CONFLICT (id) DO UPDATE SET timezone = excluded.timezone",
            company.id,
        )
    local = (await ask("SumReadings", meter_id=meter, until=at(2, 15), months=2)).months
    # Five hours of January's reading belong to December, five of February's to January.
    assert [round(month.consumption, 2) for month in local] == [
        round(310 * (1 - 5 / 744) + 280 * 5 / 672, 2), round(280 * (1 - 5 / 672), 2),
    ]  # fmt: skip


async def test_meters_are_filtered_and_have_their_last_reading(company: Any, ask: Ask, meter: int) -> None:
    async def names_of(**fields: Any) -> list[str]:
        return [row_of_meter.name for row_of_meter in (await ask("SearchMeters", **fields)).meters]

    assert await names_of() == ["Main 9", "Main 10", "Unit 1 gas"]
    assert await names_of(utility_type=["electric", "gas"]) == ["Main 10", "Unit 1 gas"]
    assert await names_of(is_active=False) == ["Main 9"] and await names_of(scope="unit") == ["Unit 1 gas"]
    unit_id = (await company.by_external_id("units"))["U1"]["entity_id"]
    assert await names_of(unit_id=unit_id) == ["Unit 1 gas"] and await names_of(limit=1, after_id=meter) == [
        "Unit 1 gas"
    ]
    rows = {row_of_meter.name: row_of_meter for row_of_meter in (await ask("SearchMeters")).meters}
    assert rows["Main 10"].last_reading.external_id == "R8" and not rows["Main 9"].HasField("last_reading")
    with pytest.raises(Refusal, match="utility_type may be electric"):
        await names_of(utility_type=["steam"])


async def test_another_companys_meter_is_nobodys(other: Any, meter: int) -> None:
    ask, messages = asks(other), set()
    for rpc in ("ListReadingsSince", "SumReadings"):
        for meter_id in (meter, 2**62):
            with pytest.raises(Refusal) as refused:
                await ask(rpc, meter_id=meter_id, **({"until": at(7)} if rpc == "SumReadings" else {}))
            messages.add((refused.value.status, refused.value.message))
    assert len(messages) == 1 and next(iter(messages))[0] == 404


def period(start: datetime.datetime, days: float, consumption: float, unit: str | None = "kWh") -> Period:
    return Period(start, start + datetime.timedelta(days=days), consumption, unit)


def test_a_jump_is_seen_against_last_year_or_else_the_readings_before() -> None:
    winter = [period(at(1) - datetime.timedelta(days=30 * n), 30, 900 if n % 12 < 3 else 100) for n in range(14)]
    assert [note.times_usual for note in notes(winter)[:1]] == [None]  # as in the winter before
    assert notes([period(at(1), 30, 300), *winter[1:]])[0].times_usual == pytest.approx(1 / 3)
    assert notes([period(at(1), 30, 900), *winter[4:9]])[0].times_usual == 9.0
    assert notes([period(at(1), 30, 900), *winter[4:6]])[0].times_usual is None  # too few to compare
    assert notes([period(at(1), 1, 900), *winter[4:9]])[0].times_usual is None  # days and nights differ
    assert notes([period(at(1), 30, 900, "MWh"), *winter[4:9]])[0].times_usual is None
    assert notes([period(at(1), 0, 5), period(at(1), 0, 5)]) == [Note(), Note()]
    assert notes([]) == []


def test_months_begin_at_the_walls_midnight() -> None:
    begins = months_before(at(2, 10), 3)
    assert [f"{begin:%Y-%m-%d}" for begin in begins] == ["2025-12-01", "2026-01-01", "2026-02-01"]
