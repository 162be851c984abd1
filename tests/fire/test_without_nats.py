"""NATS away, frozen, or back without what it had: writes go on, and every event comes out, once."""

import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable

import pytest

from .fire_effects import Effect, counted_all, since, sum_of
from .fire_house import House
from .fire_writes import KINDS, Caller, Records


@pytest.fixture
async def mended(house: House) -> AsyncIterator[None]:
    yield
    if house.nats.child.alive:
        house.nats.child.send(signal.SIGCONT)
    await house.mend()


def killed(house: House) -> Callable[[], None]:
    """Kills it; the way back."""
    house.nats.kill()
    return house.nats.start


def frozen(house: House) -> Callable[[], None]:
    """Freezes it; the way back."""
    pid = house.nats.child.pid
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("away", [killed, frozen])
async def test_without_nats_every_write_is_answered_and_its_event_comes_out_afterwards(
    house: House,
    caller: Caller,
    records: Records,
    alone: dict[str, Effect],
    mended: None,
    away: Callable[[House], Callable[[], None]],
) -> None:
    await house.all_published()
    back = away(house)
    before = await counted_all(house)
    writes = [kind.make(records) for kind in KINDS.values()]
    for write in writes:
        reply = await caller.send(write, caller.api_key(), f"{away.__name__} {write.kind}")
        assert reply.status in (200, 201) and not reply.replayed, (write, reply)
    for service, counts in (await counted_all(house)).items():
        assert since(before[service], counts) == sum_of(writes, service, alone)
    assert await house.unpublished() > 0
    back()
    await house.all_published()
    await house.delivered_once(caller.company)


async def test_a_stream_that_is_gone_when_nats_comes_back_takes_no_event_with_it(
    house: House, caller: Caller, records: Records, alone: dict[str, Effect], mended: None
) -> None:
    await house.all_published()
    house.freeze("svc-webhooks")
    for name, kind in KINDS.items():
        if kind.service != "svc-webhooks":
            reply = await caller.send(kind.make(records), caller.api_key(), f"gone {name}")
            assert reply.status in (200, 201), (name, reply)
    await house.all_published()  # in the stream, and nowhere on their way
    house.nats.stop()
    shutil.rmtree(house.nats.directory / "jetstream")
    house.nats.start()
    house.go_on("svc-webhooks")
    await house.delivered_once(caller.company)
    # And the stream is made anew, for those that follow.
    reply = await caller.send(KINDS["create ticket"].make(records), caller.api_key(), "after gone")
    assert reply.status == 201
    await house.all_published()
