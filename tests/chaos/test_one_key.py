"""One Idempotency-Key is one request, whichever services its operations belong to: races, kills, a service away."""

import asyncio
import itertools
from typing import NamedTuple

import pytest

from .harness import Harness
from .writes import KINDS, Caller, Records, Reply, Write

pytestmark = pytest.mark.chaos

CLIENTS = 4  # of each operation
SERVICES = ("svc-tickets", "svc-occupancy", "svc-webhooks")
IN_PROGRESS, MISMATCH = (409, "idempotency_in_progress"), (409, "idempotency_mismatch")
PAIRS = list(itertools.combinations(KINDS, 2))


class Sender(NamedTuple):
    """Sends writes with one API key and one Idempotency-Key."""

    caller: Caller
    api_key: str
    key: str

    async def send(self, write: Write) -> Reply:
        return await self.caller.send(write, self.api_key, self.key)

    async def claims(self) -> int:
        """How many writes had an effect."""
        sql = "SELECT count(*) AS claims FROM idempotency WHERE idempotency_key = $1"
        claims = [await self.caller.harness.query(name, sql, self.key) for name in SERVICES]
        return sum(rows[0]["claims"] for rows in claims)


def without_body(write: Write) -> Write:
    return Write(write.kind, write.method, write.path, {})


def code(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.code


async def claims_end(harness: Harness) -> None:
    """What the clock would do within 15 seconds, with no request under way."""
    await harness.query("gateway", "UPDATE idempotency_note SET leased_until = clock_timestamp()")


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
async def test_of_two_operations_at_once_exactly_one_has_an_effect(
    harness: Harness, caller: Caller, records: Records, pair: tuple[str, str]
) -> None:
    sender = Sender(caller, await harness.key(caller.company), f"race {pair}")
    writes = [KINDS[kind].make(records) for kind in pair]
    sent = [write for _ in range(CLIENTS) for write in writes]
    replies = await asyncio.gather(*map(sender.send, sent))
    firsts = [n for n, reply in enumerate(replies) if reply.status in (200, 201) and not reply.replayed]
    assert len(firsts) == 1 and await sender.claims() == 1
    winner = sent[firsts[0]]
    for write, reply in zip(sent, replies, strict=True):
        if reply.status == 409:
            assert code(reply) in ((IN_PROGRESS,) if write is winner else (IN_PROGRESS, MISMATCH))
        else:
            assert write is winner
    for write in writes:
        again = await sender.send(write)
        assert again.replayed if write is winner else code(again) == MISMATCH
    assert await sender.claims() == 1


@pytest.mark.parametrize("refused_kind", ["create ticket", "notice", "create webhook"])
async def test_many_refusals_at_once_leave_the_key_to_every_operation(
    harness: Harness, caller: Caller, records: Records, refused_kind: str
) -> None:
    sender = Sender(caller, await harness.key(caller.company), f"refused {refused_kind}")
    write = KINDS[refused_kind].make(records)
    notes = "SELECT count(*) AS notes FROM idempotency_note"
    before = await harness.query("gateway", notes)
    replies = await asyncio.gather(*(sender.send(without_body(write)) for _ in range(10)))
    assert {reply.status for reply in replies} == {400}
    assert await harness.query("gateway", notes) == before
    other = next(kind for kind in KINDS.values() if kind.service != KINDS[refused_kind].service)
    assert (await sender.send(other.make(records))).status == 201
    assert code(await sender.send(write)) == MISMATCH and await sender.claims() == 1


@pytest.mark.parametrize("kind", ["create ticket", "notice", "create webhook"])
@pytest.mark.parametrize(
    ("victim", "point", "happened"),
    [
        ("gateway", "api-before-call", False),
        ("gateway", "api-after-call", True),
        ("service", "write-before-statement", False),
        ("service", "write-after-commit", True),
    ],
)
async def test_a_kill_leaves_the_key_to_what_happened(
    harness: Harness, caller: Caller, records: Records, kind: str, victim: str, point: str, happened: bool
) -> None:
    killed = KINDS[kind].service if victim == "service" else victim
    sender = Sender(caller, await harness.key(caller.company), f"killed {victim} {point} {kind}")
    write = KINDS[kind].make(records)
    other = next(each for each in KINDS.values() if each.service != KINDS[kind].service).make(records)
    harness.arm(killed, point)
    first = asyncio.create_task(sender.send(write))
    await harness.killed_at_point(killed)
    if victim == "service":
        assert code(await sender.send(other)) == IN_PROGRESS, "nobody can say"
        await claims_end(harness)
        assert code(await sender.send(other)) == IN_PROGRESS, "nobody can say"
        # The gateway repeats a call whose service is back soon; here it is not.
        assert (await first).status == 500
    await harness.start(killed)
    await first
    if happened:
        assert code(await sender.send(other)) == MISMATCH
        await claims_end(harness)
        assert code(await sender.send(other)) == MISMATCH
        assert (await caller.insist(write, sender.api_key, sender.key)).replayed
    else:
        if victim == "gateway":
            assert code(await sender.send(other)) == IN_PROGRESS, "the call may be under way"
            await claims_end(harness)
        done = await caller.insist(other, sender.api_key, sender.key)
        assert done.status == 201 and not done.replayed
        assert code(await sender.send(write)) == MISMATCH
    assert await sender.claims() == 1


async def test_a_kill_between_a_refusal_and_its_answer_leaves_the_key_when_the_claim_is_over(
    harness: Harness, caller: Caller, records: Records
) -> None:
    sender = Sender(caller, await harness.key(caller.company), "killed api-refused")
    write, other = KINDS["create ticket"].make(records), KINDS["create webhook"].make(records)
    harness.arm("gateway", "api-refused")
    first = asyncio.create_task(sender.send(without_body(write)))
    await harness.killed_at_point("gateway")
    assert (await first).status == 0
    await harness.start("gateway")
    assert code(await sender.send(other)) == IN_PROGRESS
    await claims_end(harness)
    assert (await sender.send(other)).status == 201
    assert code(await sender.send(write)) == MISMATCH


async def test_a_request_that_is_held_keeps_its_key(harness: Harness, caller: Caller, records: Records) -> None:
    """The service has the call and not begun its statement: its ledger knows nothing of it, the note does."""
    sender = Sender(caller, await harness.key(caller.company), "held")
    write, other = KINDS["create ticket"].make(records), KINDS["create webhook"].make(records)
    harness.arm("svc-tickets", "write-before-statement", "hold")
    first = asyncio.create_task(sender.send(write))
    await harness.held("svc-tickets")
    assert code(await sender.send(other)) == IN_PROGRESS
    harness.go_on("svc-tickets")
    assert (await first).status == 201
    assert code(await sender.send(other)) == MISMATCH and await sender.claims() == 1


async def test_writes_go_on_while_another_service_is_away(harness: Harness, caller: Caller, records: Records) -> None:
    api_key = await harness.key(caller.company)
    used, tried, unused = (Sender(caller, api_key, f"away {state}") for state in ("used", "tried", "unused"))
    write, other = KINDS["create ticket"].make(records), KINDS["create webhook"].make(records)
    assert (await used.send(write)).status == 201
    await harness.stop("svc-tickets")
    assert (await tried.send(write)).status == 500
    await claims_end(harness)
    for sender in (used, tried):
        assert code(await sender.send(other)) == IN_PROGRESS
    assert (await unused.send(other)).status == 201
    await harness.start("svc-tickets")
    assert code(await used.send(other)) == MISMATCH
    assert (await tried.send(other)).status == 201


async def test_a_crash_of_postgresql_loses_no_note_of_a_write_that_was_answered(
    harness: Harness, caller: Caller, records: Records
) -> None:
    """All databases are one cluster here, and its log has the note before the write."""
    api_key = await harness.key(caller.company)
    senders = [Sender(caller, api_key, f"crash {n}") for n in range(20)]
    write, other = KINDS["create ticket"], KINDS["create webhook"].make(records)
    answered = await asyncio.gather(*(sender.send(write.make(records)) for sender in senders))
    harness.restart_postgres()
    assert {reply.status for reply in answered} == {201}
    for sender in senders:
        assert code(await caller.insist(other, api_key, sender.key)) == MISMATCH
