"""People find residents, where they live, and who has looked is on record."""

from __future__ import annotations

import datetime
import json
import time
from typing import Any

import pytest
from sqlalchemy import text

from chassis.auth.identity import ADMINISTRATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.occupancy.v1 import parties_pb2
from makeready.occupancy.v1 import resident_search_pb2 as pb
from svc_occupancy.search.indexing import PartyIndexing
from testkit.clocks import today

from ..harness import Company, until

ANA = {
    "first_name": "Ana", "last_name": "Ortiz", "role": "leaseholder", "email": "Ana.Ortiz@example.com",
    "phone": "+1 (503) 555-0142",
}  # fmt: skip
BEN = {"first_name": "Ben", "last_name": "Ortizano", "role": "leaseholder"}


async def search(company: Company, words: str, who: Identity | None = None, **more: Any) -> pb.SearchResidentsResponse:
    request = pb.SearchResidentsRequest(words=words, **more)
    response: pb.SearchResidentsResponse = await company.house("SearchResidents", request, who or company.staff)
    return response


async def names(company: Company, words: str) -> list[tuple[str, str, str]]:
    return [
        (resident.first_name, resident.unit, resident.status) for resident in (await search(company, words)).residents
    ]


async def looks(company: Company) -> list[tuple[str, int, Any]]:
    return [
        (actor, unit_id, after)
        for actor, action, unit_id, _, after in await company.audited()
        if action == "unit.contacts_viewed"
    ]


async def in_units(company: Company, served: Database, *external_ids: str) -> list[int]:
    await company.make_units(*external_ids)
    ids = await company.unit_ids()

    async def arrived() -> Any:
        units = text("SELECT count(*) FROM unit WHERE company_id = :company_id AND version > 0")
        return await served.value(Statement(units), company_id=company.id)

    await until(arrived, len(ids))
    return [ids[external_id] for external_id in external_ids]


async def test_those_who_live_there_are_before_those_who_will_and_those_who_did(
    company: Company, served: Database
) -> None:
    first, second, third = await in_units(company, served, "U1", "U2", "U3")
    soon = (today() + datetime.timedelta(days=30)).isoformat()
    coming = {"move_in_date": soon, "lease_start_date": soon}
    turns = {}
    turns["future"] = (await company.move_in(second, parties=[ANA], **coming))["entity_id"]
    turns["former"] = (await company.move_in(third, parties=[ANA]))["entity_id"]
    await company.notice(third, "2026-01-31")
    await company.move_in(third, parties=[BEN])
    turns["current"] = (await company.move_in(first, parties=[{**BEN, "role": "guarantor"}, ANA]))["entity_id"]

    async def statuses() -> list[str]:
        return [status for _, _, status in await names(company, "ortiz")]

    # The whole word is before its beginning.
    await until(statuses, ["current", "current", "current", "future", "former"])
    assert await names(company, "Ortiz") == [
        ("Ana", "Unit U1", "current"),
        ("Ben", "Unit U1", "current"),
        ("Ben", "Unit U3", "current"),
        ("Ana", "Unit U2", "future"),
        ("Ana", "Unit U3", "former"),
    ]
    # The morning after a departure, the resident is a former one.
    await company.notice(first, "2999-01-31")
    assert (await names(company, "ana ortiz"))[0] == ("Ana", "Unit U1", "current")
    await company.command("SetUnitStatus", unit_id=first, unit_status="Vacant Not Ready")
    assert [status for _, _, status in await names(company, "ana ortiz")] == ["future", "former", "former"]

    page = await search(company, "ana", limit=2)
    assert (len(page.residents), page.has_more, page.is_close) == (2, True, False)
    resident = page.residents[0]
    assert (resident.turn_id, resident.turn_status, resident.move_in_date, resident.unit_id) == (
        turns["future"], "Active", soon, second,
    )  # fmt: skip
    assert (resident.property, resident.role, resident.last_name) == ("Elm Court", "leaseholder", "Ortiz")
    close = await search(company, "Otriz")
    assert close.is_close and [resident.turn_id for resident in close.residents] == [
        turns["future"], turns["current"], turns["former"],
    ]  # fmt: skip
    assert (await search(company, "nobody")) == (await search(company, "")) == pb.SearchResidentsResponse()


async def test_contacts_are_for_those_who_look_on_record(company: Company, served: Database) -> None:
    (unit_id,) = await in_units(company, served, "U1")
    turn_id = (await company.move_in(unit_id, parties=[ANA, BEN]))["entity_id"]

    async def hits() -> int:
        return len((await search(company, "ana")).residents)

    await until(hits, 1)
    assert not (resident := (await search(company, "ana")).residents[0]).phone and not resident.email
    await search(company, "ben", with_contacts=True)
    await search(company, "555-0199", with_contacts=True)
    assert await looks(company) == []
    boss = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=9)
    seen = (await search(company, "ana", boss, with_contacts=True)).residents[0]
    assert (seen.phone, seen.email) == (ANA["phone"], ANA["email"])
    # What a number or an address finds tells whose it is.
    for words in ("503 555 0142", "ana.ortiz@EXAMPLE.com"):
        assert [resident.phone for resident in (await search(company, words)).residents] == [""]
    after = {"turn_ids": [turn_id]}
    assert await looks(company) == [("administrator:9", unit_id, after), *[("staff:12", unit_id, after)] * 2]
    with pytest.raises(Refusal) as refused:
        await search(company, "ana", limit=51)
    assert (refused.value.status, refused.value.field) == (400, "limit")


async def test_a_person_who_is_forgotten_is_not_found_and_is_not_indexed_again(
    company: Company, served: Database
) -> None:
    (unit_id,) = await in_units(company, served, "U1")
    party_id = (await company.move_in(unit_id, parties=[ANA, BEN]))["parties"][0]["id"]

    async def rows() -> int:
        counted = text("SELECT count(*) FROM party_search WHERE company_id = :company_id")
        count: int = await served.value(Statement(counted), company_id=company.id)
        return count

    await until(rows, 2)
    boss = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=9, stepped_up_at=int(time.time()))
    request = parties_pb2.ForgetPartyRequest(idempotency_key="forget", party_id=party_id)
    await company.house("ForgetParty", request, boss)
    assert await rows() == 1 and await names(company, "ana") == []
    indexing = PartyIndexing(served)
    assert await indexing.compare() == 0 and await rows() == 1

    # What a kill has lost, and what the release before has left, the comparison finds.
    stored = json.dumps({"company_id": company.id, "id": party_id, "transition_id": 1})
    async with served.transaction() as connection:
        await connection.raw.execute("DELETE FROM party_search WHERE company_id = $1", company.id)
        await connection.raw.execute(
            "INSERT INTO party_search SELECT company_id, id, transition_id, array_to_tsvector('{7/nana}')"
            " FROM json_populate_record(NULL::party_search, $1::json)", stored,
        )  # fmt: skip
    assert await indexing.compare() == 2
    assert await rows() == 1 and [first for first, *_ in await names(company, "ortiz")] == ["Ben"]
