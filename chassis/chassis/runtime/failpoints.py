"""Named places in a write where a crash test ends the process: `MAKEREADY_KILL_AT=write-after-commit`.

`MAKEREADY_STRIKE_FILE` names a file in which a test writes `POINT kill` or `POINT hold` while the process runs. The
first process that reaches the point deletes the file and obeys it. `hold` stops the process there, so that the test can
end another process and then resume this one (SIGCONT). A process started without these variables ignores failpoints.
"""

from __future__ import annotations

import contextlib
import os
import signal

POINTS = (
    "api-before-call",  # the gateway has checked a request and noted its key, and not called its service
    "api-after-call",  # the service has answered, the gateway not yet
    "api-refused",  # the service has refused, the note of its key is not erased
    "write-before-statement",  # checked, nothing sent to the database
    "write-locked",  # begun: the claim and the row are locked, nothing is read
    "write-decided",  # read and decided, nothing written
    "write-before-commit",  # written, not committed
    "write-after-commit",  # committed, not yet answered
    "import-before-commit",  # a batch of an import is written, not committed
    "import-after-commit",  # committed, not yet answered
    "relay-claimed",  # an outbox row claimed, not published
    "relay-published",  # published, not marked so
    "consumer-before-commit",  # applied inside the transaction, not committed
    "consumer-before-ack",  # committed, not acknowledged
    "sweep-under-way",  # some of a batch of due rows is written, not all
    "sweep-before-commit",  # a batch of due rows is processed, not committed
    "delivery-claimed",  # a delivery claimed, not sent
    "delivery-sent",  # sent, its attempt not recorded
    "advance-moved",  # a sandbox's offset is stored in the gateway, the contexts do not have it
    "advance-done",  # the contexts have done what was due, their events are not passed on
    "advance-at-target",  # all is done, the advance is not finished
    "day-detached",  # a partition that is due is detached, not dropped
    "day-dropped",  # one of a day's partitions is dropped
    "feed-shortened",  # some of a company's oldest events are deleted from its feed, their day is not dropped
    "sandbox-shortened",  # some of a sandbox's oldest events are deleted, others not
    "replay-queued",  # some of a replay's deliveries are due, others not yet
    "trigger-step",  # a trigger of a sandbox has done some of its steps, and not the next
    "erasure-begun",  # a subscription is deleted, its history not
    "erasure-batch",  # some of its history is deleted
    "purge-batch",  # some rows of an ended sandbox are deleted
)

_SIGNALS = {"kill": signal.SIGKILL, "hold": signal.SIGSTOP}
_kill_at, _strike_file = "", ""


def arm(kill_at: str, strike_file: str) -> None:
    """Takes MAKEREADY_KILL_AT and MAKEREADY_STRIKE_FILE, each empty if it is not set. Ends the process if there is no
    such point."""
    global _kill_at, _strike_file
    if kill_at and kill_at not in POINTS:
        raise SystemExit(f"MAKEREADY_KILL_AT must be one of: {', '.join(POINTS)}.")
    _kill_at, _strike_file = kill_at, strike_file


def failpoint(point: str) -> None:
    """Ends the process with SIGKILL, or stops it, if MAKEREADY_KILL_AT or the strike file names this point."""
    if point == _kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    elif _strike_file:
        _look_into(_strike_file, point)


def _look_into(file: str, point: str) -> None:
    with contextlib.suppress(FileNotFoundError), open(file) as file_object:  # noqa: PTH123
        where, how = file_object.read().split()
        if where == point:
            os.unlink(file)  # noqa: PTH108 - once
            os.kill(os.getpid(), _SIGNALS[how])
