"""What people correct in a ticket, against a running svc-tickets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chassis.db.database import Database

from .changing import NOTE, events_of, opened, refusal_of, served
from .commands import audited, entry, open_ticket, quiet_of, run_command

pytestmark = pytest.mark.usefixtures("places")

TEXTS = {
    "subcategory": "Bath tap",
    "description": "Since Tuesday",
    "room": "Bathroom",
    "room_instance": "2",
    "preferred_access_time": "evenings",
}


async def test_all_that_a_ticket_says_can_be_corrected_and_emptied(
    client: Any, staff: Any, administrator: Any, database: Database
) -> None:
    opened_one = await open_ticket(client, staff, asset_id=500)
    ticket_id = opened_one["entity_id"]
    fields = {"title": "Bath tap drips", "category": "Leak", "priority": "High", "permission_to_enter": True, **TEXTS}
    corrected = json.loads(await run_command(client, "UpdateTicket", staff, ticket_id=ticket_id, unit_id=100, **fields))
    assert {name: corrected[name] for name in fields} == fields
    assert corrected["unit"]["id"] == 100 and corrected["unit_number"] == "1A"
    assert corrected["ticket_number"] == opened_one["ticket_number"]
    assert corrected["updated_at"] > opened_one["updated_at"]
    cleared = json.loads(
        await run_command(
            client, "UpdateTicket", administrator, ticket_id=ticket_id, clear=["unit_id", "asset_id", *TEXTS],
            permission_to_enter=False,
        )
    )  # fmt: skip
    assert {name: cleared[name] for name in TEXTS} == dict.fromkeys(TEXTS) | {"description": ""}
    assert (cleared["unit"], cleared["unit_number"], cleared["permission_to_enter"]) == (None, None, False)
    _, first, second = await audited(client, administrator, "ticket", ticket_id)
    old = {"title": "Tap drips", "category": "Plumbing", "priority": "Medium", "permission_to_enter": False}
    before = old | dict.fromkeys(TEXTS) | {"description": "", "unit_id": None}
    assert first == entry("staff:30", "ticket.updated", before, fields | {"unit_id": 100})
    assert second["action"] == "ticket.updated" and second["before"]["asset_id"] == 500
    # No event of spec 6.1 fires for a correction.
    assert len(await events_of(database, ticket_id)) == 1


async def test_a_correction_is_work_on_a_residents_ticket(client: Any, staff: Any, database: Database) -> None:
    ticket_id = (await open_ticket(client, staff, by="OPENER_RESIDENT"))["entity_id"]
    before = await quiet_of(database, ticket_id)
    await run_command(client, "UpdateTicket", staff, ticket_id=ticket_id, priority="Low")
    after = await quiet_of(database, ticket_id)
    assert after[0] > before[0] and after[1] - after[0] == before[1] - before[0]


async def test_a_correction_of_an_older_version_is_refused(client: Any, staff: Any, administrator: Any) -> None:
    ticket_id = await opened(client)
    seen = {"ticket_id": ticket_id, "version": 1}
    await run_command(client, "CommentOnTicket", staff, ticket_id=ticket_id, body="A comment is no change")
    await run_command(client, "UpdateTicket", staff, priority="High", **seen)
    refused = await refusal_of(run_command(client, "UpdateTicket", administrator, title="Mine", **seen))
    assert (refused.status, refused.field) == (422, "version") and "Another person has changed" in refused.message
    answer = await run_command(client, "UpdateTicket", administrator, ticket_id=ticket_id, title="Mine", version=2)
    assert (json.loads(answer)["title"], json.loads(answer)["priority"]) == ("Mine", "High")


async def test_a_priority_that_has_moved_is_not_moved_by_who_saw_the_old_one(
    client: Any, staff: Any, administrator: Any
) -> None:
    ticket_id = await opened(client)
    raised = {"ticket_id": ticket_id, "priority": "High", "from_priority": "Medium"}
    await run_command(client, "UpdateTicket", staff, **raised)
    await run_command(client, "UpdateTicket", administrator, **raised)  # it has come true, which is no conflict
    refused = await refusal_of(run_command(client, "UpdateTicket", administrator, **raised | {"priority": "Low"}))
    assert (refused.status, refused.field) == (422, "from_priority")
    assert refused.message == "Another person has set the priority to High meanwhile; look at it again."
    moved = {"ticket_id": ticket_id, "category": "Leak", "from_category": "Pest Control", "priority": "Low"}
    refused = await refusal_of(run_command(client, "UpdateTicket", administrator, **moved))
    assert (refused.status, refused.field) == (422, "from_category")
    assert json.loads(await served(client, ticket_id))["priority"] == "High", (
        "nothing of a refused correction is stored"
    )


@pytest.mark.parametrize(
    ("sent", "status", "about"),
    [
        ({}, 400, "at least one field"),
        ({"title": " "}, 400, "title"),
        ({"title": "x" * 151}, 422, "title"),
        ({"category": "Cooking"}, 422, "category"),
        ({"priority": "Soon"}, 422, "priority"),
        ({"clear": ["title"]}, 400, "clear"),
        ({"clear": ["version"]}, 400, "clear"),
        ({"clear": ["room"], "room": "Kitchen"}, 400, "set or cleared"),
        ({"unit_id": 10**12}, 404, "no unit"),
        ({"asset_id": 10**12}, 404, "no asset"),
        ({"unit_id": 200}, 404, "no unit"),
    ],
)
@pytest.mark.usefixtures("reached")
async def test_a_bad_correction_is_refused_and_changes_nothing(
    client: Any, staff: Any, sent: dict[str, Any], status: int, about: str
) -> None:
    ticket_id = await opened(client)
    before = await served(client, ticket_id)
    refused = await refusal_of(run_command(client, "UpdateTicket", staff, ticket_id=ticket_id, **sent))
    assert refused.status == status and about in refused.message
    assert await served(client, ticket_id) == before


async def test_a_status_that_has_moved_is_not_moved_by_who_saw_the_old_one(
    client: Any, staff: Any, administrator: Any, database: Database
) -> None:
    ticket_id = await opened(client)
    completed = {"ticket_id": ticket_id, "status": "Completed", "note": NOTE, "from_status": "Open"}
    await run_command(client, "SetTicketStatus", staff, **completed)
    for late in (completed, {"ticket_id": ticket_id, "status": "On Hold", "from_status": "Open"}):
        refused = await refusal_of(run_command(client, "SetTicketStatus", administrator, **late))
        assert (refused.status, refused.field) == (422, "from_status")
        assert refused.message.startswith("Another person has set the ticket to Completed")
    assert len(await events_of(database, ticket_id)) == 2
