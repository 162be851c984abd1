"""Fixtures of the runner's tests."""

from collections.abc import Iterator

import pytest

from testkit.plugin import server_folder

from .installation import System, wait_for


@pytest.fixture
def system() -> Iterator[System]:
    with server_folder() as folder:
        made = System(folder / 'état 台所 "$x')
        yield made
        if made.runner is not None:
            made.runner.kill()
        wait_for(lambda: made.remains() == [], 30)
