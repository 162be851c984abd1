"""Notices to residents: compose, change until published, publish once, with events as documented."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, OPERATOR, SERVICE, STAFF, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.catalog.v1 import notices_pb2 as pb
from makeready.common.v1.documents_pb2 import ImportOutcome, ImportRow
from makeready.events.v1.events_pb2 import Event
from svc_catalog.notices import rules
from testkit.event_contract import checked_outbox

NOTICES = pb.DESCRIPTOR.services_by_name["NoticesService"]
TOLD = {"subject": "Water off", "body": "From nine to noon.", "when": "Thursday"}


class Composer:
    """A member of a company who composes notices."""

    def __init__(self, company: Any, property_id: int, who: Identity | None = None) -> None:
        self.company, self.property_id = company, property_id
        self.who = who or Identity(STAFF, "gateway", company.id, staff_id=5)
        self._sent = 0

    async def __call__(self, rpc: str, **fields: Any) -> Any:
        request = GetMessageClass(NOTICES.methods_by_name[rpc].input_type)()
        if "idempotency_key" in request.DESCRIPTOR.fields_by_name:
            self._sent += 1
            fields = {"idempotency_key": f"{rpc} {self._sent}"} | fields
        if rpc in ("ComposeNotice", "PreviewNotice"):
            fields = TOLD | {"property_id": self.property_id} | fields
        for name, value in fields.items():
            if isinstance(value, list):
                getattr(request, name).extend(value)
            elif name == "as_of":
                getattr(request, name).CopyFrom(value)
            else:
                setattr(request, name, value)
        answer = await self.company.catalog(rpc, request, self.who)
        if rpc == "PreviewNotice":
            return answer
        return list(answer.notices) if rpc == "ListNotices" else answer.notice

    async def events(self) -> list[dict[str, Any]]:
        """The company's public events, each checked against its schema."""
        url = self.company.catalog.service.database_url
        published = [event async for event in checked_outbox(url, Event.FromString)]
        return [event for event in published if event["company_id"] == self.company.id]


@pytest.fixture
async def composer(company: Any, elm: dict[str, Any]) -> Composer:
    """Elm Court has Unit 1, Unit 2 and Unit 3."""
    rows = [{"external_id": f"U{n}", "property": "P1", "name": f"Unit {n}"} for n in (1, 2, 3)]
    assert await company.put("units", *rows) == ["created"] * 3
    return Composer(company, elm["entity_id"])


@pytest.fixture
async def units(company: Any, composer: Composer) -> list[int]:
    return [unit["entity_id"] for unit in await company.list("units")]


async def audited(database: Database, notice_id: int) -> list[Any]:
    async with database.connection() as connection:
        rows = await connection.raw.fetch(
            "SELECT actor, action, before::text, after::text, request_id FROM audit"
            " WHERE subject = 'notice' AND subject_id = $1 ORDER BY id",
            notice_id,
        )
    return [(row["actor"], row["action"], json.loads(row["before"]), json.loads(row["after"])) for row in rows]


@pytest.mark.parametrize(
    ("area", "count", "name", "words"),
    [
        (None, 0, None, "All units"),
        (None, 1, "Unit 4", "Unit 4"),
        (None, 2, "Unit 4", "2 units"),
        ("East building", 0, None, "East building"),
    ],
)
def test_the_audience_of_a_notice_is_described_in_words(
    area: str | None, count: int, name: str | None, words: str
) -> None:
    assert rules.audience(area, count, name) == words


async def test_a_notice_is_published_once_with_exactly_its_six_keys(
    composer: Composer, units: list[int], database: Database
) -> None:
    composed = await composer("ComposeNotice", unit_id=units[:1])
    assert not composed.HasField("published_at") and composed.source == "staff" and list(composed.unit_id) == units[:1]
    assert await composer.events() == []
    published = await composer("PublishNotice", notice_id=composed.notice_id)
    (event,) = await composer.events()
    assert event["data"] == {
        "subject": "Water off",
        "property": "Elm Court",
        "unit": "Unit 1",
        "url": f"https://app.test/notices/{composed.notice_id}",
        "created_at": event["occurred_at"],
        "when": "Thursday",
    }
    assert list(event["data"]) == ["subject", "property", "unit", "url", "created_at", "when"]
    assert event["change"] is None
    assert published.published_at.ToDatetime() == published.updated_at.ToDatetime() > composed.updated_at.ToDatetime()
    again = await composer("PublishNotice", notice_id=composed.notice_id)
    assert again == published and len(await composer.events()) == 1
    (first, second) = await audited(database, composed.notice_id)
    assert first[:3] == ("staff:5", "notice.composed", {})
    assert first[3] == TOLD | {"property_id": composer.property_id, "unit_ids": units[:1]}
    assert second == ("staff:5", "notice.published", {"published_at": None}, {"published_at": event["occurred_at"]})


async def test_what_is_composed_can_be_changed_until_it_is_published(
    composer: Composer, units: list[int], database: Database
) -> None:
    notice = await composer("ComposeNotice", area="Garage")
    assert notice.unit == "Garage"

    async def change(**fields: Any) -> Any:
        return await composer("UpdateNotice", notice_id=notice.notice_id, **fields)

    renamed = await change(subject="Garage closed", unit_id=[units[2], units[0], units[2]])
    assert (renamed.subject, renamed.unit, list(renamed.unit_id)) == ("Garage closed", "2 units", [units[0], units[2]])
    assert not renamed.HasField("area")
    assert await change(subject="Garage closed", unit_id=[units[0], units[2]]) == renamed
    assert (await change(whole_property=True)).unit == "All units"
    assert (await change(area="East building")).unit == "East building"
    cleared = await change(clear=["area"])
    assert cleared.unit == "All units"
    assert [entry[1] for entry in await audited(database, notice.notice_id)] == ["notice.composed"] + [
        "notice.updated"
    ] * 4
    await composer("PublishNotice", notice_id=notice.notice_id)
    with pytest.raises(Refusal) as refused:
        await change(subject="Too late")
    assert refused.value.status == 422
    (event,) = await composer.events()
    assert event["data"]["subject"] == "Garage closed"


async def test_many_who_publish_at_once_publish_once(composer: Composer) -> None:
    notice = await composer("ComposeNotice")
    answers = await asyncio.gather(*(composer("PublishNotice", notice_id=notice.notice_id) for _ in range(8)))
    assert all(answer == answers[0] and answer.HasField("published_at") for answer in answers)
    assert len(await composer.events()) == 1


@pytest.mark.parametrize("audience", [{}, {"area": "East building"}, {"unit_id": [0]}, {"unit_id": [2, 0, 1]}])
async def test_a_preview_is_what_would_be_published_and_stores_nothing(
    composer: Composer, units: list[int], audience: dict[str, Any]
) -> None:
    audience = {
        name: [units[unit_name] for unit_name in value] if name == "unit_id" else value
        for name, value in audience.items()
    }
    seen = await composer("PreviewNotice", **audience)
    assert await composer("ListNotices") == [] and await composer.events() == []
    composed = await composer("ComposeNotice", **audience)
    await composer("PublishNotice", notice_id=composed.notice_id)
    (event,) = await composer.events()
    event_data = json.loads(seen.event_data)
    assert list(event_data) == list(event["data"])
    assert event_data | {"url": "", "created_at": ""} == event["data"] | {"url": "", "created_at": ""}
    assert [unit.unit_id for unit in seen.units] == sorted(audience.get("unit_id", [])) == list(composed.unit_id)
    again = await composer("PreviewNotice", notice_id=composed.notice_id)
    assert json.loads(again.event_data)["url"] == event["data"]["url"]
    assert (seen.notice.subject, seen.notice.body, seen.notice.unit) == (composed.subject, composed.body, composed.unit)


async def test_a_preview_may_lack_texts_and_is_refused_as_the_notice_would_be(
    composer: Composer, other: Any, units: list[int]
) -> None:
    empty = await composer("PreviewNotice", subject="", body="", when="")
    assert json.loads(empty.event_data)["subject"] == "" and empty.notice.unit == "All units"
    for fields, status in (
        ({"subject": "x" * 201}, 400),
        ({"body": "\0"}, 400),
        ({"area": "East", "unit_id": units}, 400),
        ({"unit_id": [2**62]}, 404),
        ({"property_id": 2**62}, 404),
    ):
        with pytest.raises(Refusal) as refused:
            await composer("PreviewNotice", **fields)
        assert refused.value.status == status
    with pytest.raises(Refusal) as refused:
        await Composer(other, composer.property_id)("PreviewNotice")
    assert refused.value.status == 404


async def test_a_notice_that_has_changed_since_it_was_read_is_neither_published_nor_changed(
    composer: Composer, database: Database
) -> None:
    read = await composer("ComposeNotice")
    changed = await composer("UpdateNotice", notice_id=read.notice_id, body="From ten.", as_of=read.updated_at)
    for rpc, fields in (("PublishNotice", {}), ("UpdateNotice", {"body": "From eleven."})):
        with pytest.raises(Refusal) as refused:
            await composer(rpc, notice_id=read.notice_id, as_of=read.updated_at, **fields)
        assert (refused.value.status, refused.value.field) == (422, "as_of")
    assert await composer.events() == [] and [notice.body for notice in await composer("ListNotices")] == ["From ten."]
    published = await composer("PublishNotice", notice_id=read.notice_id, as_of=changed.updated_at)
    assert published.HasField("published_at") and len(await composer.events()) == 1
    # It says what the late one has read, or more: publishing again is no change.
    assert await composer("PublishNotice", notice_id=read.notice_id, as_of=read.updated_at) == published


async def test_a_draft_is_discarded_once_and_a_published_notice_never(
    composer: Composer, other: Any, units: list[int], database: Database
) -> None:
    draft = await composer("ComposeNotice", unit_id=units)
    with pytest.raises(Refusal) as refused:
        await Composer(other, composer.property_id)("DiscardNotice", notice_id=draft.notice_id)
    assert refused.value.status == 404
    for _ in range(2):
        assert await composer("DiscardNotice", notice_id=draft.notice_id, idempotency_key="once") == draft
    assert await composer("ListNotices") == [] and await composer.events() == []
    *_, (actor, action, before, after) = await audited(database, draft.notice_id)
    assert (actor, action, before["body"], before["unit_ids"]) == ("staff:5", "notice.discarded", TOLD["body"], units)
    assert set(after.values()) == {None}
    for rpc in ("DiscardNotice", "PublishNotice"):
        with pytest.raises(Refusal) as refused:
            await composer(rpc, notice_id=draft.notice_id)
        assert refused.value.status == 404
    published = await composer("PublishNotice", notice_id=(await composer("ComposeNotice")).notice_id)
    with pytest.raises(Refusal) as refused:
        await composer("DiscardNotice", notice_id=published.notice_id)
    assert refused.value.status == 422 and await composer("ListNotices") == [published]


async def test_a_notice_has_the_names_at_the_moment_of_its_publication(composer: Composer, units: list[int]) -> None:
    notice = await composer("ComposeNotice", unit_id=units[1:2])
    company = composer.company
    await company.put("properties", {"external_id": "P1", "name": "Ash Court", "address": "1 Elm St"})
    await company.put("units", {"external_id": "U2", "property": "P1", "name": "Penthouse"})
    published = await composer("PublishNotice", notice_id=notice.notice_id)
    (event,) = await composer.events()
    assert (event["data"]["property"], event["data"]["unit"]) == (
        "Ash Court",
        "Penthouse",
    ) and published.unit == "Penthouse"


async def test_the_same_request_again_is_answered_the_same_and_another_is_refused(composer: Composer) -> None:
    first = await composer("ComposeNotice", idempotency_key="once")
    assert await composer("ComposeNotice", idempotency_key="once") == first
    with pytest.raises(Refusal) as refused:
        await composer("ComposeNotice", idempotency_key="once", subject="Another")
    assert refused.value.code == "idempotency_mismatch"
    assert [notice.notice_id for notice in await composer("ListNotices")] == [first.notice_id]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"subject": " "}, 400),
        ({"subject": "x" * 201}, 400),
        ({"body": ""}, 400),
        ({"when": ""}, 400),
        ({"area": "East", "unit_id": [1]}, 400),
        ({"area": ""}, 400),
        ({"unit_id": [2**62]}, 404),
        ({"unit_id": [-1]}, 404),
        ({"property_id": 2**62}, 404),
        ({"idempotency_key": ""}, 400),
    ],
)
async def test_what_is_no_notice_is_refused_and_leaves_nothing(
    composer: Composer, fields: dict[str, Any], status: int
) -> None:
    with pytest.raises(Refusal) as refused:
        await composer("ComposeNotice", **fields)
    assert refused.value.status == status and refused.value.message.endswith(".")
    assert await composer("ListNotices") == []


async def test_notices_of_another_company_are_not_there(
    composer: Composer, other: Any, units: list[int], database: Database
) -> None:
    notice = await composer("ComposeNotice")
    assert await other.put("properties", {"external_id": "P1", "name": "Far House", "address": "2 Far"}) == ["created"]
    (far,) = await other.list("properties")
    stranger = Composer(other, far["entity_id"])
    for rpc, fields in (
        ("UpdateNotice", {"notice_id": notice.notice_id, "subject": "Mine"}),
        ("PublishNotice", {"notice_id": notice.notice_id}),
        ("DiscardNotice", {"notice_id": notice.notice_id}),
        ("ComposeNotice", {"property_id": composer.property_id}),
        ("ComposeNotice", {"unit_id": units[:1]}),
    ):
        with pytest.raises(Refusal) as refused:
            await stranger(rpc, **fields)
        assert refused.value.status == 404 and "company" in refused.value.message
    assert await stranger("ListNotices") == [] and await stranger.events() == []
    assert [listed_notice.subject for listed_notice in await composer("ListNotices")] == ["Water off"]


async def test_an_external_id_is_of_one_notice(composer: Composer) -> None:
    await composer("ComposeNotice", external_id="N1")
    for rpc, more in (
        ("ComposeNotice", {}),
        ("UpdateNotice", {"notice_id": (await composer("ComposeNotice")).notice_id}),
    ):
        with pytest.raises(Refusal) as refused:
            await composer(rpc, external_id="N1", **more)
        assert refused.value.status == 422 and "external_id" in refused.value.message


async def test_the_list_ascends_in_pages_and_by_property(company: Any, composer: Composer, units: list[int]) -> None:
    notice_ids = [(await composer("ComposeNotice", subject=f"S{n}", unit_id=units[:n])).notice_id for n in range(4)]
    assert [notice.unit for notice in await composer("ListNotices")] == ["All units", "Unit 1", "2 units", "3 units"]
    first = await composer("ListNotices", limit=3)
    second = await composer("ListNotices", limit=3, after_id=first[-1].notice_id)
    assert [notice.notice_id for notice in (*first, *second)] == notice_ids
    assert await composer("ListNotices", property_id=2**62) == []
    assert len(await composer("ListNotices", property_id=composer.property_id)) == 4
    for limit in (0, 201):
        with pytest.raises(Refusal):
            await composer("ListNotices", limit=limit)


OPEN = {OPERATOR, ADMINISTRATOR, STAFF}


@pytest.mark.parametrize("rpc", [*NOTICES.methods], ids=lambda rpc: str(rpc.name))
@pytest.mark.parametrize("kind", [INTEGRATION, SERVICE, OPERATOR, ADMINISTRATOR, STAFF])
async def test_each_rpc_is_open_to_its_kinds_alone(company: Any, rpc: Any, kind: str) -> None:
    who = Identity(kind, {OPERATOR: "operator", SERVICE: "svc-tickets"}.get(kind, "gateway"), company.id)
    is_open = kind in (OPEN - {STAFF} if rpc.name.startswith("Import") else OPEN)
    try:
        await company.catalog(rpc.name, GetMessageClass(rpc.input_type)(), who)
    except Refusal:
        assert is_open
    except grpc.aio.AioRpcError as error:
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED and not is_open
    else:
        assert is_open


@pytest.mark.parametrize("point", ["write-decided", "write-before-commit", "write-after-commit"])
async def test_a_publication_cut_off_at_any_point_happens_once(composer: Composer, point: str) -> None:
    service = composer.company.catalog.service
    notice = await composer("ComposeNotice")
    service.stop()
    service.start(MAKEREADY_KILL_AT=point)
    try:
        with pytest.raises(grpc.aio.AioRpcError):
            await composer("PublishNotice", notice_id=notice.notice_id, idempotency_key="cut off")
        service.process.wait(20)
        assert service.process.returncode == -9, f"{point} was not reached"
    finally:
        service.kill()
        service.start()
    reply = await composer("PublishNotice", notice_id=notice.notice_id, idempotency_key="cut off")
    assert reply == await composer("PublishNotice", notice_id=notice.notice_id, idempotency_key="cut off")
    assert len(await composer.events()) == 1


# Imports

ROW = {"external_id": "N1", "property": "P1", **TOLD}
LONG_AGO = "2024-01-02T03:04:05.000000Z"


async def put(composer: Composer, *rows: dict[str, Any], events: bool = False, dry_run: bool = False) -> list[str]:
    company = composer.company
    sent = [ImportRow(line=line, json=json.dumps(row).encode()) for line, row in enumerate(rows, start=2)]
    request = pb.ImportNoticesRequest(rows=sent, events=events, dry_run=dry_run)
    results = (await company.catalog("ImportNotices", request, company.operator)).results
    names = [ImportOutcome.Name(result.outcome).removeprefix("IMPORT_OUTCOME_").lower() for result in results]
    return [f"{name} {result.field}".strip() for name, result in zip(names, results, strict=True)]


async def test_an_import_is_silent_and_changes_nothing_the_second_time(composer: Composer, units: list[int]) -> None:
    rows = [
        ROW | {"unit": "U2", "published_at": LONG_AGO},
        ROW | {"external_id": "N2", "area": "Garage"},
        ROW | {"external_id": "N3"},
    ]
    assert await put(composer, *rows, dry_run=True) == ["created"] * 3
    assert await composer("ListNotices") == []
    assert await put(composer, *rows) == ["created"] * 3
    assert await put(composer, *rows) == ["unchanged"] * 3
    listed = await composer("ListNotices")
    assert [notice.unit for notice in listed] == ["Unit 2", "Garage", "All units"]
    assert [notice.HasField("published_at") for notice in listed] == [True, False, False]
    assert {notice.source for notice in listed} == {"import"} and await composer.events() == []


async def test_an_import_of_published_notices_fires_events_only_on_request(composer: Composer) -> None:
    assert await put(composer, ROW, events=True) == ["created"] and await composer.events() == []
    for outcome in ("changed", "unchanged"):
        assert await put(composer, ROW | {"published_at": LONG_AGO, "unit": "U3"}, events=True) == [outcome]
        (event,) = await composer.events()
        assert event["data"]["unit"] == "Unit 3" and event["data"]["created_at"] == event["occurred_at"] == LONG_AGO
    # A published notice stays published, whatever a later file contains.
    assert await put(composer, ROW, events=True) == ["unchanged"]
    assert await put(composer, ROW | {"published_at": ""}, events=True) == ["unchanged"]
    assert await put(composer, ROW | {"published_at": LONG_AGO, "unit": "U2"}, events=True) == ["rejected"]
    assert await put(composer, ROW | {"subject": "Other"}, events=True) == ["rejected"]
    assert len(await composer.events()) == 1


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"property": "P9"}, "property"),
        ({"unit": "U9"}, "unit"),
        ({"unit": "U1", "area": "East"}, "area"),
        ({"published_at": "2999-01-01T00:00:00Z"}, "published_at"),
        ({"when": " "}, "when"),
        ({"more": 1}, "more"),
    ],
)
async def test_a_row_that_is_no_notice_is_rejected_with_its_field(
    composer: Composer, fields: dict[str, Any], field: str
) -> None:
    assert await put(composer, ROW | fields, ROW | {"external_id": "good"}) == [f"rejected {field}", "created"]


async def test_a_file_moves_a_notice_between_units_and_areas_while_it_is_composed(composer: Composer) -> None:
    steps = [({"unit": "U1"}, "Unit 1"), ({"area": "East"}, "East"), ({"unit": "U2"}, "Unit 2"), ({}, "Unit 2")]
    steps += [({"unit": ""}, "All units")]
    for more, words in steps:
        outcome = await put(composer, ROW | more)
        assert outcome in (["created"], ["changed"]) or (not more and outcome == ["unchanged"])
        assert [notice.unit for notice in await composer("ListNotices")] == [words]


# People's list, and one notice


async def test_the_newest_list_has_drafts_first_then_what_was_published_last(composer: Composer) -> None:
    composed = [await composer("ComposeNotice", subject=f"N{number}") for number in range(5)]
    for number in (3, 0, 1):
        await composer("PublishNotice", notice_id=composed[number].notice_id)

    async def walk(**filters: Any) -> list[str]:
        subjects: list[str] = []
        after: str | None = None
        while True:
            request = pb.ListNoticesRequest(newest_first=True, limit=2, after=after, **filters)
            answer = await composer.company.catalog("ListNotices", request, composer.who)
            subjects += [notice.subject for notice in answer.notices]
            if not answer.HasField("next"):
                return subjects
            after = answer.next

    assert await walk() == ["N4", "N2", "N1", "N0", "N3"]
    assert await walk(published=False, property_id=composer.property_id) == ["N4", "N2"]
    assert await walk(published=True) == ["N1", "N0", "N3"]
    assert await walk(property_id=2**40) == []
    counts = await composer.company.catalog("CountNotices", pb.CountNoticesRequest(), composer.who)
    assert (counts.drafts, counts.published_lately) == (2, 3)


@pytest.mark.parametrize(
    "values",
    [
        {"published": True},
        {"after": "x"},
        {"newest_first": True, "after": "2026-01-01.1"},
        {"newest_first": True, "after_id": 1},
    ],
)
async def test_a_list_that_contradicts_itself_is_refused(composer: Composer, values: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refused:
        await composer.company.catalog("ListNotices", pb.ListNoticesRequest(**values), composer.who)
    assert refused.value.status == 400 and refused.value.field in values


async def test_a_notice_has_its_units_and_the_data_of_its_event(composer: Composer, other: Any) -> None:
    units = await composer.company.list("units")
    composed = await composer("ComposeNotice", unit_id=[units[1]["entity_id"], units[0]["entity_id"]])
    request = pb.GetNoticeRequest(notice_id=composed.notice_id)
    draft = await composer.company.catalog("GetNotice", request, composer.who)
    assert [(unit.unit_id, unit.name) for unit in draft.units] == [
        (units[0]["entity_id"], "Unit 1"),
        (units[1]["entity_id"], "Unit 2"),
    ]
    assert draft.notice == composed and composed.property_name == "Elm Court"
    assert json.loads(draft.event_data)["unit"] == "2 units"
    await composer("PublishNotice", notice_id=composed.notice_id)
    after = await composer.company.catalog("GetNotice", request, composer.who)
    (event,) = await composer.events()
    assert json.loads(after.event_data) == event["data"]
    refusals = []
    for notice_id in (composed.notice_id, 2**62):
        with pytest.raises(Refusal) as refused:
            await other.catalog("GetNotice", pb.GetNoticeRequest(notice_id=notice_id), other.operator)
        refusals.append(vars(refused.value))
    assert refusals[0] == refusals[1] and refusals[0]["status"] == 404
    assert not (await other.catalog("ListNotices", pb.ListNoticesRequest(newest_first=True), other.operator)).notices
