"""Kill -9 of each process at every failpoint of every write: a retry leaves one effect and one event."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chassis.runtime.failpoints import POINTS

from .effects import Effect
from .harness import Harness
from .kill_matrix import SUMMARY, Case, KillMatrix, Outcome, cases, described
from .writes import Caller, Records

pytestmark = pytest.mark.chaos

ROOT = Path(__file__).resolve().parents[2]
CASES = cases()
# Failpoints outside writes with a key that succeed: the tests that kill there.
ELSEWHERE = {
    "svc-occupancy/tests/turns/test_turnovers_cut_off.py": {"sweep-under-way", "sweep-before-commit"},
    "svc-tickets/tests/maintenance/test_overdue_maintenance.py": {"sweep-before-commit"},
    "svc-webhooks/tests/dispatch/test_two_dispatchers.py": {"delivery-claimed", "delivery-sent"},
    "svc-webhooks/tests/subscriptions/test_erasure.py": {"erasure-begun", "erasure-batch"},
    "svc-webhooks/tests/events/test_retention.py": {"day-detached", "day-dropped", "feed-shortened"},
    "svc-webhooks/tests/events/test_sandboxes.py": {"sandbox-shortened"},
    "chassis/tests/writes/test_purging.py": {"purge-batch"},
    "svc-webhooks/tests/feed/test_replays.py": {"replay-queued"},
    "tests/e2e/test_console_imports.py": {"import-before-commit", "import-after-commit"},
    "tests/chaos/test_one_key.py": {"api-refused"},
    "tests/chaos/test_triggers.py": {"trigger-step"},
    "gateway/tests/sandbox/clock/test_clock.py": {"advance-moved", "advance-done", "advance-at-target"},
}


@pytest.fixture(scope="module")
async def matrix(
    harness: Harness, caller: Caller, records: Records, alone: dict[str, Effect]
) -> AsyncIterator[KillMatrix]:
    yield KillMatrix(harness, caller, records, alone)


@pytest.fixture(scope="module")
def outcomes() -> dict[Case, Outcome]:
    return {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case).replace(" ", "_"))
async def test_a_write_cut_off_anywhere_happens_once(
    matrix: KillMatrix, outcomes: dict[Case, Outcome], case: Case
) -> None:
    outcomes[case] = await matrix.outcome(case)
    if case.victim == "service" and case.point.startswith("write-"):  # only here the point alone decides the answer
        assert outcomes[case].replayed == (case.point == "write-after-commit")
    SUMMARY["cases"] = described(outcomes)


def test_every_point_of_the_list_is_killed_at_somewhere() -> None:
    covered = {case.point for case in CASES}
    for file, points in ELSEWHERE.items():
        text = (ROOT / file).read_text()
        assert all(re.search(rf'"{point}[" ]', text) for point in points), file
        covered |= points
    assert covered == set(POINTS)


def test_the_list_names_the_points_that_the_code_passes() -> None:
    points = set()
    for project in ("chassis", "gateway", "console", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks"):
        for file in (ROOT / project / project.replace("-", "_")).rglob("*.py"):
            points |= set(re.findall(r'failpoint\("([a-z-]+)"\)', file.read_text()))
    assert points == set(POINTS)
