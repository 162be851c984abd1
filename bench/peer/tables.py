"""`python -m peer.tables`: makes the tables of a peer in an empty database."""

from __future__ import annotations

import asyncio

from peer.database import engine
from peer.models import Base


async def make() -> None:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    await engine.dispose()


if __name__ == "__main__":
    asyncio.run(make())
