"""Compares the events at the receiver with those that the month implies, and with GET."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from .month_company import instant
from .month_parts import Implied
from .month_walk import LISTS, Month
from .receiver import Delivery

Body = dict[str, Any]
Sort = tuple[str, str | int, str]
UNFORESEEN = {"url", "created_at"}
TICK = timedelta(microseconds=1)


def bodies(deliveries: Iterable[Delivery]) -> list[Body]:
    """The body of each event once; repeated attempts must have the same bytes."""
    found: dict[str, Delivery] = {}
    for one in deliveries:
        first = found.setdefault(one.json["event_id"], one)
        assert first.body == one.body
    return [one.json for one in found.values()]


def sort_of(body: Body) -> Sort:
    """An event's kind, record and change."""
    data = body["data"]
    about = data.get("entity_id") or str(sorted((k, v) for k, v in data.items() if k not in UNFORESEEN))
    return body["event"], about, str(body["change"])


def sort_implied(one: Implied) -> Sort:
    about = one.entity_id or str(sorted(one.facts.items()))
    return one.event, about, str(one.change)


def exactly(found: Iterable[Body], implied: Iterable[Implied]) -> tuple[Counter[Sort], Counter[Sort]]:
    """The missing events and the surplus ones."""
    here, there = Counter(map(sort_of, found)), Counter(map(sort_implied, implied))
    return there - here, here - there


def paired(found: Iterable[Body], implied: Iterable[Implied]) -> Iterator[tuple[Body, Implied]]:
    """Pairs each event with its implied one; events of one sort in the order in which they happened."""
    waiting: defaultdict[Sort, list[Implied]] = defaultdict(list)
    for one in implied:
        waiting[sort_implied(one)].append(one)
    for body in sorted(found, key=lambda body: (body["occurred_at"], body["event_id"])):
        yield body, waiting[sort_of(body)].pop(0)


def disagreements(month: Month, name: str, found: list[Body]) -> Iterator[str]:
    """Events whose data differ from the implied facts, from GET right after the event, or from GET now."""
    player = month.players[name]
    pairs = list(paired(found, player.model.implied))
    last_of_step: dict[tuple[str, int, int], Body] = {}
    last: dict[tuple[str, int], tuple[str, Body]] = {}
    for body, one in pairs:
        data, where = body["data"], f"{name}: {body}"
        if wrong := {key: value for key, value in one.facts.items() if data.get(key) != value}:
            yield f"{where}: not {wrong}"
        began, ended = month.steps[one.step]
        if not began - TICK <= instant(body["occurred_at"]) <= ended + TICK:
            yield f"{where}: did not happen in step {one.step}, {began} to {ended}"
        if one.kind:
            last_of_step[one.kind, one.entity_id, one.step] = body
            last[one.kind, one.entity_id] = body["occurred_at"], body
    for (kind, entity_id, step), body in last_of_step.items():
        read = month.seen[name, kind, entity_id, step]
        if (kind, entity_id, step) not in player.model.touched_in and read != body["data"]:
            yield f"{name}: {kind} {entity_id} was {read} after {body}"
    now = {kind: {one["entity_id"]: one for one in player.all(path)} for kind, path in LISTS.items()}
    for (kind, entity_id), (_, body) in last.items():
        if (kind, entity_id) not in player.model.touched and now[kind][entity_id] != body["data"]:
            yield f"{name}: {kind} {entity_id} is {now[kind][entity_id]} since {body}"


def out_of_order(found: Iterable[Body]) -> Iterator[str]:
    """Records whose changes, in the order of their times, do not each begin where the one before ended."""
    moves: defaultdict[tuple[int, str], list[tuple[datetime, Any, Any]]] = defaultdict(list)
    for body in found:
        if body["change"] and body["change"]["field"] in ("status", "projected_ready_on"):
            change = body["change"]
            about = body["data"]["entity_id"], change["field"]
            moves[about].append((instant(body["occurred_at"]), change["from"], change["to"]))
    for about, some in moves.items():
        some.sort(key=lambda move: move[0])
        times = [at for at, _, _ in some]
        if len(set(times)) != len(times) or any(a[2] != b[1] for a, b in itertools.pairwise(some)):
            yield f"{about}: {some}"
