"""How many attempts of a sweep may be under way, and which of them last long.

Prompt subscriptions share one part of the capacity, slow ones a smaller one. An attempt of a prompt subscription no
longer counts in its part once it is overdue; in the whole it counts to its end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from svc_webhooks.dispatch.hosts import Admission
from svc_webhooks.dispatch.subscribers import Subscriber
from svc_webhooks.http_client.shares import Shares, total_where_one_party_gets


@dataclass(slots=True, eq=False)
class Running:
    """A running attempt. It is `slow` if it counts among those of slow subscriptions, and `overdue` if it lasts longer
    than a prompt one."""

    subscriber: Subscriber
    admission: Admission
    began: float
    slow: bool
    overdue: bool = False
    ended: bool = False

    @property
    def counts(self) -> bool:
        """A prompt subscription's attempt counts until it is overdue, a slow one's until it ends."""
        return not self.ended and (self.slow or not self.overdue)


class Capacity:
    """One per sweep. prompt, slow, whole: the number of attempts that a company gets which is alone."""

    def __init__(self, prompt: int, slow: int, whole: int) -> None:
        self._by_speed = tuple(Shares(total_where_one_party_gets(attempts)) for attempts in (prompt, slow))
        self._whole = Shares(total_where_one_party_gets(whole))
        self._begun: deque[Running] = deque()

    @property
    def is_full(self) -> bool:
        return self._whole.held >= self._whole.capacity

    def room(self, company_id: int, *, slow: bool) -> int:
        """How many more attempts the company may begin now."""
        return min(self._whole.room(company_id), self._by_speed[slow].room(company_id))

    def take(self, company_id: int, attempts: int, *, slow: bool) -> None:
        self._whole.take(company_id, attempts)
        self._by_speed[slow].take(company_id, attempts)

    def give_back(self, company_id: int, attempts: int, *, slow: bool) -> None:
        """Of attempts that were not begun."""
        self._whole.give_back(company_id, attempts)
        self._by_speed[slow].give_back(company_id, attempts)

    def begin(self, running: Running) -> None:
        """Its part was taken before its delivery was claimed."""
        self._begun.append(running)

    def end(self, running: Running) -> None:
        """Also for an attempt that is overdue."""
        company_id = running.subscriber.company_id
        self._whole.give_back(company_id)
        if running.counts:
            self._by_speed[running.slow].give_back(company_id)
        running.ended = True

    def become_overdue(self, seconds: float) -> Iterator[Running]:
        """The attempts that last longer than that by now: each once."""
        limit = asyncio.get_running_loop().time() - seconds
        while self._begun and (self._begun[0].ended or self._begun[0].began < limit):
            running = self._begun.popleft()
            if running.ended:
                continue
            running.overdue = True
            if not running.counts:
                self._by_speed[running.slow].give_back(running.subscriber.company_id)
            yield running

    def next_overdue(self, seconds: float) -> float | None:
        """The seconds until the next attempt lasts longer than that; None if none runs."""
        while self._begun and self._begun[0].ended:
            self._begun.popleft()
        if not self._begun:
            return None
        return max(0.0, self._begun[0].began + seconds - asyncio.get_running_loop().time()) + 0.001
