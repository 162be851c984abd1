"""Several real NATS servers in one JetStream cluster on loopback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from makeready_local.children import LOOPBACK, free_port
from makeready_local.nats import Nats
from testkit.folders import server_folder

PASSWORD = "test"


class NatsCluster:
    """Its servers are named n0, n1 and so on. Each may be killed, stopped, frozen and started again."""

    def __init__(self, servers: Mapping[str, Nats]) -> None:
        self.servers = servers

    @property
    def url(self) -> str:
        """The operator's URLs of all servers."""
        return ",".join(server.url for server in self.servers.values())


@contextmanager
def nats_cluster(size: int = 3, **more: Any) -> Iterator[NatsCluster]:
    """A cluster without streams. It takes a second or two until it makes one. more: further settings of each server."""
    routes = [free_port() for _ in range(size)]
    with server_folder() as folder, ExitStack() as started:
        servers = {}
        for number, port in enumerate(routes):
            settings = {
                "server_name": f"n{number}",
                "cluster": {
                    "name": "makeready",
                    "host": LOOPBACK,
                    "port": port,
                    "routes": [f"nats://{LOOPBACK}:{route}" for route in routes if route != port],
                    "no_advertise": True,
                },
            }
            name = f"n{number}"
            servers[name] = Nats(folder / name, PASSWORD, log=folder / f"{name}.log", more=settings | more)
            servers[name].start()
            started.callback(servers[name].kill)
        yield NatsCluster(servers)
