"""Undoes an import, kind by kind, from the last kind to the first: a kind may refer to those before it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from importing.errors import ImportFault
from importing.kinds import COPIED, KINDS, Kind
from importing.sending import RETRY_SECONDS, NoAnswer
from makeready.common.v1 import import_undo_pb2 as pb

EXAMPLES_MAX = 20
"""So many records that stay are named for each reason."""
OWNERS = tuple(dict.fromkeys(kind.service for kind in KINDS.values()))

# One RPC of a service. Returns the response. Raises NoAnswer, and ImportFault if the service refuses.
AskService = Callable[[str, Any], Awaitable[Any]]


@dataclass(slots=True)
class Kept:
    """Records of a kind that stay. used_by: the kind of record that refers to them; empty: they were changed since."""

    kind: str
    used_by: str
    records: int = 0
    examples: list[str] = field(default_factory=list)
    """Some of their external_ids."""


@dataclass(slots=True)
class UndoneKind:
    """What was undone of one kind, or would be."""

    kind: str
    withdrawn: int = 0
    restored: int = 0
    kept: int = 0


@dataclass(slots=True)
class UndoOutcome:
    """The result of an undo, complete or not. kind, batch and id: where it goes on; no kind: it has not begun;
    batch -1: the kind has not."""

    kinds: list[UndoneKind] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    kind: str = ""
    batch: int = -1
    id: int = 0

    def total(self, name: str) -> int:
        """The sum over all kinds of "withdrawn", "restored" or "kept"."""
        return sum(getattr(of_kind, name) for of_kind in self.kinds)


_USERS = {
    "ticket": "tickets",
    "pm_task": "preventive maintenance",
    "transition": "turns",
    "turn_task": "make-ready tasks",
    "unit": "units",
    "asset": "assets",
    "meter": "meters",
    "reading": "readings",
    "inspection": "inspections",
    "inspection_row": "inspections",
    "notice": "notices",
    "notice_unit": "notices",
    "lease": "leases",
    "account": "accounts",
}


def why_kept(used_by: str) -> str:
    """A clause: why a record stays. used_by: of `Kept`."""
    if not used_by or used_by.startswith("ticket_"):
        return "they were changed since"
    if used_by == "unit_status":
        return "staff have set their status"
    if used_by == "conflict":
        return "another record has their values of before"
    return f"{_USERS.get(used_by, 'other records')} refer to them"


Progress = Callable[[UndoOutcome], Awaitable[None]]


class Undo:
    """The undo of one import."""

    def __init__(self, ask: AskService, import_key: str, *, dry_run: bool, key: str = "") -> None:
        """The key names this undo among all of its company, in up to 30 characters: a part that is asked for again is
        then done, and counted, once."""
        self._ask, self._import_key, self._dry_run, self._key = ask, import_key, dry_run, key

    async def run(self, kinds: Collection[str], progress: Progress, before: UndoOutcome | None = None) -> UndoOutcome:
        """Undoes the import of these kinds; goes on where `before` ended. Raises ImportFault."""
        outcome = before or UndoOutcome()
        in_order = [kind for kind in reversed(KINDS.values()) if kind.name in kinds]
        names = [kind.name for kind in in_order]
        for kind in in_order[names.index(outcome.kind) if outcome.kind in names else 0 :]:
            if outcome.kind != kind.name:
                outcome.kind, outcome.batch, outcome.id = kind.name, -1, 0
            if all(of_kind.kind != kind.name for of_kind in outcome.kinds):
                outcome.kinds.append(UndoneKind(kind.name))
            while await self._part(kind, outcome):
                await progress(outcome)
            await progress(outcome)
        return outcome

    async def _part(self, kind: Kind, outcome: UndoOutcome) -> bool:
        """Undoes the next part of a kind; returns whether another follows."""
        request = pb.UndoImportRequest(import_key=self._import_key, kind=kind.name, dry_run=self._dry_run)
        if outcome.batch >= 0:
            request.place.CopyFrom(pb.UndoPlace(batch=outcome.batch, id=outcome.id))
        if self._key and not self._dry_run:
            part = hashlib.blake2b(f"{kind.name} {outcome.batch} {outcome.id}".encode(), digest_size=16)
            request.idempotency_key = f"{self._key}-{part.hexdigest()}"
        used: dict[int, str] = {}
        if kind.name in COPIED:
            reserving = pb.UndoImportRequest()
            reserving.CopyFrom(request)
            reserving.reserve = True
            ids = (await self._asked(kind.service, reserving)).ids
            for service in OWNERS if ids else ():
                if service != kind.service:
                    release = pb.ReleaseRecordsRequest(
                        kind=kind.name, ids=ids, dry_run=self._dry_run, import_key=self._import_key
                    )
                    used |= {record.id: record.used_by for record in (await self._asked(service, release)).used}
                    ids = [record_id for record_id in ids if record_id not in used]
            request.released.extend(ids)
        response: pb.UndoImportResponse = await self._asked(kind.service, request)
        self._count(kind, outcome, response, used)
        if not response.HasField("next"):
            return False
        outcome.batch, outcome.id = response.next.batch, response.next.id
        return True

    def _count(self, kind: Kind, outcome: UndoOutcome, response: pb.UndoImportResponse, used: dict[int, str]) -> None:
        (counts,) = [of_kind for of_kind in outcome.kinds if of_kind.kind == kind.name]
        kept = [(used.get(record.id, record.used_by), record.external_id) for record in response.kept]
        if self._dry_run:  # the owner does not know what other contexts keep
            kept += [(used_by, "") for used_by in used.values()]
            counts.withdrawn -= len(used)
        counts.withdrawn += response.withdrawn
        counts.restored += response.restored
        counts.kept += len(kept)
        for used_by, external_id in kept:
            reasons = {(reason.kind, reason.used_by): reason for reason in outcome.kept}
            reason = reasons.get((kind.name, used_by)) or Kept(kind.name, used_by)
            if not reason.records:
                outcome.kept.append(reason)
            reason.records += 1
            if external_id and len(reason.examples) < EXAMPLES_MAX:
                reason.examples.append(external_id)

    async def _asked(self, service: str, request: Any) -> Any:
        for pause in (*RETRY_SECONDS, None):
            try:
                return await self._ask(service, request)
            except NoAnswer as error:
                if pause is None or not error.is_transient:
                    raise ImportFault(str(error)) from None
                await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")
