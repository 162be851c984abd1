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
    deliveries_by_event: dict[str, Delivery] = {}
    for delivery in deliveries:
        first = deliveries_by_event.setdefault(delivery.json["event_id"], delivery)
        assert first.body == delivery.body
    return [delivery.json for delivery in deliveries_by_event.values()]


def sort_of(body: Body) -> Sort:
    """An event's kind, record and change."""
    data = body["data"]
    about = data.get("entity_id") or str(sorted((k, v) for k, v in data.items() if k not in UNFORESEEN))
    return body["event"], about, str(body["change"])


def sort_implied(event: Implied) -> Sort:
    about = event.entity_id or str(sorted(event.facts.items()))
    return event.event, about, str(event.change)


def exactly(bodies: Iterable[Body], implied: Iterable[Implied]) -> tuple[Counter[Sort], Counter[Sort]]:
    """The missing events and the surplus ones."""
    here, there = Counter(map(sort_of, bodies)), Counter(map(sort_implied, implied))
    return there - here, here - there


def paired(bodies: Iterable[Body], implied: Iterable[Implied]) -> Iterator[tuple[Body, Implied]]:
    """Pairs each event with its implied one; events of one sort in the order in which they happened."""
    waiting: defaultdict[Sort, list[Implied]] = defaultdict(list)
    for event in implied:
        waiting[sort_implied(event)].append(event)
    for body in sorted(bodies, key=lambda body: (body["occurred_at"], body["event_id"])):
        yield body, waiting[sort_of(body)].pop(0)


def disagreements(month: Month, name: str, bodies: list[Body]) -> Iterator[str]:
    """Events whose data differ from the implied facts, from GET right after the event, or from GET now."""
    player = month.players[name]
    pairs = list(paired(bodies, player.model.implied))
    last_of_step: dict[tuple[str, int, int], Body] = {}
    last: dict[tuple[str, int], tuple[str, Body]] = {}
    for body, event in pairs:
        data, where = body["data"], f"{name}: {body}"
        if wrong := {key: value for key, value in event.facts.items() if data.get(key) != value}:
            yield f"{where}: not {wrong}"
        began, ended = month.steps[event.step]
        if not began - TICK <= instant(body["occurred_at"]) <= ended + TICK:
            yield f"{where}: did not happen in step {event.step}, {began} to {ended}"
        if event.kind:
            last_of_step[event.kind, event.entity_id, event.step] = body
            last[event.kind, event.entity_id] = body["occurred_at"], body
    for (kind, entity_id, step), body in last_of_step.items():
        read = month.seen[name, kind, entity_id, step]
        if (kind, entity_id, step) not in player.model.touched_in and read != body["data"]:
            yield f"{name}: {kind} {entity_id} was {read} after {body}"
    now = {kind: {record["entity_id"]: record for record in player.all(path)} for kind, path in LISTS.items()}
    for (kind, entity_id), (_, body) in last.items():
        if (kind, entity_id) not in player.model.touched and now[kind][entity_id] != body["data"]:
            yield f"{name}: {kind} {entity_id} is {now[kind][entity_id]} since {body}"


def out_of_order(bodies: Iterable[Body]) -> Iterator[str]:
    """Records whose changes, in the order of their times, do not each begin where the one before ended."""
    moves: defaultdict[tuple[int, str], list[tuple[datetime, Any, Any]]] = defaultdict(list)
    for body in bodies:
        if body["change"] and body["change"]["field"] in ("status", "projected_ready_on"):
            change = body["change"]
            about = body["data"]["entity_id"], change["field"]
            moves[about].append((instant(body["occurred_at"]), change["from"], change["to"]))
    for about, moved in moves.items():
        moved.sort(key=lambda move: move[0])
        times = [at for at, _, _ in moved]
        if len(set(times)) != len(times) or any(a[2] != b[1] for a, b in itertools.pairwise(moved)):
            yield f"{about}: {moved}"
