"""Counts the records of several lists at once, with coroutines: python many_at_once.py"""

import asyncio
from collections.abc import AsyncIterable

from makeready_client import AsyncMakeready


async def count(records: AsyncIterable[object]) -> int:
    return len([record async for record in records])


async def main() -> None:
    async with AsyncMakeready() as mk:
        print(*await asyncio.gather(count(mk.properties.list()), count(mk.units.list()), count(mk.vendors.list())))


asyncio.run(main())
