"""Integrations send readings of a meter: stored by period, each with its outcome, all or none."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chassis.auth.identity import INTEGRATION, Identity
from chassis.refusals import Refusal
from makeready.catalog.v1 import meter_commands_pb2 as pb
from svc_catalog.meters import rules

METER = {"name": "Elm electric", "utility_type": pb.UTILITY_TYPE_ELECTRIC, "unit_of_measure": "kWh"}


def of_month(month: int, consumption: object = 10, **more: Any) -> dict[str, Any]:
    start, end = f"2026-{month:02}-01T00:00:00Z", f"2026-{month + 1:02}-01T00:00:00Z"
    return {"period_start": start, "period_end": end, "consumption": consumption, **more}


@pytest.fixture
async def meter_id(company: Any, elm: Any) -> int:
    document = (await company.command(pb, "AddMeter", property_id=elm["entity_id"], **METER)).document
    entity_id: int = document.entity_id
    return entity_id


def writer(company: Any) -> Identity:
    return Identity(INTEGRATION, "gateway", company.id, 4, "write", 3)


async def send(company: Any, meter_id: int, body: object, key: str = "", who: Identity | None = None) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = pb.AddMeterReadingsRequest(meter_id=meter_id, idempotency_key=key or secrets.token_hex(8), body=raw)
    return (await company.catalog("AddMeterReadings", request, who or writer(company))).reply


async def outcomes(company: Any, meter_id: int, *rows: Any) -> list[tuple[int, str]]:
    reply = await send(company, meter_id, {"readings": rows})
    assert reply.status == 200
    return [(result["entity_id"], result["outcome"]) for result in json.loads(reply.body)["data"]]


async def stored(company: Any, meter_id: int) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = await company.list("readings", meter_id=meter_id)
    return records


async def test_a_reading_is_stored_by_its_period(company: Any, meter_id: int) -> None:
    """Sent again it changes nothing, with another value it is corrected; what is left out stays."""
    march, february = of_month(3, 812.5, cost=61, is_estimated=True), of_month(2, -3, unit_of_measure="MWh")
    (march_id, _), (february_id, _) = first = await outcomes(company, meter_id, march, february)
    assert [outcome for _, outcome in first] == ["created", "created"] and february_id < march_id
    records = {record["entity_id"]: record for record in await stored(company, meter_id)}
    names = ("period_start", "consumption", "unit_of_measure", "cost", "is_estimated", "external_id", "source")
    assert [[record[name] for name in names] for record in records.values()] == [
        ["2026-02-01T00:00:00.000000Z", -3.0, "MWh", None, False, None, "api"],
        ["2026-03-01T00:00:00.000000Z", 812.5, "kWh", 61.0, True, None, "api"],
    ]
    again = [of_month(2, -3), of_month(3, 812.5, cost=None), of_month(4, 1)]
    assert [outcome for _, outcome in await outcomes(company, meter_id, *again)] == ["unchanged"] * 2 + ["created"]
    changed = await outcomes(company, meter_id, of_month(3, 813), of_month(2, -3, unit_of_measure="MWh"))
    assert changed == [(march_id, "changed"), (february_id, "unchanged")]
    after = {record["entity_id"]: record for record in await stored(company, meter_id)}
    assert after[march_id] == records[march_id] | {"consumption": 813.0}
    assert after[february_id] == records[february_id] and len(after) == 3
    entries = await company.audit("meter", meter_id)
    assert [(entry.actor, entry.action, json.loads(entry.after)) for entry in entries[1:]] == [
        ("caller:4", "meter.readings_added", {"created": 2, "changed": 0}),
        ("caller:4", "meter.readings_added", {"created": 1, "changed": 0}),
        ("caller:4", "meter.readings_added", {"created": 0, "changed": 1}),
    ]


async def test_readings_of_files_and_of_staff_are_found_too(company: Any, meter_id: int) -> None:
    await company.command(pb, "UpdateMeter", meter_id=meter_id, external_id="M1")
    january = {"period_start": "2026-01-01", "period_end": "2026-02-01", "consumption": 7}
    assert await company.put("readings", {"external_id": "R1", "meter": "M1", **january}) == ["created"]
    recorded = (await company.command(pb, "RecordReading", meter_id=meter_id, **january)).document
    # Of several readings of a period the newest.
    assert await outcomes(company, meter_id, of_month(1, 8)) == [(recorded.entity_id, "changed")]
    assert [(record["consumption"], record["source"]) for record in await stored(company, meter_id)] == [
        (7.0, "import"),
        (8.0, "staff"),
    ]


async def test_a_replay_returns_the_first_outcomes(company: Any, meter_id: int) -> None:
    body, key = {"readings": [of_month(1)]}, secrets.token_hex(8)
    first = await send(company, meter_id, body, key)
    await outcomes(company, meter_id, of_month(1, 11))
    again = await send(company, meter_id, body, key)
    assert (again.body, again.replayed) == (first.body, True)
    assert [record["consumption"] for record in await stored(company, meter_id)] == [11.0]
    with pytest.raises(Refusal) as refused:
        await send(company, meter_id, {"readings": [of_month(1, 12)]}, key)
    assert refused.value.code == "idempotency_mismatch"


@pytest.mark.parametrize(
    ("rows", "field"),
    [
        ([], "readings"),
        ([of_month(1)] * 501, "readings"),
        ([of_month(1), of_month(1, 11)], "readings[1]"),
        ([of_month(2), of_month(1) | {"period_end": "2025-12-31T00:00:00Z"}], "readings[1].period_end"),
        ([of_month(1) | {"period_start": "2026-01-01"}], "readings[0].period_start"),
        ([of_month(1) | {"period_start": "2026-01-01T00:00:00"}], "readings[0].period_start"),
        ([of_month(1, "10")], "readings[0].consumption"),
        ([of_month(1, 1e16)], "readings[0].consumption"),
        ([of_month(1, None)], "readings[0].consumption"),
        ([of_month(1, cost=-1e16)], "readings[0].cost"),
        ([of_month(1, unit_of_measure="x" * 51)], "readings[0].unit_of_measure"),
        ([of_month(1, is_estimated="yes")], "readings[0].is_estimated"),
        ([of_month(1, external_id="R1")], "readings[0]"),
        ([5], "readings[0]"),
    ],
)
async def test_one_bad_reading_is_named_and_none_is_stored(
    company: Any, meter_id: int, rows: Sequence[Any], field: str
) -> None:
    with pytest.raises(Refusal) as refused:
        await send(company, meter_id, {"readings": [*rows, of_month(5)] if 0 < len(rows) < 500 else rows})
    assert (refused.value.status, refused.value.code, refused.value.field) == (400, "invalid_request", field)
    assert await stored(company, meter_id) == []


async def test_another_companys_meter_is_unknown_and_a_key_needs_an_administrator(company: Any, meter_id: int) -> None:
    body = {"readings": [of_month(1)]}
    stranger = replace(writer(company), company_id=company.id + 10**9)
    answers = []
    for entity_id, who in ((meter_id, stranger), (10**15, stranger), (10**15, writer(company))):
        with pytest.raises(Refusal) as refused:
            await send(company, entity_id, body, "", who)
        answers.append((refused.value.status, refused.value.code, refused.value.message))
    assert set(answers) == {(404, "not_found", "The company has no meter with that id; check the id.")}
    for entity_id in (meter_id, 10**15):
        with pytest.raises(Refusal) as refused:
            await send(company, entity_id, body, "", replace(writer(company), administrator_id=None))
        assert (refused.value.status, refused.value.code) == (422, "created_by_missing")
    assert await stored(company, meter_id) == []


async def test_twenty_writers_of_the_same_periods_store_each_once(company: Any, meter_id: int) -> None:
    """Half of them send the periods in the other order, and corrections of staff come in between."""
    rows = [of_month(month) for month in range(1, 12)]
    document = (await company.command(pb, "RecordReading", meter_id=meter_id, **rows[0])).document
    correction = {"meter_id": meter_id, "reading_id": document.entity_id, "consumption": 10}
    results = await asyncio.gather(
        *(outcomes(company, meter_id, *(rows if number % 2 else rows[::-1])) for number in range(20)),
        *(company.command(pb, "CorrectReading", **correction) for _ in range(5)),
    )
    each = [outcome for result in results[:20] for _, outcome in result]
    assert each.count("created") == 10 and each.count("changed") == 0
    assert len(await stored(company, meter_id)) == 11


async def test_as_many_as_one_request_may_have_are_stored_at_once(company: Any, meter_id: int) -> None:
    rows = [
        {
            "period_start": f"2026-01-{1 + hour // 24:02}T{hour % 24:02}:00:00-05:00",
            "period_end": f"2026-01-{1 + hour // 24:02}T{hour % 24:02}:59:59.999999-05:00",
            "consumption": hour / 8,
        }
        for hour in range(rules.READINGS_MAX)
    ]
    first = await outcomes(company, meter_id, *rows)
    assert {outcome for _, outcome in first} == {"created"} and len({entity_id for entity_id, _ in first}) == 500
    assert await outcomes(company, meter_id, *rows[::-1]) == [(entity_id, "unchanged") for entity_id, _ in first[::-1]]
