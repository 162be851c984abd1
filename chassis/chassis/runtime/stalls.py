"""Deadlines in a process that may stand still.

Where a machine is busy, a process gets no processor for seconds. When it goes on, its deadlines have passed, and what
it waits for has long arrived, but has not been read: the event loop looks at deadlines first.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

Result = TypeVar("Result")

# How often the loop looks for what has arrived before a deadline has passed: an answer's bytes wake the connection,
# which wakes its reader, which wakes whoever asked.
TURNS = 8


async def within(seconds: float, future: asyncio.Future[Result]) -> Result:
    """What a future brings within so many seconds, or had brought while the process stood still.

    Raises TimeoutError, and whatever the future does; it goes on in both cases.
    """
    await asyncio.wait({future}, timeout=seconds)
    for _ in range(TURNS):
        if future.done():
            break
        await asyncio.sleep(0)
    if not future.done():
        raise TimeoutError
    return future.result()
