"""Accounts for every (event, subscription): compares the receivers' log with the served records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .soak_causes import Cause
from .soak_kills import POSTGRES, Kill
from .soak_listener import Arrival
from .soak_plan import DELIVERS, Subscription

LATE_SECONDS = 2.0  # at most between an answer and its line in the log, on a busy machine


@dataclass(frozen=True)
class Listed:
    """A delivery in the operator's lists."""

    state: str
    attempts: int


@dataclass
class Verdict:
    """The counts. faults: what must never happen; empty in a good run."""

    expected: int = 0
    delivered: int = 0
    parked: int = 0
    waiting: int = 0
    requests: int = 0
    answered: Counter[int] = field(default_factory=Counter)
    duplicates: int = 0
    duplicated: int = 0
    after: Counter[str] = field(default_factory=Counter)
    """Duplicates by the processes killed between the two answers."""
    unexplained: int = 0
    """Duplicates without a kill of a dispatcher or of PostgreSQL between the two answers."""
    retried: int = 0
    """Deliveries with more than one request."""
    longest_gap_seconds: float = 0.0
    deliveries_a_second: float = 0.0
    busiest_a_second: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)


def judged(
    truth: Collection[Cause],
    subscriptions: Sequence[Subscription],
    arrivals: Iterable[Arrival],
    listed: Mapping[Subscription, Mapping[str, Listed]],
    kills: Sequence[Kill],
) -> Verdict:
    """listed: the waiting and parked deliveries of each subscription, by event id, as the operator's list has them."""
    verdict = Verdict()
    by_path = {subscription.path: subscription for subscription in subscriptions}
    causes: dict[str, Cause] = {}
    digests: dict[str, str] = {}
    answers: dict[tuple[str, str], list[float]] = {}
    requests: Counter[tuple[str, str]] = Counter()
    for arrival in arrivals:
        if arrival.path not in by_path:
            continue  # of an earlier run
        subscription = by_path[arrival.path]
        cause = Cause(subscription.company, arrival.event, arrival.entity_id, arrival.to)
        verdict.requests += 1
        verdict.answered[arrival.answered] += 1
        verdict.faults["requests with a bad signature"] += not arrival.signed
        first_digest = digests.setdefault(arrival.event_id, arrival.digest)
        verdict.faults["attempts of one event with other bytes"] += first_digest != arrival.digest
        verdict.faults["event ids with two causes"] += causes.setdefault(arrival.event_id, cause) != cause
        verdict.faults["requests to somebody who does not listen for it"] += arrival.event not in subscription.heard
        requests[arrival.path, arrival.event_id] += 1
        if arrival.answered == 200:
            answers.setdefault((arrival.path, arrival.event_id), []).append(arrival.at)
    event_ids: dict[Cause, str] = {}
    for event_id, cause in causes.items():
        verdict.faults["events without a cause"] += cause not in truth
        verdict.faults["causes with two event ids"] += event_ids.setdefault(cause, event_id) != event_id
    verdict.retried = sum(count > 1 for count in requests.values())
    _count_deliveries(verdict, truth, subscriptions, event_ids, answers, listed)
    _count_duplicates(verdict, answers, kills)
    _count_seconds(verdict, sorted(times[0] for times in answers.values()))
    verdict.faults = +verdict.faults
    return verdict


def _count_deliveries(
    verdict: Verdict,
    truth: Collection[Cause],
    subscriptions: Sequence[Subscription],
    event_ids: Mapping[Cause, str],
    answers: Mapping[tuple[str, str], list[float]],
    listed: Mapping[Subscription, Mapping[str, Listed]],
) -> None:
    of_company: dict[tuple[int, str], list[Cause]] = {}
    for cause in truth:
        of_company.setdefault((cause.company, cause.event), []).append(cause)
    for subscription in subscriptions:
        for cause in (
            cause for event in subscription.heard for cause in of_company.get((subscription.company, event), ())
        ):
            verdict.expected += 1
            event_id = event_ids.get(cause, "")
            delivery = listed.get(subscription, {}).get(event_id)
            if (subscription.path, event_id) in answers:
                verdict.delivered += 1
            elif delivery is None:
                verdict.faults["deliveries that are missing: neither arrived nor shown"] += 1
            elif delivery.state == "parked" and subscription.kind not in DELIVERS:
                verdict.parked += 1
            elif delivery.state == "waiting" and delivery.attempts:
                verdict.waiting += 1
            else:
                verdict.faults[
                    f"deliveries to a {subscription.kind} endpoint that are {delivery.state}, {delivery.attempts} tried"
                ] += 1


def _count_duplicates(verdict: Verdict, answers: Mapping[tuple[str, str], list[float]], kills: Sequence[Kill]) -> None:
    deaths = [kill for kill in kills if kill.who == POSTGRES or kill.who.startswith("svc-webhooks")]
    for times in answers.values():
        verdict.duplicated += len(times) > 1
        for first, second in pairwise(times):
            verdict.duplicates += 1
            died = {
                POSTGRES if kill.who == POSTGRES else "a dispatcher"
                for kill in deaths
                if first - LATE_SECONDS <= _without(kill) and kill.at <= second
            }
            verdict.unexplained += not died
            verdict.after[" and ".join(sorted(died)) or "nobody"] += 1


def _without(kill: Kill) -> float:
    """Until when an answer could get lost: nothing is recorded before PostgreSQL is back."""
    return max(kill.at, kill.back_at) if kill.who == POSTGRES else kill.at


def _count_seconds(verdict: Verdict, firsts: Sequence[float]) -> None:
    """firsts: when each delivery was first answered with a 2xx, ascending."""
    if len(firsts) < 2:
        return
    verdict.longest_gap_seconds = max(after - before for before, after in pairwise(firsts))
    verdict.deliveries_a_second = len(firsts) / (firsts[-1] - firsts[0])
    per_ten = Counter(int(at - firsts[0]) // 10 for at in firsts)
    verdict.busiest_a_second = max(per_ten.values()) / 10
