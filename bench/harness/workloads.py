"""The measured workloads: the requests of each kind, the same on all sides."""

from __future__ import annotations

import itertools
import json
import random
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from harness import data
from harness.load import Client, Script
from harness.seed import Seeded
from harness.sides import Side

# The weight of each status among the changes.
CHANGES = {"Open": 10, "In Progress": 30, "On Hold": 15, "Completed": 35, "Cancelled": 10}
_NEXT = b'"next_cursor":'


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    goals: by the number of connections, how many times less CPU than the usual peer is aimed at. requests: of one
    measured block. script: makes the requests of one connection.
    """

    name: str
    goals: Mapping[int, float]
    requests: int
    status: int
    scope: str
    script: Callable[[Client, Side, Seeded, Iterator[str]], Script]


def next_cursor(page: bytes) -> str | None:
    """The cursor of a page's JSON, found without parsing its rows."""
    _, _, after_key = page.rpartition(_NEXT)
    value = json.loads(after_key.partition(b",")[0].rstrip(b"}"))
    assert value is None or isinstance(value, str)
    return value


def one_ticket(client: Client, _side: Side, seeded: Seeded, keys: Iterator[str]) -> Script:
    ids = list(seeded.ticket_ids)
    random.shuffle(ids)
    for ticket_id in itertools.cycle(ids):
        yield client.request("GET", f"/tickets/{ticket_id}", next(keys))


def pages(limit: int) -> Callable[[Client, Side, Seeded, Iterator[str]], Script]:
    """Walks the whole list by its cursors, again and again."""

    def script(client: Client, _side: Side, _seeded: Seeded, keys: Iterator[str]) -> Script:
        cursor = ""
        while True:
            page = yield client.request("GET", f"/tickets?limit={limit}{cursor}", next(keys))
            following = next_cursor(page)
            cursor = f"&cursor={following}" if following else ""

    return script


def creates(client: Client, _side: Side, seeded: Seeded, keys: Iterator[str]) -> Script:
    chance = random.Random()  # noqa: S311 - invented text
    while True:
        category, title, description = data.sentence(chance)
        body = {
            "unit_id": chance.choice(seeded.unit_ids),
            "title": title,
            "category": category,
            "description": description,
            "priority": "High",
        }
        more = f"Idempotency-Key: {secrets.token_hex(16)}\r\n"
        yield client.request("POST", "/tickets", next(keys), json.dumps(body).encode(), more)


def changes(client: Client, side: Side, seeded: Seeded, keys: Iterator[str]) -> Script:
    """Changes any ticket to any status but its own, most often to the two usual ones."""
    chance = random.Random()  # noqa: S311 - invented text
    tickets, statuses = list(seeded.statuses), tuple(CHANGES)
    while True:
        ticket_id = chance.choice(tickets)
        before = side.statuses.get(ticket_id, seeded.statuses[ticket_id])
        weights = [0 if status == before else CHANGES[status] for status in statuses]
        (status,) = chance.choices(statuses, weights)
        side.statuses[ticket_id] = status
        more = f"Idempotency-Key: {secrets.token_hex(16)}\r\n"
        body = json.dumps(data.change(chance, status)).encode()
        yield client.request("PATCH", f"/tickets/{ticket_id}", next(keys), body, more)


def greetings(client: Client, _side: Side, _seeded: Seeded, keys: Iterator[str]) -> Script:
    """The cheapest request that every key may send: for the warm-up, not measured."""
    while True:
        yield client.request("GET", "/tickets?limit=1", next(keys))


WORKLOADS = (
    Workload("one ticket", {16: 2.3, 1: 1.2}, 1200, 200, "read", one_ticket),
    Workload("a page of 50", {16: 5.5, 1: 3.0}, 400, 200, "read", pages(50)),
    Workload("a page of 200", {16: 8.0, 1: 4.0}, 160, 200, "read", pages(200)),
    Workload("a create", {16: 3.3, 1: 1.2}, 600, 201, "write", creates),
    Workload("a status change", {16: 3.5, 1: 1.3}, 600, 200, "write", changes),
)
