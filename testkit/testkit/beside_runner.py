"""`python -m testkit.beside_runner NAME,… TREE`: `make run` with the services NAME of a release whose code is in TREE.

Schemas, identities and NATS are this release's. A process of the release has the settings that it had before the
upgrade: one user of NATS for all services, and a port for administrators in the gateway.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from makeready_local import runner, services, streams
from makeready_local.__main__ import main
from makeready_local.children import Child, free_port
from makeready_local.forks import Forks
from makeready_local.state import State


def replace(names: set[str], tree: Path) -> None:
    """The runner starts these services from the tree, each in a new interpreter."""
    nats_urls: list[str] = []
    keep, start = streams.kept_streams, services.start

    def kept(nats_url: str, *more: Any) -> Any:
        nats_urls.append(nats_url)
        return keep(nats_url, *more)

    def started(service: services.Service, environment: Mapping[str, str], state: State, forks: Forks) -> Child:
        if service.name not in names:
            return start(service, environment, state, forks)
        overrides = {
            "PYTHONPATH": os.pathsep.join(str(tree / folder) for folder in ("chassis", "proto/gen", service.name)),
            "MAKEREADY_NATS_URL": nats_urls[-1],
            "MAKEREADY_ADMIN_PORT": str(free_port()),
        }
        program = [sys.executable, "-P", "-m", service.package]
        log = state.log(service.name)
        return Child(service.name, program, log=log, environment={**environment, **overrides}, folder=Path.cwd())

    replaced: Any = (runner, services)
    replaced[0].kept_streams, replaced[1].start = kept, started


if __name__ == "__main__":
    replace(set(sys.argv[1].split(",")), Path(sys.argv[2]))
    sys.exit(main())
