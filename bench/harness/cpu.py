"""The CPU time of servers, user and system, with all their descendants."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

import psutil

Used = dict[str, float]


def used(roots: Mapping[str, int]) -> Used:
    """Seconds of CPU since their start, by name. roots: process ids by name, each counted with all its descendants.

    A root that descends from another is counted only under its own name. Children that have ended count too: the kernel
    adds their times to their parent's.
    """
    named = {pid: name for name, pid in roots.items()}
    seconds = Counter(dict.fromkeys(roots, 0.0))
    below = {child.pid for pid in named for child in psutil.Process(pid).children(recursive=True)}
    for pid, name in named.items():
        if pid not in below:
            with suppress(psutil.NoSuchProcess):
                seconds.update(_with_children(psutil.Process(pid), name, named))
    return dict(seconds)


def _with_children(process: psutil.Process, name: str, named: Mapping[int, str]) -> Counter[str]:
    """Read anew if a child ends meanwhile, whose seconds would be counted twice or not at all.

    Raises psutil.NoSuchProcess.
    """
    name = named.get(process.pid, name)
    while True:
        times = process.cpu_times()
        ended = times.children_user, times.children_system
        seconds = Counter({name: times.user + times.system + sum(ended)})
        for child in process.children():
            with suppress(psutil.NoSuchProcess):
                seconds.update(_with_children(child, name, named))
        times = process.cpu_times()
        if (times.children_user, times.children_system) == ended:
            return seconds


def spent(before: Used, after: Used) -> Used:
    """The difference between two readings."""
    return {name: after[name] - before[name] for name in after}


class Machine:
    """The machine's load by other programs since this object was made. roots: the processes that are not others."""

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = {str(pid): pid for pid in (*roots, os.getpid())}
        self._started = self._reading()

    def share_of_others(self) -> float:
        """The share of all processors' time, from 0 to 1, that neither the servers nor the load generator used."""
        total, busy, ours = (now - then for now, then in zip(self._reading(), self._started, strict=True))
        return max(0.0, busy - ours) / total

    def _reading(self) -> tuple[float, float, float]:
        times = psutil.cpu_times()
        total = float(sum(times)) - times.guest - times.guest_nice
        return total, total - times.idle - times.iowait, sum(used(self._roots).values())
