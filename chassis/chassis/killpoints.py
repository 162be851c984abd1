"""Named places in a write where a crash test ends the process: `MAKEREADY_KILL_AT=after-commit`.

Nothing happens in a process that was not started with the variable.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "write-before-statement",  # checked, nothing sent to the database
    "write-after-commit",  # committed, the caller not yet answered
    "relay-claimed",  # an outbox row claimed, not published
    "relay-published",  # published, not marked so
    "consumer-before-commit",  # applied inside the transaction, not committed
    "consumer-before-ack",  # committed, not acknowledged
    "delivery-claimed",  # a delivery claimed, not sent
    "delivery-sent",  # sent, its attempt not recorded
)

_KILL_AT = os.environ.get("MAKEREADY_KILL_AT", "")
if _KILL_AT and _KILL_AT not in POINTS:
    raise SystemExit(f"MAKEREADY_KILL_AT must be one of: {', '.join(POINTS)}.")


def killed_here(point: str) -> None:
    """Ends the process with SIGKILL where it was started to die at this point."""
    if point == _KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
