"""How many attempts a receiver gets at once, whichever companies and subscriptions they are of.

A receiver is a host name, and an address that is dialled: an attempt counts at both. Companies share a receiver's
capacity. A receiver that has never answered 2xx may not want the deliveries: it gets fewer attempts at once, which
count to their end, and so many attempts a minute. Where there is no room, a delivery is not attempted and goes on
waiting. The capacity is that of this process; the receivers that have answered are in the database.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Iterable, Sequence

import structlog

from chassis.db.database import Database, DatabaseUnavailable
from svc_webhooks.dispatch.queries import hosts as queries
from svc_webhooks.http_client.shares import Shares, Turns

CAPACITY = 64
NEW_CAPACITY = 16
NEW_IN_A_MINUTE = 600
MINUTE_SECONDS = 60.0
# How long an attempt waits for room: a claim of many deliveries to one prompt host costs no more than one to many
# hosts. Name and address together are shorter than `sender.BEGIN_SECONDS_MAX`.
PATIENCE_SECONDS = 0.75
# For so long after an attempt found no room, only as many deliveries are claimed as there is room for.
CROWDED_SECONDS = 5.0
ASK_AGAIN_SECONDS = 10.0  # another process may have got the first 2xx
KNOWN_MAX = 65536
IDLE_MIN = 1024

log = structlog.stdlib.get_logger(__name__)


class _Receiver:
    """The capacity of one host name or address."""

    __slots__ = ("_minute", "_starts", "crowded_until", "has_answered", "key", "turns")

    def __init__(self, key: str) -> None:
        self.key = key
        self.has_answered = False
        self.turns = Turns(NEW_CAPACITY, PATIENCE_SECONDS)
        self.crowded_until = 0.0
        self._minute = Shares(NEW_IN_A_MINUTE)
        self._starts: deque[tuple[float, int]] = deque()  # of this minute, with the company

    @property
    def is_limited(self) -> bool:
        """Whether an attempt is admitted before its delivery is claimed. A prompt receiver's attempts find room by
        themselves."""
        return not self.has_answered or self.crowded_until > time.monotonic()

    @property
    def is_idle(self) -> bool:
        self._forget_starts()
        return self.turns.is_idle and not self._starts

    def answers(self) -> None:
        """From the first 2xx on."""
        self.has_answered = True
        self.turns.capacity = CAPACITY
        self._starts.clear()
        self.turns.wake()

    def room(self, company_id: int) -> int:
        room = self.turns.room(company_id)
        if not self.has_answered and room:
            self._forget_starts()
            room = min(room, self._minute.room(company_id))
        return room

    def take(self, company_id: int) -> None:
        self.turns.take(company_id)
        if not self.has_answered:
            self._minute.take(company_id)
            self._starts.append((time.monotonic(), company_id))

    def enter_at_once(self, company_id: int) -> bool:
        if self.room(company_id) <= 0:
            return False
        self.take(company_id)
        return True

    async def enter(self, company_id: int) -> bool:
        """Waits a moment for room where attempts are prompt. Companies that hold fewest go first."""
        if not self.has_answered:
            return self.enter_at_once(company_id)
        if await self.turns.enter(company_id):
            return True
        self.crowded_until = time.monotonic() + CROWDED_SECONDS
        return False

    def leave(self, company_id: int) -> None:
        self.turns.leave(company_id)

    def take_back(self, company_id: int) -> None:
        """Ends what was taken for an attempt that was not made."""
        for index in range(len(self._starts) - 1, -1, -1):
            if self._starts[index][1] == company_id:
                del self._starts[index]
                self._minute.give_back(company_id)
                break
        self.turns.leave(company_id)

    def _forget_starts(self) -> None:
        since = time.monotonic() - MINUTE_SECONDS
        while self._starts and self._starts[0][0] <= since:
            self._minute.give_back(self._starts.popleft()[1])


class Admission:
    """One attempt's part of the capacity of its host's name, and of the address that it dials. `end` gives it back."""

    __slots__ = (
        "_address", "_company_id", "_dialled", "_held", "_hosts", "_name", "_name_key", "refused_by", "seconds_max",
    )  # fmt: skip

    def __init__(self, hosts: Hosts, company_id: int, name: str) -> None:
        self.seconds_max = math.inf
        """How long the attempt may last, if shorter than the usual deadline."""
        self.refused_by: list[str] = []
        """Receivers that had no room. Unless another one had, the delivery is not attempted."""
        self._hosts = hosts
        self._company_id = company_id
        self._name_key = name
        self._name: _Receiver | None = None
        self._address: _Receiver | None = None
        self._held: list[_Receiver] = []
        self._dialled = False

    @property
    def is_at_new_receiver(self) -> bool:
        """Whether it is at a receiver that has never answered."""
        return any(not receiver.has_answered for receiver in self._held)

    def take(self, *receivers: _Receiver) -> None:
        """Takes its part before the delivery is claimed; there is room for it."""
        for receiver in receivers:
            receiver.take(self._company_id)
            self._held.append(receiver)

    async def opens(self) -> bool:
        """Takes its part of the name's capacity. False if there is no room."""
        if not self._name_key:
            return True
        self._name = self._hosts.receiver(self._name_key)
        return await self._enter(self._name)

    async def admits(self, address: str) -> bool:
        """Takes its part of the address's capacity instead of another address's. False if there is no room."""
        receiver = self._hosts.receiver(address)
        for other in [held for held in self._held if held is not self._name and held is not receiver]:
            self._held.remove(other)
            self._return(other)
        if not await self._enter(receiver):
            return False
        self._address = receiver
        self._dialled = True
        return True

    async def _enter(self, receiver: _Receiver) -> bool:
        if receiver in self._held:
            return True
        if not receiver.has_answered:
            await self._hosts.learn((receiver.key,))
        if await receiver.enter(self._company_id):
            self._held.append(receiver)
            return True
        self.refused_by.append(receiver.key)
        return False

    def answered(self) -> tuple[str, ...]:
        """The receivers whose first 2xx this was."""
        both = {
            receiver.key: None
            for receiver in (self._name, self._address)
            if receiver is not None and not receiver.has_answered
        }
        return tuple(both)

    def give_back(self) -> None:
        """After a while, although the attempt continues; at a receiver that has never answered it holds its part."""
        for receiver in [held for held in self._held if held.has_answered]:
            self._held.remove(receiver)
            receiver.leave(self._company_id)

    def end(self) -> None:
        """May be called more than once."""
        held, self._held = self._held, []
        for receiver in held:
            self._return(receiver)

    def _return(self, receiver: _Receiver) -> None:
        """Gives its part back. An attempt that dialled no address was not made, so it does not count in the minute."""
        (receiver.leave if self._dialled else receiver.take_back)(self._company_id)


class Hosts:
    """One per process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._receivers: dict[str, _Receiver] = {}
        self._idle_at = IDLE_MIN
        self._known: dict[str, float] = {}  # until when: for ever if the receiver has answered
        self._full_addresses: dict[str, tuple[str, ...]] = {}  # by name: those that refused its last attempt
        self._asked: set[str] = set()
        self._asking: asyncio.Task[None] | None = None

    def receiver(self, key: str) -> _Receiver:
        receiver = self._receivers.get(key)
        if receiver is None:
            if len(self._receivers) >= self._idle_at:
                self._receivers = {name: kept for name, kept in self._receivers.items() if not kept.is_idle}
                self._idle_at = max(IDLE_MIN, 2 * len(self._receivers))
            receiver = self._receivers[key] = _Receiver(key)
            if self._known.get(key) == math.inf:
                receiver.answers()
        return receiver

    def admissions(self, name: str, company_id: int, attempts: int) -> list[Admission] | str:
        """Admits up to so many attempts, before their deliveries are claimed; else returns the receiver without
        room."""
        if not name:
            return [Admission(self, company_id, name) for _ in range(attempts)]
        limited = []
        receiver = self.receiver(name)
        if receiver.is_limited:
            limited.append(receiver)
        if name in self._full_addresses:
            addresses = [self.receiver(key) for key in self._full_addresses[name]]
            if all(address.is_limited for address in addresses):
                limited.append(max(addresses, key=lambda address: address.room(company_id)))
            else:
                del self._full_addresses[name]
        if not limited:
            return [Admission(self, company_id, name) for _ in range(attempts)]
        for receiver in limited:
            attempts = min(attempts, receiver.room(company_id))
            if attempts <= 0:
                return receiver.key
        admissions = []
        for _ in range(attempts):
            admissions.append(Admission(self, company_id, name))
            admissions[-1].take(*limited)
        return admissions

    def admission(self, name: str, company_id: int) -> Admission:
        """The admission of one attempt, which takes nothing before it is made."""
        return Admission(self, company_id, name)

    def room(self, key: str, company_id: int) -> int | None:
        """How many attempts a receiver has room for; None if it has enough."""
        receiver = self.receiver(key)
        return receiver.room(company_id) if receiver.is_limited else None

    def is_new(self, key: str) -> bool:
        """Whether the receiver has never answered."""
        return not self.receiver(key).has_answered

    def remember(self, name: str, refused_by: Sequence[str]) -> None:
        """An attempt found no room: the next ones to that name are admitted at these addresses before they are
        claimed."""
        addresses = tuple(key for key in refused_by if key != name)
        if name and addresses:
            while len(self._full_addresses) >= KNOWN_MAX:
                del self._full_addresses[next(iter(self._full_addresses))]
            self._full_addresses[name] = addresses

    def answered(self, keys: Iterable[str]) -> None:
        """These receivers' first 2xx is stored."""
        for key in keys:
            self._know(key, math.inf)

    async def learn(self, keys: Iterable[str]) -> None:
        """Finds out which of them have answered. Without the database they count as new."""
        now = time.monotonic()
        while unknown := [key for key in keys if key and self._known.get(key, 0) < now]:
            self._asked.update(unknown)
            if self._asking is None:
                self._asking = asyncio.create_task(self._ask())
            await asyncio.shield(self._asking)

    async def _ask(self) -> None:
        try:
            while self._asked:
                keys, self._asked = self._asked, set()
                try:
                    answered = await queries.answered(self._database, keys)
                except DatabaseUnavailable as error:
                    log.warning("receivers_not_known", receivers=len(keys), reason=str(error))
                    answered = set()
                again = time.monotonic() + ASK_AGAIN_SECONDS
                for key in keys:
                    self._know(key, math.inf if key in answered else again)
        finally:
            self._asking = None

    def _know(self, key: str, until: float) -> None:
        self._known.pop(key, None)
        while len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[key] = until
        receiver = self._receivers.get(key)
        if until == math.inf and receiver is not None and not receiver.has_answered:
            receiver.answers()
