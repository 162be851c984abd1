"""Authentication: the bearer key and its scope, as dependencies of FastAPI."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Header, Response
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import joinedload

from peer import settings
from peer.callers import READERS, WRITERS, Caller, admit, bearer, check_scope
from peer.database import Session
from peer.models import ApiKey

_known: dict[str, tuple[float, Caller]] = {}


async def _caller_of(key: str, session: AsyncSession) -> Caller | None:
    """The key's caller, cached for a few seconds."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    kept = _known.get(digest)
    if kept is not None and kept[0] > time.monotonic():
        return kept[1]
    api_key = await session.scalar(select(ApiKey).where(ApiKey.digest == digest).options(joinedload(ApiKey.company)))
    if api_key is None:
        return None
    caller = Caller(
        api_key.id,
        api_key.company_id,
        api_key.company.active,
        api_key.scope,
        api_key.administrator_id,
        api_key.revoked_at is not None,
    )
    _known[digest] = (time.monotonic() + settings.KEY_CACHE_SECONDS, caller)
    return caller


async def authenticated(
    session: Session, response: Response, authorization: Annotated[str | None, Header()] = None
) -> Caller:
    caller = await _caller_of(bearer(authorization), session)
    response.headers.update(admit(caller))
    assert caller is not None
    return caller


def scoped(scopes: tuple[str, ...]) -> Callable[[Caller], Awaitable[Caller]]:
    async def check(caller: Annotated[Caller, Depends(authenticated)]) -> Caller:
        check_scope(caller, scopes)
        return caller

    return check


Reader = Annotated[Caller, Depends(scoped(READERS))]
Writer = Annotated[Caller, Depends(scoped(WRITERS))]
