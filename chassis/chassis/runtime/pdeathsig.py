"""Starts a program that dies with its parent, as another user if requested.

Run as a script: `python -I -S pdeathsig.py PARENT SIGNAL UID GID PROGRAM ARGUMENT…` (UID -1: keep the user). The kernel
sends SIGNAL to PROGRAM when PARENT ends, however it ends. This is a program of its own because code between fork and
exec is not safe in a parent with threads. A Python program can call `die_with` first instead.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15


def main(parent: int, signal: int, uid: int, gid: int, program: list[str]) -> None:
    """Replaces this process by `program`."""
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # After setuid, because the kernel clears the setting when a process changes its user.
    die_with(parent, signal)
    os.execv(program[0], program)  # noqa: S606


def die_with(parent: int, signal: int) -> None:
    """The kernel sends the signal to this process when its parent ends, or only the thread that started it. Raises
    OSError."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # the parent ended before the setting took effect
        sys.exit(1)


def name_process(name: str) -> None:
    """`top` and `ps -C` know this process by the first 15 bytes of the name."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode()[:15], 0, 0, 0)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
    except OSError as error:
        sys.exit(f"cannot start {sys.argv[5]}: {error.strerror}")
