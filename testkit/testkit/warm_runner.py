"""`python -m makeready_local` with services that are forked from the warm parent.

The runner has a process of its own that imports what its services share. Here the session's warm parent, which has
imported it already, takes its place. Each service has its own process, session, environment, log, signals and exit
status, and dies with the runner, however that ends.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from makeready_local import forks
from makeready_local.__main__ import main
from testkit.warm import SOCKET, Forked, fork, python_program


class WarmForks:
    """`makeready_local.forks.Forks`, with the warm parent as the process that forks."""

    def warm(self) -> None:
        """The warm parent has imported."""

    def fork(
        self, name: str, program: Sequence[str], environment: Mapping[str, str] | None, log: int, folder: Path
    ) -> Forked:
        variables = os.environ if environment is None else environment
        words = python_program([sys.executable, "-P", "-m", *program], variables)
        assert words is not None, f"{name} has settings that an interpreter reads at its start"
        path = Path(f"/proc/self/fd/{log}").readlink()
        return fork(
            os.environ[SOCKET], words, variables, path, own_session=True, folder=folder, orphan_signal=signal.SIGKILL
        )

    def stop(self) -> None:
        """The warm parent ends with the tests."""


if __name__ == "__main__":
    if python_program([sys.executable, "-P", "-m", "makeready_local"], os.environ):
        replaced: Any = forks
        replaced.Forks = WarmForks
    sys.exit(main())
