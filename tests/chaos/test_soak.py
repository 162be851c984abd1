"""A small `make soak`: despite kills, each (event, subscription) is delivered or parked; without kills, only once."""

from collections.abc import Iterator

import pytest

from testkit.plugin import server_folder

from .harness import Harness, running_harness
from .kill_matrix import SUMMARY
from .soak import Soak, settings
from .soak_endpoints import Endpoints, listening
from .soak_plan import Plan, planned
from .soak_report import Run, report

pytestmark = pytest.mark.chaos

SWEEP_SECONDS, SECONDS_MAX = 1, 600


@pytest.fixture(scope="module")
def endpoints() -> Iterator[Endpoints]:
    with server_folder() as folder, listening(folder / "endpoints") as running:
        yield running


@pytest.fixture(scope="module")
def soaked(endpoints: Endpoints) -> Iterator[Harness]:
    """Makeready with two dispatchers on one database."""
    webhooks = settings(endpoints, SWEEP_SECONDS)
    with server_folder() as folder, running_harness(folder, endpoints, dispatchers=2, webhooks=webhooks) as running:
        yield running


async def soak(harness: Harness, endpoints: Endpoints, plan: Plan, *, kills: int, seed: int) -> Run:
    """One run, which must end with every delivery either delivered or parked."""
    soak_run = Soak(harness, endpoints, plan, seed=seed, seconds=SECONDS_MAX, say=lambda _: None)
    run = await soak_run.run(kills_max=kills, apart_seconds=(0.5, 1.5))
    assert run.is_good, report(run)
    assert run.verdict.waiting == 0 and run.verdict.delivered + run.verdict.parked == run.verdict.expected, report(run)
    assert len(run.kills) == kills
    return run


async def test_two_dispatchers_send_nothing_twice_while_both_live(soaked: Harness, endpoints: Endpoints) -> None:
    run = await soak(soaked, endpoints, planned(200, 10, 1, name="calm"), kills=0, seed=1)
    assert run.verdict.duplicates == run.verdict.parked == 0, report(run)


@pytest.mark.slow
async def test_kills_of_whomever_lose_no_delivery_and_change_no_event_id(soaked: Harness, endpoints: Endpoints) -> None:
    run = await soak(soaked, endpoints, planned(600, 20, 3), kills=4, seed=7)
    assert run.verdict.parked > 0 and run.verdict.unexplained == 0, report(run)
    SUMMARY["soak"] = ["", *report(run).splitlines()]
