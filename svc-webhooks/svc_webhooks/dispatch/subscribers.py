"""The subscriptions of a sweep that may have more due deliveries, in their turns.

They stand in the queue of those that answer promptly or in that of the slow ones; or they wait aside, until their
receiver has room. Companies take turns in a queue, and so do a company's subscriptions.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from svc_webhooks.dispatch.hosts import Hosts


@dataclass(slots=True, eq=False)
class Subscriber:
    """A subscription in a sweep. Its `host` is a `HttpClient.name_of`. It is `slow` if its attempts last longer than
    SLOW_AFTER_SECONDS, as far as is known. It `waits_for` the receiver that had no room."""

    id: int
    company_id: int
    host: str
    slow: bool
    under_way: int = 0
    overdue: int = 0
    waits_for: str = ""


_OfCompanies = OrderedDict[int, OrderedDict[int, Subscriber]]  # by company, by subscription, in their turns
Turn = tuple[int, Iterator[Subscriber], int]
"""A company in a queue: its id, its subscriptions in their turns, and their number."""


class Subscribers:
    """One per sweep."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._by_id: dict[int, Subscriber] = {}
        self._queues: tuple[_OfCompanies, _OfCompanies] = (OrderedDict(), OrderedDict())  # prompt ones, slow ones
        self._aside: dict[str, _OfCompanies] = {}  # by the receiver that had no room

    def __getitem__(self, sub_id: int) -> Subscriber:
        return self._by_id[sub_id]

    @property
    def are_queued(self) -> bool:
        """Whether one is in a queue."""
        return any(self._queues)

    @property
    def full_receivers(self) -> Collection[str]:
        """The receivers for whose room subscriptions wait aside."""
        return self._aside.keys()

    @property
    def aside(self) -> list[int]:
        """The ids of those that wait aside."""
        return [sub_id for companies in self._aside.values() for ids in companies.values() for sub_id in ids]

    def turns(self, *, slow: bool) -> deque[Turn]:
        """The companies in a queue, in their turns, as they are now."""
        return deque(
            (company_id, iter(list(of_company.values())), len(of_company))
            for company_id, of_company in self._queues[slow].items()
        )

    def add(self, sub_id: int, company_id: int, host: str, *, slow: bool) -> None:
        """Queues a subscription that has due deliveries, unless it waits aside. slow: unless more is known already."""
        subscriber = self._by_id.get(sub_id)
        if subscriber is None:
            subscriber = self._by_id[sub_id] = Subscriber(sub_id, company_id, host, slow)
        if not subscriber.waits_for:
            _put(self._queues[subscriber.slow], subscriber)

    def go_last(self, subscriber: Subscriber) -> None:
        """It has had its turn, and so has its company."""
        queue = self._queues[subscriber.slow]
        queue.move_to_end(subscriber.company_id)
        queue[subscriber.company_id].move_to_end(subscriber.id)

    def set_aside(self, subscriber: Subscriber, receiver: str) -> None:
        """Until `let_in` finds room at the receiver."""
        _drop(self._queues[subscriber.slow], subscriber)
        subscriber.waits_for = receiver
        _put(self._aside.setdefault(receiver, OrderedDict()), subscriber)

    def let_in(self) -> None:
        """Queues those whose receiver has room again, as many as fit."""
        for receiver, companies in list(self._aside.items()):
            for company_id, of_company in list(companies.items()):
                room = self._hosts.room(receiver, company_id)
                for subscriber in list(islice(of_company.values(), room)):
                    subscriber.waits_for = ""
                    _drop(companies, subscriber)
                    _put(self._queues[subscriber.slow], subscriber)
            if not companies:
                del self._aside[receiver]

    def requeue(self, subscriber: Subscriber, *, slow: bool) -> None:
        """A subscription that becomes slow, or prompt again, goes to the end of the other queue."""
        if subscriber.slow != slow:
            was_queued = _drop(self._queues[subscriber.slow], subscriber)
            subscriber.slow = slow
            if was_queued:
                _put(self._queues[slow], subscriber)

    def take_out(self, subscriber: Subscriber) -> None:
        """It has no more due deliveries."""
        _drop(self._queues[subscriber.slow], subscriber)
        self.forget(subscriber)

    def forget(self, subscriber: Subscriber) -> None:
        """Unless it is in a queue, waits aside or has attempts under way."""
        if (
            not subscriber.under_way
            and not subscriber.waits_for
            and subscriber.id not in self._queues[subscriber.slow].get(subscriber.company_id, ())
        ):
            self._by_id.pop(subscriber.id, None)


def _put(queue: _OfCompanies, subscriber: Subscriber) -> None:
    queue.setdefault(subscriber.company_id, OrderedDict())[subscriber.id] = subscriber


def _drop(queue: _OfCompanies, subscriber: Subscriber) -> bool:
    """Whether it was there."""
    of_company = queue.get(subscriber.company_id)
    if of_company is None or of_company.pop(subscriber.id, None) is None:
        return False
    if not of_company:
        del queue[subscriber.company_id]
    return True
