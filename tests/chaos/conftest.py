"""One running Makeready for the session; each test restarts the processes that it kills or stops."""

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from testkit.event_contract import check_envelope
from testkit.plugin import server_folder

from ..e2e.receiver import Receiver
from .effects import Effect, counted, since
from .harness import HEARD, HOOK, Harness, running_harness
from .kill_matrix import SUMMARY
from .writes import KINDS, Caller, Records, Write, connections

FAILED = pytest.StashKey[bool]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints which points were covered, and how retries were answered."""
    if SUMMARY:
        terminalreporter.section("killed here")
        for line in itertools.chain(*SUMMARY.values()):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with Receiver(tmp_path_factory.mktemp("chaos")) as running:
        yield running
    for delivery in running.deliveries:
        check_envelope(delivery.body)


@pytest.fixture(scope="session")
def harness(receiver: Receiver) -> Iterator[Harness]:
    with server_folder() as folder, running_harness(folder, receiver) as running:
        yield running


@pytest.fixture(autouse=True)
async def mended_at_last(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """A test that fails half way leaves no process dead, held or armed: it is the only one that fails."""
    yield
    report = request.node.stash.get(FAILED, None)
    if report and "harness" in request.fixturenames:
        await request.getfixturevalue("harness").mend()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Notes whether the test itself failed."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True


@pytest.fixture(scope="session")
async def caller(harness: Harness) -> AsyncIterator[Caller]:
    async with connections() as session:
        caller = Caller(harness, await harness.company("Chaos"), session)
        await caller.mint(60)
        hears_all = Write(
            "hears all", "POST", "/webhooks", {"destination_url": f"https://receiver.test{HOOK}", "events": HEARD}
        )
        assert (await caller.send(hears_all, caller.api_key(), "hears all")).status == 201
        yield caller


@pytest.fixture(scope="session")
def records(caller: Caller) -> Records:
    records = Records(caller.company)
    records.make(tickets=300, vacant=300, occupied=250)
    return records


@pytest.fixture(scope="session")
async def alone(harness: Harness, caller: Caller, records: Records) -> dict[str, Effect]:
    """The effect of each kind of write that nothing disturbs. A disturbed write must have the same effect."""
    effects = {}
    for name, kind in KINDS.items():
        before = await counted(harness, kind.service)
        reply = await caller.send(kind.make(records), caller.api_key(), f"alone {name}")
        assert reply.status in (200, 201) and not reply.replayed, reply
        effects[name] = since(before, await counted(harness, kind.service))
        assert effects[name]["idempotency"] == 1
        assert sum(count for subject, count in effects[name].items() if ".public." in subject) == (kind.event != "")
    return effects
