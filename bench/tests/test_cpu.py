"""Reading the CPU of processes and their descendants."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys

from harness.cpu import used

# Its children use CPU and end, one after the other.
PARENT = """
import os, time
while True:
    if os.fork() == 0:
        while time.process_time() < 0.06:
            pass
        os._exit(0)
    os.wait()
"""
READINGS = 1000
ROUNDED_SECONDS = 0.03  # the kernel rounds user and system time to 0.01 s, before and after an end


def test_the_seconds_of_a_child_that_ends_are_counted_once() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT])
    try:
        read = [used({"parent": parent.pid})["parent"] for _ in range(READINGS)]
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert all(most - ROUNDED_SECONDS < now for most, now in zip(itertools.accumulate(read, max), read, strict=True))
    assert read[-1] > 10 * ROUNDED_SECONDS
