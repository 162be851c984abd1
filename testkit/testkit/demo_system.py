"""A Makeready of its own with the demo company, for tools that need one to look at."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testkit.folders import server_folder
from testkit.prepared import GREETING, START_SECONDS, prepare_state
from testkit.processes import Process, free_port


@contextmanager
def running_demo(state: Path | None) -> Iterator[Path]:
    """The STATE_DIR of a system that runs: the one that is named, or a new one that is stopped at the end."""
    if state is not None:
        yield state
        return
    with server_folder() as folder:
        prepare_state(folder / "state", demo=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKEREADY_")}
        environment |= {"MAKEREADY_STATE_DIR": str(folder / "state")}
        environment |= {name: str(free_port()) for name in ("MAKEREADY_API_PORT", "MAKEREADY_ADMIN_PORT")}
        command = [sys.executable, "-P", "-m", "makeready_local"]
        system = Process(command, folder / "output", environment, own_session=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # like a Ctrl-C: the system is stopped in any case
        system.launch()
        try:
            system.wait_until(lambda: GREETING in system.log_tail(), START_SECONDS)
            yield folder / "state"
        finally:
            system.end(signal.SIGINT, 60)
