"""Advances of a sandbox's clock do everything once, at its instant, while processes are killed."""

from __future__ import annotations

import pytest

from .clock_kills import advanced
from .harness import Harness
from .kill_matrix import SUMMARY

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

KILLS = 7


async def test_advances_do_everything_once_while_processes_are_killed(harness: Harness) -> None:
    result = await advanced(harness, seed=23, kills=KILLS, apart_seconds=(0.5, 1.5))
    SUMMARY["clock"] = ["", *str(result).splitlines()]
    assert result.faults == [] and len(result.expected) > 20 and result.kills.total() == KILLS
