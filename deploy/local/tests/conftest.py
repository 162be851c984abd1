"""Fixtures of the runner's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.plugin import server_folder
from testkit.prepared import prepare_state

from .installation import RUNNER, System, wait_for

NAME = 'état 台所 "$x'


@pytest.fixture
def prepared(system: System) -> System:
    """As `system`, where a first start without the demo company has been: the next start migrates nothing."""
    prepare_state(system.folder)
    return system


@pytest.fixture
def prepared_demo(system: System) -> System:
    """As `prepared`, with the demo company."""
    prepare_state(system.folder, demo=True)
    return system


@pytest.fixture
def system(request: pytest.FixtureRequest) -> Iterator[System]:
    """An empty place for a STATE_DIR. The path has what a user's path may have. A module's `STARTS_WITH` is the
    runner."""
    with server_folder() as folder:
        yield from ended(System(folder / NAME, runner=getattr(request.module, "STARTS_WITH", RUNNER)))


@pytest.fixture
def stopped(module_folder: Path) -> Iterator[System]:
    """As `prepared`, for a test that writes nothing: all tests of a module start the same STATE_DIR."""
    yield from ended(System(module_folder))


@pytest.fixture(scope="module")
def module_folder() -> Iterator[Path]:
    with server_folder() as folder:
        prepare_state(folder / NAME)
        yield folder / NAME


def ended(system: System) -> Iterator[System]:
    """The system; at the end, nothing of it runs."""
    yield system
    if system.runner is not None:
        system.runner.kill()
    wait_for(lambda: system.remains() == [], 30)
