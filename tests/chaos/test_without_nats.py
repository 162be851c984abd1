"""NATS killed, frozen, or back without its data: writes go on, and every event is delivered once."""

import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable

import pytest

from .effects import Effect, counted_all, since, sum_of
from .harness import Harness
from .writes import KINDS, Caller, Records

pytestmark = pytest.mark.chaos


@pytest.fixture
async def mended(harness: Harness) -> AsyncIterator[None]:
    yield
    if harness.nats.child.alive:
        harness.nats.child.send(signal.SIGCONT)
    await harness.mend()


def killed(harness: Harness) -> Callable[[], None]:
    """Kills NATS; returns a function that starts it again."""
    harness.nats.kill()
    return harness.nats.start


def frozen(harness: Harness) -> Callable[[], None]:
    """Freezes NATS; returns a function that resumes it."""
    pid = harness.nats.child.pid
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("away", [killed, frozen])
async def test_without_nats_every_write_is_answered_and_its_event_comes_out_afterwards(
    harness: Harness,
    caller: Caller,
    records: Records,
    alone: dict[str, Effect],
    mended: None,
    away: Callable[[Harness], Callable[[], None]],
) -> None:
    await harness.all_published()
    back = away(harness)
    before = await counted_all(harness)
    writes = [kind.make(records) for kind in KINDS.values()]
    for write in writes:
        reply = await caller.send(write, caller.api_key(), f"without NATS, {away.__name__}: {write.kind}")
        assert reply.status in (200, 201) and not reply.replayed, (write, reply)
    for service, counts in (await counted_all(harness)).items():
        assert since(before[service], counts) == sum_of(writes, service, alone)
    assert await harness.unpublished() > 0
    back()
    await harness.all_published()
    await harness.delivered_once(caller.company)


async def test_a_stream_that_is_gone_when_nats_comes_back_takes_no_event_with_it(
    harness: Harness, caller: Caller, records: Records, alone: dict[str, Effect], mended: None
) -> None:
    await harness.all_published()
    harness.freeze("svc-webhooks")
    for name, kind in KINDS.items():
        if kind.service != "svc-webhooks":
            reply = await caller.send(kind.make(records), caller.api_key(), f"gone {name}")
            assert reply.status in (200, 201), (name, reply)
    await harness.all_published()  # the events are now in the stream alone
    harness.nats.stop()
    shutil.rmtree(harness.nats.directory / "jetstream")
    harness.nats.start()
    harness.go_on("svc-webhooks")
    await harness.delivered_once(caller.company)
    # The stream is recreated for later events.
    reply = await caller.send(KINDS["create ticket"].make(records), caller.api_key(), "after gone")
    assert reply.status == 201
    await harness.all_published()
