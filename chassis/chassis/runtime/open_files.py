"""How many files and connections a process may have open."""

from __future__ import annotations

import resource

UNLIMITED = 1_000_000


def allow_many() -> int:
    """Raises the process's limit to the machine's maximum, and returns it.

    The usual 1,024 are fewer than a process with many connections needs.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most if most != resource.RLIM_INFINITY else UNLIMITED
