"""Writes that happen once for each key (spec 4.13): the reply is stored in the write's own transaction."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated

from fastapi import Header
from pydantic import BaseModel
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from peer.callers import Caller, lock_of
from peer.models import KeptReply
from peer.refusals import in_progress, mismatch

IdempotencyKey = Annotated[str, Header(min_length=1, max_length=64)]


def fingerprint_of(operation: str, body: BaseModel) -> str:
    canonical = json.dumps(body.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(f"{operation}\0{canonical}".encode()).hexdigest()


async def claim(session: AsyncSession, caller: Caller, key: str, fingerprint: str) -> KeptReply | None:
    """The reply that an earlier request with the key stored; None if this request is the first."""
    is_free = await session.scalar(select(func.pg_try_advisory_xact_lock(lock_of(caller, key))))
    kept = await session.get(KeptReply, (caller.company_id, caller.key_id, key))
    if kept is not None:
        if kept.fingerprint != fingerprint:
            raise mismatch()
        return kept
    if not is_free:
        raise in_progress()
    return None


def kept_reply(caller: Caller, key: str, fingerprint: str, status: int, body: str) -> KeptReply:
    """The stored reply for replays."""
    return KeptReply(
        company_id=caller.company_id,
        api_key_id=caller.key_id,
        idempotency_key=key,
        fingerprint=fingerprint,
        status=status,
        body=body,
    )
