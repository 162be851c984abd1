"""Copies of a company's records end equal to the lists, to the byte, while processes are killed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from .harness import Harness
from .kill_matrix import SUMMARY
from .mirror import mirrored
from .mirror_copies import KINDS

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

KILLS = 10


async def test_copies_end_equal_to_the_lists_byte_for_byte(harness: Harness, tmp_path: Path) -> None:
    result = await mirrored(harness, tmp_path, seed=19, kills=KILLS, apart_seconds=(1, 3))
    # A service that starts does what is due. The records make some of it due, and later tests count what a start adds.
    await asyncio.to_thread(harness.system.makeready, "sweep", "stale")
    await harness.all_events_arrived()
    await asyncio.to_thread(harness.system.makeready, "wait")
    SUMMARY["mirror"] = ["", *str(result).splitlines()]
    assert not any(result.differences.values()), str(result)
    assert all(result.lists[kind] for kind in KINDS) and result.gone["inspections"]
    assert not any(result.gone[kind] & result.lists[kind].keys() for kind in KINDS)
    assert 1 <= result.expired <= result.rebuilds
    assert all(result.program_kills.values()) and result.kills.total() == KILLS
