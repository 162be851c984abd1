"""Concurrent creates share a statement, and every caller gets its own reply."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import itertools
import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from asyncpg import CheckViolationError
from sqlalchemy import func, literal_column, select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import uuid7
from chassis.refusals import Refusal
from chassis.writes import coalescing
from chassis.writes.idempotency import Claim
from makeready.common.v1.documents_pb2 import WriteReply
from svc_tickets import tables as t
from svc_tickets.tickets.queries.numbering import place_and_number
from svc_tickets.tickets.queries.opening import CREATE_TICKET

COMPANY, OTHER_COMPANY = 7, 8
HELD_LOCK = 4711


def a_write(number: int, key: str, **changes: Any) -> tuple[Claim, bytes, dict[Any, dict[str, Any]]]:
    """A claim, its reply and its rows. number: the ticket's id and ticket_number."""
    now = datetime.datetime.now(datetime.UTC)
    ticket = dict.fromkeys(t.ticket.c.keys()) | {
        "id": number,
        "company_id": COMPANY,
        "ticket_number": number,
        "title": f"Together {key}",
        "category": "HVAC",
        "priority": "Low",
        "status": "Open",
        "property_id": 10,
        "unit_id": 100,
        "permission_to_enter": False,
        "created_at": now,
        "updated_at": now,
        "source": "api",
    }
    # No consumer reads such a subject.
    event = {"event_id": uuid7(), "subject": f"events.svc-tickets.together.{key}", "message": b""}
    reply = json.dumps({"number": number}).encode()
    return Claim(COMPANY, 77, key, b"f"), reply, {t.ticket: ticket | changes, t.outbox: event}


async def write_at_once(database: Database, *writes: tuple[Claim, bytes, dict[Any, dict[str, Any]]]) -> list[Any]:
    """Runs the first write alone and all others together."""
    calls = (
        CREATE_TICKET.write(database, claim, 201, reply, rows, (), {"names_seen": 0}) for claim, reply, rows in writes
    )
    return await asyncio.gather(*calls, return_exceptions=True)


async def stored(database: Database, key: str) -> tuple[int, int, int]:
    """The number of tickets, events and claims of writes whose keys begin like this."""
    counts = []
    for column in (t.ticket.c.title, t.outbox.c.subject, t.idempotency.c.idempotency_key):
        prefix = {"title": f"Together {key}", "subject": f"events.svc-tickets.together.{key}"}.get(column.name, key)
        counted = select(func.count()).select_from(column.table).where(column.like(literal_column(f"'{prefix}%'")))
        counts.append(await database.value(Statement(counted)))
    return tuple(counts)


@pytest.fixture
def numbers() -> Iterator[int]:
    """Ids and numbers that no other test's ticket has."""
    return itertools.count(secrets.randbelow(10**9) + 10**9)


async def test_writes_at_once_all_happen(database: Database, places: None, numbers: Iterator[int]) -> None:
    key = secrets.token_hex(8)
    writes = [a_write(next(numbers), f"{key}-{number}") for number in range(40)]
    replies = await write_at_once(database, *writes)
    assert [(written.status, written.body, written.replayed) for written in replies] == [
        (201, reply, False) for _, reply, _ in writes
    ]
    assert await stored(database, key) == (40, 40, 40)


async def test_one_key_at_once_is_one_write(database: Database, places: None, numbers: Iterator[int]) -> None:
    key = secrets.token_hex(8)
    other = a_write(next(numbers), f"{key}-other")
    same = [a_write(next(numbers), f"{key}-same") for _ in range(20)]
    _, *replies = await write_at_once(database, other, *same)
    fresh = [outcome for outcome in replies if isinstance(outcome, WriteReply) and not outcome.replayed]
    replayed = [outcome for outcome in replies if isinstance(outcome, WriteReply) and outcome.replayed]
    refused = [
        outcome for outcome in replies if isinstance(outcome, Refusal) and outcome.code == "idempotency_in_progress"
    ]
    assert len(fresh) == 1 and len(fresh) + len(replayed) + len(refused) == 20
    assert all(outcome.body == fresh[0].body for outcome in replayed)
    assert await stored(database, key) == (2, 2, 2)


async def test_one_key_with_another_body_is_a_mismatch(
    database: Database, places: None, numbers: Iterator[int]
) -> None:
    key = secrets.token_hex(8)
    await write_at_once(database, a_write(next(numbers), key))
    claim, reply, rows = a_write(next(numbers), key)
    again = (dataclasses.replace(claim, fingerprint=b"another"), reply, rows)
    fresh = [a_write(next(numbers), f"{key}-{number}") for number in range(3)]
    *others, refused = await write_at_once(database, *fresh, again)
    assert isinstance(refused, Refusal) and refused.code == "idempotency_mismatch"
    assert [outcome.replayed for outcome in others] == [False, False, False]
    assert await stored(database, key) == (4, 4, 4)


class HeldClaim(Claim):
    """A claim with another lock, as if its own were released, or taken, between two rows of a statement."""

    @property
    def lock(self) -> int:
        return HELD_LOCK


@pytest.mark.parametrize("held", [0, 1])
async def test_a_lock_let_go_between_two_writes_of_one_key_leaves_the_ticket_of_the_kept_reply(
    held: int, database: Database, places: None, numbers: Iterator[int]
) -> None:
    key = secrets.token_hex(8)
    writes = [a_write(next(numbers), key) for _ in range(2)]
    claim, reply, rows = writes[held]
    writes[held] = (
        HeldClaim(claim.company_id, claim.api_key_id, claim.idempotency_key, claim.fingerprint),
        reply,
        rows,
    )
    hold = Statement(select(func.pg_advisory_xact_lock(literal_column(str(HELD_LOCK))).label("held")))
    several = [
        coalescing._Write(database, claim, 201, reply, rows, (), {"names_seen": 0}) for claim, reply, rows in writes
    ]
    async with database.transaction() as connection:
        await connection.rows(hold)
        answers = await CREATE_TICKET._write_several(several)
    done = 1 - held
    assert answers[held] is None and answers[done] == WriteReply(status=201, body=writes[done][1])
    kept = await CREATE_TICKET.stored(database, writes[done][0])
    assert kept is not None and kept.body == writes[done][1]
    ticket = select(t.ticket.c.id).where(t.ticket.c.title == literal_column(f"'Together {key}'"))
    assert json.loads(kept.body)["number"] == await database.value(Statement(ticket))
    assert await stored(database, key) == (1, 1, 1)


async def test_a_write_that_fails_takes_no_other_with_it(
    database: Database, places: None, numbers: Iterator[int]
) -> None:
    key = secrets.token_hex(8)
    writes = [a_write(next(numbers), f"{key}-{number}") for number in range(6)]
    writes[3] = a_write(next(numbers), f"{key}-3", title="x" * 151)
    with structlog.testing.capture_logs() as logs:
        replies = await write_at_once(database, *writes)
    assert [line["reason"] for line in logs] == ["CheckViolationError"]
    assert isinstance(replies.pop(3), CheckViolationError)
    assert [outcome.replayed for outcome in replies] == [False] * 5
    assert await stored(database, key) == (5, 5, 5)


async def test_places_asked_for_at_once_have_numbers_of_their_own(database: Database, places: None) -> None:
    requests = [(COMPANY, 100, 500), (COMPANY, 101, 600), (OTHER_COMPANY, 200, 0), (COMPANY, 200, 0), (COMPANY, 999, 0)]
    requests = [request for request in requests for _ in range(7)]
    numbered = await asyncio.gather(*(place_and_number(database, *request) for request in requests))
    for (company_id, unit_id, _), place in zip(requests, numbered, strict=True):
        if (company_id, unit_id) in ((COMPANY, 200), (COMPANY, 999)):
            assert place is None
        else:
            assert place is not None and place.unit_id == unit_id
            assert place.asset_id == (500 if unit_id == 100 else None)
    for property_id, many in ((10, 14), (20, 7)):
        taken = sorted(place.ticket_number for place in numbered if place and place.property_id == property_id)
        assert taken == list(range(taken[0], taken[0] + many))


async def test_a_counter_that_is_held_holds_up_its_own_property_alone(database: Database, places: None) -> None:
    held = Statement(select(t.ticket_number).where(t.ticket_number.c.property_id == 10).with_for_update())
    await place_and_number(database, COMPANY, 100, 0)
    async with database.transaction() as connection:
        await connection.rows(held)
        mine = [asyncio.create_task(place_and_number(database, COMPANY, 100, 0)) for _ in range(3)]
        others = [asyncio.create_task(place_and_number(database, OTHER_COMPANY, 200, 0)) for _ in range(3)]
        assert all(place is not None for place in await asyncio.gather(*others))
        assert not any(task.done() for task in mine)
    assert len({place.ticket_number for place in await asyncio.gather(*mine) if place is not None}) == 3
