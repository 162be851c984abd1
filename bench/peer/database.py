"""The engine, and one session for each request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from peer import settings

engine = create_async_engine(settings.DATABASE_URL, pool_size=20, max_overflow=0)
new_session = async_sessionmaker(engine, expire_on_commit=False)


async def get_session() -> AsyncIterator[AsyncSession]:
    async with new_session() as session:
        yield session


Session = Annotated[AsyncSession, Depends(get_session)]
