"""Photos: an integration adds one, and so can complete a ticket that needs one; people remove one."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

import pytest
from sqlalchemy import text

from chassis.auth.identity import INTEGRATION, OPERATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.tickets.v1 import ticket_views_pb2 as views
from makeready.tickets.v1 import tickets_pb2 as pb

from .changing import NOTE, SENT, change, events_of, opened, refusal_of, served
from .commands import audited, comments_of, entry, open_ticket, quiet_of, run_command

pytestmark = pytest.mark.usefixtures("places")
FIRST, SECOND = "https://photos.test/1.jpg", "https://photos.test/2.jpg?of=a%20tap"


async def add(client: Any, ticket_id: int, photo_url: object, key: str | None = None, who: Any = None) -> Any:
    body = photo_url if isinstance(photo_url, bytes) else json.dumps({"photo_url": photo_url}).encode()
    request = pb.CreateTicketPhotoRequest(ticket_id=ticket_id, idempotency_key=key or secrets.token_hex(8), body=body)
    return (await client("CreateTicketPhoto", request, who)).reply


async def photos_of(client: Any, who: Any, ticket_id: int) -> list[tuple[str, str, str, bool]]:
    answer = await client("GetTicketDetails", views.GetTicketDetailsRequest(ticket_id=ticket_id), who)
    return [(photo.photo_url, photo.author, photo.actor, photo.is_shown) for photo in answer.photos]


async def test_a_photo_over_the_api_is_the_tickets_and_once(client: Any, staff: Any, database: Database) -> None:
    ticket_id = await opened(client)
    before = json.loads(await served(client, ticket_id))
    reply = await add(client, ticket_id, FIRST, "the photo")
    assert (reply.status, reply.replayed) == (201, False) and reply.body == await served(client, ticket_id)
    after = json.loads(reply.body)
    assert after == before | {"photo_url": FIRST, "updated_at": after["updated_at"]}
    assert after["updated_at"] > before["updated_at"]
    again = await add(client, ticket_id, FIRST, "the photo")
    assert (again.status, again.replayed, again.body) == (201, True, reply.body)
    assert (await refusal_of(add(client, ticket_id, SECOND, "the photo"))).code == "idempotency_mismatch"
    # The photo that it shows already changes nothing, whoever sends it.
    assert (await add(client, ticket_id, FIRST)).body == reply.body
    await add(client, ticket_id, SECOND)
    assert await comments_of(client, staff, ticket_id) == [
        ("photo", FIRST, "", "caller:1"),
        ("photo", SECOND, "", "caller:1"),
    ]
    assert await photos_of(client, staff, ticket_id) == [
        (FIRST, "", "caller:1", False),
        (SECOND, "", "caller:1", True),
    ]
    assert [event.public.event for event in await events_of(database, ticket_id)] == ["ticket.created"]


@pytest.mark.parametrize(
    ("body", "about"),
    [
        (b"{}", "photo_url"),
        (b"[]", "object"),
        (b'{"photo_url": 5}', "photo_url"),
        (b'{"photo_url": null}', "photo_url"),
        (b'{"photo_url": " "}', "photo_url"),
        (b'{"photo_url": "javascript:alert(1)"}', "http"),
        (b'{"photo_url": "//photos.test/1.jpg"}', "http"),
        (b'{"photo_url": "https://photos.test/a b.jpg"}', "http"),
        (json.dumps({"photo_url": "https://photos.test/" + "x" * 2000}).encode(), "2,?000"),
        (json.dumps({"photo_url": FIRST, "by": "staff"}).encode(), "photo_url"),
    ],
)
async def test_a_body_that_names_no_photo_is_refused(client: Any, body: bytes, about: str) -> None:
    ticket_id = await opened(client)
    before = await served(client, ticket_id)
    with pytest.raises(Refusal, match=about) as refused:
        await add(client, ticket_id, body)
    assert (refused.value.status, refused.value.code) == (400, "invalid_request")
    assert await served(client, ticket_id) == before


async def test_another_companys_ticket_is_unknown_and_a_key_needs_an_administrator(
    client: Any, nobody: Identity, stranger: Identity
) -> None:
    ticket_id = await opened(client)
    before = await served(client, ticket_id)
    unknown = await refusal_of(add(client, 10**15, FIRST, None, stranger))
    theirs = await refusal_of(add(client, ticket_id, FIRST, None, stranger))
    assert (theirs.status, theirs.code, theirs.message) == (404, "not_found", unknown.message)
    for other_id in (ticket_id, 10**15):
        refused = await refusal_of(add(client, other_id, FIRST, None, nobody))
        assert (refused.status, refused.code) == (422, "created_by_missing")
    assert await served(client, ticket_id) == before


async def test_an_integration_completes_a_ticket_that_needs_a_photo(client: Any, database: Database) -> None:
    company_id = secrets.randbelow(10**9) + 2 * 10**9
    for statement in (
        f"INSERT INTO property (id, version, company_id, name) VALUES ({company_id}, 1, {company_id}, 'Strict')",
        "INSERT INTO unit (id, version, company_id, property_id, name) "
        f"VALUES ({company_id}, 1, {company_id}, {company_id}, 'Unit')",
    ):
        await database.execute(Statement(text(statement)))
    policy = pb.UpdateTicketPolicyRequest(photo_required_to_complete=True)
    await client("UpdateTicketPolicy", policy, Identity(OPERATOR, "operator", company_id))
    caller = Identity(INTEGRATION, "gateway", company_id, 5, "write", 3)
    ticket_id = await opened(client, caller, unit_id=company_id)
    refused = await refusal_of(change(client, ticket_id, SENT["Completed"], None, caller))
    assert refused.status == 422 and "POST /tickets/{ticket_id}/photos" in refused.message
    await add(client, ticket_id, FIRST, None, caller)
    assert (await change(client, ticket_id, SENT["Completed"], None, caller)).status == 200


async def test_a_photo_over_the_api_ends_the_quiet_as_a_change_of_status_does(
    client: Any, staff: Any, database: Database
) -> None:
    ticket = await open_ticket(client, staff, by="OPENER_RESIDENT")
    since, due = await quiet_of(database, ticket["entity_id"])
    await add(client, ticket["entity_id"], FIRST)
    later, later_due = await quiet_of(database, ticket["entity_id"])
    assert later > since and later_due - later == due - since


async def test_photos_at_once_are_all_there(client: Any, staff: Any) -> None:
    ticket_id = await opened(client)
    urls = [f"https://photos.test/{n}.jpg" for n in range(5)]
    await asyncio.gather(*(add(client, ticket_id, url) for url in urls))
    photos = await photos_of(client, staff, ticket_id)
    assert sorted(photo[0] for photo in photos) == urls and [photo[3] for photo in photos] == [False] * 4 + [True]
    assert json.loads(await served(client, ticket_id))["photo_url"] == photos[-1][0]


# People remove one.


async def test_a_removed_photo_makes_way_for_the_one_before(client: Any, staff: Any, administrator: Any) -> None:
    ticket_id = (await open_ticket(client, staff, photo_url=FIRST))["entity_id"]
    await run_command(client, "AddTicketPhoto", staff, ticket_id=ticket_id, photo_url=SECOND)
    removed = json.loads(await run_command(client, "RemoveTicketPhoto", staff, ticket_id=ticket_id, photo_url=SECOND))
    assert removed["photo_url"] == FIRST and await photos_of(client, staff, ticket_id) == [
        (FIRST, "staff", "staff:30", True)
    ]
    assert (await audited(client, administrator, "ticket", ticket_id))[-1] == entry(
        "staff:30",
        "ticket.photo_removed",
        {"photo_url": SECOND},
        {"photo_url": FIRST, "removed_photo": SECOND},
    )
    timeline = await client("ListTicketTimeline", views.ListTicketTimelineRequest(ticket_id=ticket_id), staff)
    (last, *_) = timeline.entries
    assert [(change.field, change.before, change.after) for change in last.changes] == [("photo", SECOND, "")]
    refused = await refusal_of(run_command(client, "RemoveTicketPhoto", staff, ticket_id=ticket_id, photo_url=SECOND))
    assert (refused.status, refused.code, refused.field) == (404, "not_found", "photo_url")
    await run_command(client, "RemoveTicketPhoto", staff, ticket_id=ticket_id, photo_url=FIRST)
    assert json.loads(await served(client, ticket_id))["photo_url"] is None
    assert await photos_of(client, staff, ticket_id) == []


async def test_a_photo_that_the_record_does_not_show_goes_without_changing_it(client: Any, staff: Any) -> None:
    ticket_id = await opened(client)
    await add(client, ticket_id, FIRST)
    document = (await add(client, ticket_id, SECOND)).body
    assert await run_command(client, "RemoveTicketPhoto", staff, ticket_id=ticket_id, photo_url=FIRST) == document
    assert [photo[0] for photo in await photos_of(client, staff, ticket_id)] == [SECOND]


async def test_a_completed_tickets_photo_can_be_removed_once(client: Any, staff: Any) -> None:
    """It may show what it should not, whatever the company requires."""
    ticket_id = await opened(client)
    await add(client, ticket_id, FIRST)
    await change(client, ticket_id, {"status": "Completed", "note": NOTE})
    fields: dict[str, Any] = {"ticket_id": ticket_id, "photo_url": FIRST, "idempotency_key": "remove once"}
    first = await run_command(client, "RemoveTicketPhoto", staff, **fields)
    assert await run_command(client, "RemoveTicketPhoto", staff, **fields) == first
    assert json.loads(first)["photo_url"] is None and json.loads(first)["status"] == "Completed"


async def test_another_companys_photo_is_unknown(client: Any, staff: Any) -> None:
    ticket_id = await opened(client)
    await add(client, ticket_id, FIRST)
    other = Identity("staff", "gateway", 2, staff_id=31)
    refused = await refusal_of(run_command(client, "RemoveTicketPhoto", other, ticket_id=ticket_id, photo_url=FIRST))
    assert (refused.status, refused.message) == (404, "The company has no ticket with that id; check the id.")
    assert await photos_of(client, staff, ticket_id) == [(FIRST, "", "caller:1", True)]
