"""Staff: the operator's import, references published by version, the answers to services that request them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import asyncpg
import grpc
import pytest

from chassis.auth.identity import SERVICE, Identity, TokenSigner
from chassis.auth.rpcs import method_on
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.common.v1.documents_pb2 import ImportOutcome, ImportRow
from makeready.events.v1.events_pb2 import Event
from makeready.identity.v1 import staff_pb2 as pb
from testkit.gateways import Gateway, Operator
from testkit.raw_http import Api

ADA = {"external_id": "S1", "name": "Ada Byrne", "email": "Ada@Example.com", "title": "Superintendent"}


async def put(operator: Operator, company_id: int, *rows: Any, dry_run: bool = False) -> list[str]:
    """The outcomes in lower case, and for a rejected row its field."""
    sent = [ImportRow(line=line, json=json.dumps(row).encode()) for line, row in enumerate(rows, start=2)]
    answer = await operator("ImportStaff", pb.ImportStaffRequest(rows=sent, dry_run=dry_run), company_id)
    return [
        f"{ImportOutcome.Name(row_result.outcome).removeprefix('IMPORT_OUTCOME_').lower()} {row_result.field}".strip()
        for row_result in answer.results
    ]


async def stored(database: Database, company_id: int) -> dict[str, asyncpg.Record]:
    async with database.connection() as connection:
        rows = await connection.raw.fetch("SELECT * FROM staff WHERE company_id = $1", company_id)
    return {row["external_id"]: row for row in rows}


async def published(database: Database, company_id: int) -> list[tuple[int, str, str]]:
    """The version, external_id and name of each published reference, in order."""
    async with database.connection() as connection:
        rows = await connection.raw.fetch("SELECT message FROM outbox ORDER BY event_id")
    events = [Event.FromString(row["message"]) for row in rows]
    return [
        (reference.version, reference.external_id, reference.name)
        for event in events
        if event.company_id == company_id
        for reference in event.references.staff
    ]


@pytest.fixture
async def batch_get_staff(gateway: Gateway, identity_keys: Path) -> Any:
    """Requests staff as svc-tickets does."""

    async def ask(company_id: int, ids: list[int], external_ids: list[str], token_company: int = 0) -> list[Any]:
        who = Identity(SERVICE, "svc-tickets", token_company or company_id)
        token = TokenSigner(identity_keys / "svc-tickets.jwk").token("gateway", who)
        request = pb.BatchGetStaffRequest(company_id=company_id, ids=ids, external_ids=external_ids)
        async with grpc.aio.insecure_channel(gateway.grpc_target) as channel:
            metadata = [("authorization", token)]
            answer = await method_on(channel, type(request))(request, metadata=metadata, timeout=60)
        return list(answer.staff)

    return ask


async def test_a_member_is_created_then_unchanged_then_changed(
    operator: Operator, company_id: int, database: Database
) -> None:
    assert await put(operator, company_id, ADA) == ["created"]
    before = (await stored(database, company_id))["S1"]
    assert (before["name"], before["email"], before["title"]) == ("Ada Byrne", "ada@example.com", "Superintendent")
    assert (before["version"], before["source"]) == (1, "import")
    assert await put(operator, company_id, ADA) == ["unchanged"]
    assert (await stored(database, company_id))["S1"] == before
    changed = {"external_id": "S1", "name": "Ada King", "title": "", "created_at": "2020-02-29"}
    assert await put(operator, company_id, changed) == ["changed"]
    after = (await stored(database, company_id))["S1"]
    assert (after["id"], after["version"], after["name"], after["title"]) == (before["id"], 2, "Ada King", None)
    assert after["email"] == "ada@example.com", "a column that the file lacks stays"
    assert after["created_at"].isoformat() == "2020-02-29T00:00:00+00:00"
    assert await published(database, company_id) == [(1, "S1", "Ada Byrne"), (2, "S1", "Ada King")]


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": 7}, "name"),
        ({"external_id": " "}, "external_id"),
        ({"external_id": "x" * 201}, "external_id"),
        ({"email": "ada"}, "email"),
        ({"email": "a@" + "b" * 150 + ".example"}, "email"),
        ({"title": "x" * 201}, "title"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"password": "secret"}, "password"),
    ],
)
async def test_a_bad_row_is_rejected_by_field_and_its_neighbours_kept(
    operator: Operator, company_id: int, database: Database, fault: dict[str, Any], field: str
) -> None:
    before, after = ADA | {"external_id": "before"}, ADA | {"external_id": "after"}
    assert await put(operator, company_id, before, ADA | fault, after) == ["created", f"rejected {field}", "created"]
    assert set(await stored(database, company_id)) == {"before", "after"}


async def test_a_dry_run_reports_the_same_and_changes_nothing(
    operator: Operator, company_id: int, database: Database
) -> None:
    assert await put(operator, company_id, ADA, {"external_id": "S2"}, dry_run=True) == ["created", "rejected name"]
    assert await stored(database, company_id) == {}
    assert await published(database, company_id) == []


async def test_members_of_two_companies_may_bear_the_same_external_id(
    operator: Operator, company_id: int, database: Database, batch_get_staff: Any
) -> None:
    other_id = await operator.company()
    assert await put(operator, company_id, ADA) == ["created"]
    assert await put(operator, other_id, ADA | {"name": "Bo"}) == ["created"]
    (member,) = await batch_get_staff(other_id, [], ["S1"])
    assert (member.name, member.company_id) == ("Bo", other_id)
    mine = (await stored(database, company_id))["S1"]["id"]
    assert await batch_get_staff(other_id, [mine], []) == []


async def test_integrations_list_and_find_staff_without_their_addresses(
    operator: Operator, company_id: int, database: Database, api: Api
) -> None:
    await put(operator, company_id, ADA, ADA | {"external_id": "S2", "name": "Bo"}, ADA | {"external_id": "S3"})
    await put(operator, await operator.company(), ADA)
    key, ids = (
        await operator.key(company_id, "read"),
        [row["id"] for row in (await stored(database, company_id)).values()],
    )
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE staff SET active = false WHERE id = $1", ids[1])
    first = await api.get("/staff?limit=2", key)
    ada = first.json["data"][0]
    assert list(ada) == [
        *("schema_version", "entity_type", "entity_id", "name", "is_active", "created_at", "external_id", "source")
    ]
    assert (ada["entity_type"], ada["name"], ada["external_id"], ada["source"]) == (
        "staff",
        "Ada Byrne",
        "S1",
        "import",
    )
    second = await api.get(f"/staff?limit=2&cursor={first.json['next_cursor']}", key)
    records = first.json["data"] + second.json["data"]
    assert [(record["entity_id"], record["is_active"]) for record in records] == [
        (ids[0], True),
        (ids[1], False),
        (ids[2], True),
    ]
    assert second.json["next_cursor"] is None and b"example.com" not in first.body + second.body
    (match,) = (await api.get("/search?external_id=S2&kind=staff", key)).json["data"]
    assert (match["entity_type"], match["entity_id"]) == ("staff", ids[1])


async def test_a_service_is_given_those_who_exist(
    operator: Operator, company_id: int, database: Database, batch_get_staff: Any
) -> None:
    await put(operator, company_id, ADA, ADA | {"external_id": "S2", "name": "Bo"}, ADA | {"external_id": "S3"})
    ids = {name: row["id"] for name, row in (await stored(database, company_id)).items()}
    members = await batch_get_staff(company_id, [ids["S1"], 2**62], ["S2", "nobody"])
    assert {(member.id, member.external_id, member.name, member.version) for member in members} == {
        (ids["S1"], "S1", "Ada Byrne", 1),
        (ids["S2"], "S2", "Bo", 1),
    }
    assert await batch_get_staff(company_id, [], []) == []


async def test_a_token_for_one_company_gives_no_others_staff(
    operator: Operator, company_id: int, batch_get_staff: Any
) -> None:
    await put(operator, company_id, ADA)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await batch_get_staff(company_id, [], ["S1"], token_company=company_id + 1)
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED


async def test_staff_of_a_company_that_does_not_exist_are_refused(operator: Operator) -> None:
    with pytest.raises(Refusal) as refused:
        await put(operator, 900_000, ADA)
    assert (refused.value.status, refused.value.code) == (404, "not_found")
