"""Counts the records of several lists at once, with coroutines: python many_at_once.py"""

import asyncio

from makeready_client import AsyncMakeready


async def main() -> None:
    async with AsyncMakeready() as mk:

        async def count(kind: str, records: object) -> str:
            return f"{kind}: {len([one async for one in records])}"  # type: ignore[attr-defined]

        print(*await asyncio.gather(count("units", mk.units.list()), count("turns", mk.turns.list())), sep="\n")


asyncio.run(main())
