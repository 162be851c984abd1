"""What a trigger has decided so far: it stands in the ledger in place of the answer.

A repeat of the request decides nothing anew. Each command's idempotency key is made of the trigger's own name and the
step's, so every command is done once, however often the trigger is killed and repeated.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from chassis.db.database import Database
from chassis.refusals import idempotency_in_progress
from chassis.writes.idempotency import Claim
from chassis.writes.resuming import ResumableWrite
from gateway.identity.schema import idempotency

TRIGGER = ResumableWrite(idempotency)
_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(list[tuple[str, Any]]).decode


def begun(position: bytes) -> bytes:
    """The decisions of a new trigger. position: the end of the company's events."""
    return _encode([("name", str(uuid.uuid4())), ("position", position.hex())])


def is_answer(stored: bytes) -> bool:
    """Whether the ledger has the answer. An answer is a JSON object, decisions are an array."""
    return stored.startswith(b"{")


class Steps:
    """The decisions of one trigger, by name; each is a value of JSON."""

    def __init__(self, database: Database, claim: Claim, stored: bytes) -> None:
        self._database, self._claim, self._stored = database, claim, stored

    async def decided(self, name: str, decide: Callable[[], Awaitable[Any]]) -> Any:
        """What was decided, now or before. Raises Refusal 409 if another request has answered meanwhile."""
        while name not in (decisions := self._decisions()):
            value = await decide()
            await self._replace(_encode([*decisions.items(), (name, value)]))
        return decisions[name]

    async def answered(self, answer: bytes) -> bytes:
        """Stores the answer, and returns the stored one."""
        while not is_answer(self._stored):
            await self._replace(answer)
        return self._stored

    async def refused(self) -> None:
        """Frees the key of the trigger: only a success uses it up (spec 4.13)."""
        await TRIGGER.drop(self._database, self._claim, self._stored)

    def key(self, step: str) -> str:
        """The idempotency key of a command."""
        return f"{self._decisions()['name']} {step}"

    @property
    def position(self) -> bytes:
        """The end of the company's events when the trigger began."""
        return bytes.fromhex(self._decisions()["position"])

    def _decisions(self) -> dict[str, Any]:
        if is_answer(self._stored):
            raise idempotency_in_progress()
        return dict(_decode(self._stored))

    async def _replace(self, after: bytes) -> None:
        stored = await TRIGGER.replaced(self._database, self._claim, self._stored, after)
        if stored is None:  # another request with the key was refused meanwhile
            raise idempotency_in_progress()
        self._stored = stored
