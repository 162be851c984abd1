"""Processes are killed, or stopped as an operator would, in the middle of a storm of writes."""

import random
from collections.abc import Awaitable, Callable

import pytest

from .effects import Effect, counted_all
from .harness import Harness
from .kill_matrix import SUMMARY
from .processes import SERVICES
from .storm import Storm
from .writes import KINDS, Caller, Records

pytestmark = pytest.mark.chaos

# A process that exits cleanly may give a client an answer, a clean refusal, or a connection closed before any byte;
# never half an answer. These are the errors of a closed connection.
CLOSED = {"ServerDisconnectedError", "ClientConnectorError", "ClientOSError", "ClientConnectionResetError"}
WRITING = [name for name in SERVICES if name in {kind.service for kind in KINDS.values()}]


async def storm(
    harness: Harness, caller: Caller, records: Records, alone: dict[str, Effect], each: int, strikes: int, seed: str,
    strike: Callable[[], Awaitable[None]],
) -> Storm:  # fmt: skip
    """Strikes at moments that the seed chooses; afterwards the effects must be those of an undisturbed run."""
    quiet_storm = Storm(harness, caller, records, each)
    before = await counted_all(harness)
    # Not among the last fifth: a strike needs writes under way.
    moments = sorted(random.Random(seed).sample(range(1, len(quiet_storm.writes) * 4 // 5), strikes))
    try:
        await quiet_storm.blow(moments, strike)
    finally:
        await harness.mend()
    await quiet_storm.check(before, alone)
    await harness.all_events_arrived()
    SUMMARY.setdefault("storms", []).append(
        f"storm, {seed}: {len(quiet_storm.writes)} writes, {strikes} strikes, {dict(quiet_storm.outcomes())}"
    )
    return quiet_storm


async def test_postgresql_killed_in_a_storm_of_two_hundred_writes_loses_and_doubles_nothing(
    harness: Harness, caller: Caller, records: Records, alone: dict[str, Effect]
) -> None:
    async def strike() -> None:
        harness.restart_postgres()

    await storm(harness, caller, records, alone, 200 // len(KINDS), 4, "PostgreSQL killed", strike)


@pytest.mark.parametrize("name", SERVICES)
async def test_a_process_killed_in_a_storm_loses_and_doubles_nothing(
    harness: Harness, caller: Caller, records: Records, alone: dict[str, Effect], name: str
) -> None:
    async def strike() -> None:
        await harness.kill(name)
        await harness.start(name)

    await storm(harness, caller, records, alone, 12, 2, f"{name} killed", strike)


@pytest.mark.parametrize("name", ["gateway", *WRITING])
async def test_a_process_that_stops_under_load_ends_well_and_sends_no_half_answers(
    harness: Harness, caller: Caller, records: Records, alone: dict[str, Effect], name: str
) -> None:
    async def strike() -> None:
        await harness.stop(name)
        await harness.start(name)

    broken_storm = await storm(harness, caller, records, alone, 12, 2, f"{name} stopped", strike)
    seen = set(broken_storm.outcomes())
    unanswered = {code for status, code in seen if status == 0}
    assert unanswered <= (CLOSED if name == "gateway" else set()), broken_storm.outcomes()
    answered = {(200, ""), (201, ""), (409, "idempotency_in_progress"), (500, "internal_error")}
    assert seen - {(0, code) for code in unanswered} <= answered, broken_storm.outcomes()


async def test_every_event_of_all_this_reached_its_receiver_once(harness: Harness, caller: Caller) -> None:
    await harness.delivered_once(caller.company)
