"""The server that answers the demo company's webhooks."""

import socket
from contextlib import ExitStack
from pathlib import Path

from makeready_local.children import LOOPBACK
from makeready_local.demo_data.receivers import Receivers
from makeready_local.state import State
from testkit.patience import PATIENCE_SECONDS

AT_ONCE = 64  # attempts that a receiver gets at once, see svc_webhooks.dispatch.hosts


def test_a_sweeps_connections_are_all_taken_at_once(tmp_path: Path) -> None:
    receivers = Receivers(State(tmp_path))  # it accepts none yet: the kernel keeps them
    address = LOOPBACK, receivers.server_address[1]
    with ExitStack() as connections:
        connections.callback(receivers.server_close)
        for _ in range(AT_ONCE):
            connections.enter_context(socket.create_connection(address, PATIENCE_SECONDS / 10))
