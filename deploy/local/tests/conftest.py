"""What the tests of the runner share."""

from collections.abc import Iterator

import pytest
from installation import System, wait_for

from makeready_local.testing import server_folder


@pytest.fixture
def system() -> Iterator[System]:
    with server_folder() as folder:
        made = System(folder / 'état 台所 "$x')
        yield made
        if made.runner is not None and made.runner.poll() is None:
            made.runner.kill()
            made.runner.wait()
        wait_for(lambda: made.remains() == [], 30)
