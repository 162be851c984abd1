"""How the kernel schedules a process of Makeready."""

from __future__ import annotations

import os

import structlog

log = structlog.stdlib.get_logger(__name__)


def batch_scheduling() -> None:
    """SCHED_BATCH: fewer wake-ups between threads took 40 % off the CPU of a unary call. It needs no privilege."""
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except (AttributeError, OSError):
        log.info("no_batch_scheduling")
