"""Commands of the back office: they take effect once for each key, despite crashes, and write an audit entry."""

from __future__ import annotations

import asyncio
import datetime
import json
import secrets
from collections import Counter
from typing import Any

import grpc
import pytest
from sqlalchemy import select

from chassis.auth.identity import ADMINISTRATOR, OPERATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.catalog.v1 import place_commands_pb2 as pb
from makeready.common.v1 import retention_pb2
from makeready.common.v1.audit_pb2 import ListAuditRequest
from makeready.events.v1.events_pb2 import Event
from svc_catalog import schema
from testkit.patience import PATIENCE_SECONDS

OAK = {"name": "Oak Hall", "address": "2 Oak St"}


async def refusal(call: Any) -> Refusal:
    with pytest.raises(Refusal) as refused:
        await call
    assert refused.value.message.endswith(".")
    return refused.value


async def effects(company: Any, database: Database) -> dict[str, int]:
    """How many properties, audit entries, events and claims the company has."""
    messages = await database.rows(Statement(select(schema.outbox.c.message)))
    claims = Statement(
        select(schema.idempotency.c.idempotency_key).where(schema.idempotency.c.company_id == company.id)
    )
    return {
        "properties": len(await company.list("properties")),
        "entries": len(await company.audit()),
        "events": sum(Event.FromString(row["message"]).company_id == company.id for row in messages),
        "claims": len(await database.rows(claims)),
    }


ONE_OF_EACH = {"properties": 1, "entries": 1, "events": 1, "claims": 1}
NOTHING = dict.fromkeys(ONE_OF_EACH, 0)


async def test_the_same_request_again_is_answered_as_it_was_and_has_no_second_effect(
    company: Any, database: Database
) -> None:
    first = await company.command(pb, "AddProperty", idempotency_key="K", **OAK)
    await company.command(pb, "UpdateProperty", property_id=first.document.entity_id, name="Oak House")
    again = await company.command(pb, "AddProperty", idempotency_key="K", **OAK)
    assert again == first, "what was answered then, whatever became of the record"
    assert len(await company.list("properties")) == 1


async def test_a_key_that_was_used_for_something_else_is_refused(company: Any, database: Database) -> None:
    first = await company.command(pb, "AddProperty", idempotency_key="K", **OAK)
    for rpc, values in (
        ("AddProperty", OAK | {"name": "Other"}),
        ("AddProperty", OAK | {"city": ""}),
        ("UpdateProperty", {"property_id": first.document.entity_id, "name": "Oak Hall"}),
    ):
        refused = await refusal(company.command(pb, rpc, idempotency_key="K", **values))
        assert (refused.status, refused.code) == (409, "idempotency_mismatch")
    assert await effects(company, database) == ONE_OF_EACH


async def test_a_key_is_one_actors_own_in_one_company(company: Any, other: Any) -> None:
    people = [
        company.operator,
        Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=7),
        Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=8),
        Identity(OPERATOR, "operator", other.id),
    ]
    responses = [await company.command(pb, "AddProperty", who, idempotency_key="K", **OAK) for who in people]
    assert len({response.document.entity_id for response in responses}) == 4
    assert [entry.actor for entry in await company.audit()] == ["operator", "administrator:7", "administrator:8"]


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", "idempotency_key_required"),
        ("k" * 65, "invalid_request"),
        ("a\nb", "invalid_request"),
        ("ключ", "invalid_request"),
    ],
)
async def test_a_key_is_1_to_64_printable_characters(company: Any, database: Database, key: str, code: str) -> None:
    request = pb.AddPropertyRequest(idempotency_key=key, name="Oak Hall", address="2 Oak St")
    refused = await refusal(company.catalog("AddProperty", request, company.operator))
    assert (refused.status, refused.code) == (400, code)
    assert await effects(company, database) == NOTHING


async def test_a_refused_act_leaves_its_key_free(company: Any, database: Database) -> None:
    refused = await refusal(company.command(pb, "UpdateProperty", idempotency_key="K", property_id=2**62, name="x"))
    assert refused.status == 404
    assert await effects(company, database) == NOTHING
    await company.command(pb, "AddProperty", idempotency_key="K", **OAK)
    assert await effects(company, database) == ONE_OF_EACH


async def test_a_key_in_flight_is_refused_and_answered_afterwards(company: Any, elm: Any, database: Database) -> None:
    act = {"idempotency_key": "K", "property_id": elm["entity_id"], "name": "Elm House"}
    async with database.transaction() as connection:
        await connection.raw.execute("SELECT 1 FROM property WHERE id = $1 FOR UPDATE", elm["entity_id"])
        first = asyncio.create_task(company.command(pb, "UpdateProperty", **act))
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        async with database.connection() as watching, asyncio.timeout(PATIENCE_SECONDS):
            while not await watching.raw.fetchval(waiting):  # noqa: ASYNC110 - a lock sets no event
                await asyncio.sleep(0.01)
        refused = await refusal(company.command(pb, "UpdateProperty", **act))
        assert (refused.status, refused.code) == (409, "idempotency_in_progress")
        assert not first.done()
    answered = await first
    assert await company.command(pb, "UpdateProperty", **act) == answered


async def test_of_many_at_once_one_has_the_effect(company: Any, database: Database) -> None:
    answers: list[Any] = await asyncio.gather(
        *(company.command(pb, "AddProperty", idempotency_key="K", **OAK) for _ in range(20)), return_exceptions=True
    )
    outcomes = Counter(answer.code if isinstance(answer, Refusal) else answer.document.entity_id for answer in answers)
    outcomes.pop("idempotency_in_progress", 0)
    (record,) = await company.list("properties")
    assert set(outcomes) == {record["entity_id"]}
    assert await effects(company, database) == ONE_OF_EACH


@pytest.mark.parametrize("point", ["write-decided", "write-before-commit", "write-after-commit"])
async def test_an_act_cut_off_in_between_happens_once(
    company: Any, service: Any, database: Database, point: str
) -> None:
    await asyncio.to_thread(service.stop)
    await asyncio.to_thread(service.start, MAKEREADY_KILL_AT=point)
    with pytest.raises(grpc.aio.AioRpcError):
        await company.command(pb, "AddProperty", idempotency_key="K", **OAK)
    assert await asyncio.to_thread(service.process.wait, 20) == -9, f"{point} was not reached"
    await asyncio.to_thread(service.start)
    before = await effects(company, database)
    assert before == (ONE_OF_EACH if point == "write-after-commit" else NOTHING)
    response = await company.command(pb, "AddProperty", idempotency_key="K", **OAK)
    (record,) = await company.list("properties")
    assert json.loads(response.document.json) == record
    assert await effects(company, database) == ONE_OF_EACH


async def test_a_key_is_kept_for_30_days(company: Any, service: Any) -> None:
    key = secrets.token_hex(8)
    first = await company.command(pb, "AddProperty", idempotency_key=key, **OAK)
    now = datetime.datetime.now(datetime.UTC)
    async with service.channel() as channel:
        for days, same in ((29, True), (31, False)):
            request = retention_pb2.SweepRetentionRequest(yes_for_all_companies=True)
            request.now.FromDatetime(now + datetime.timedelta(days=days))
            await service.call(channel, request, Identity(OPERATOR, "operator"))
            again = await company.command(pb, "AddProperty", idempotency_key=key, **OAK)
            assert (again == first) is same
    assert len(await company.list("properties")) == 2


# The audit log


async def test_an_entry_says_who_did_what_before_and_after_in_which_request(company: Any) -> None:
    administrator = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=7)
    before = datetime.datetime.now(datetime.UTC)
    added = (await company.command(pb, "AddProperty", administrator, city="Boston", **OAK)).document
    await company.command(pb, "UpdateProperty", property_id=added.entity_id, name="Oak House", clear=["city"])
    first, second = await company.audit()
    assert (first.actor, first.action, first.subject) == ("administrator:7", "property.added", "property")
    assert first.subject_id == second.subject_id == added.entity_id
    assert json.loads(first.before) == {}
    assert json.loads(first.after) == OAK | {"city": "Boston"}
    assert (second.actor, second.action) == ("operator", "property.updated")
    assert json.loads(second.before) == {"name": "Oak Hall", "city": "Boston"}
    assert json.loads(second.after) == {"name": "Oak House", "city": None}
    assert first.request_id == second.request_id == "req-test"
    times = [entry.recorded_at.ToDatetime(datetime.UTC) for entry in (first, second)]
    assert before <= times[0] < times[1] <= datetime.datetime.now(datetime.UTC)


async def test_entries_are_listed_by_kind_by_record_and_page_by_page(company: Any, other: Any) -> None:
    ids = [(await company.command(pb, "AddProperty", **OAK)).document.entity_id for _ in range(3)]
    unit = (await company.command(pb, "AddUnit", property_id=ids[0], name="1")).document.entity_id
    await company.command(pb, "UpdateProperty", property_id=ids[1], name="Oak House")
    every = await company.audit()
    assert [(entry.subject, entry.subject_id) for entry in every] == [
        *(("property", entity_id) for entity_id in ids),
        ("unit", unit),
        ("property", ids[1]),
    ]
    assert await company.audit("unit") == [every[3]]
    assert await company.audit("property", ids[1]) == [every[1], every[4]]
    assert await company.audit("unit", ids[1]) == []
    assert await other.audit() == []

    pages, before = [], None
    while True:
        request = ListAuditRequest(limit=2, before_id=before)
        page = (await company.catalog("ListAudit", request, company.operator)).entries
        if not page:
            break
        pages += page
        before = page[-1].id
    assert pages == every[::-1]
    for bad in (
        ListAuditRequest(limit=0),
        ListAuditRequest(limit=201),
        ListAuditRequest(limit=1, subject_id=1),
    ):
        refused = await refusal(company.catalog("ListAudit", bad, company.operator))
        assert refused.status == 400


async def test_what_changes_nothing_leaves_no_entry_no_event_and_no_version(
    company: Any, elm: Any, database: Database
) -> None:
    before = await effects(company, database)
    same = (await company.command(pb, "UpdateProperty", property_id=elm["entity_id"], name="Elm Court")).document
    assert json.loads(same.json) == elm and same.version == 1
    assert await effects(company, database) == before | {"claims": 1}
