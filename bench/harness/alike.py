"""Checks before the measurement that all sides answer alike, field by field."""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Sequence
from typing import Any

from harness import data
from harness.load import Answer, Client
from harness.seed import Seeded
from harness.workloads import CHANGES, next_cursor

LONG_NOTE = "It was done by somebody else before."
SHORT_NOTE = "Done - all - !"
REFUSED_CHANGES: tuple[tuple[int, data.Row], ...] = (
    (400, {}),
    (422, {"status": "Done"}),
    (422, {"status": "Open", "title": "Door"}),
    (422, {"status": "Open", "note": LONG_NOTE}),
    (422, {"status": "Completed"}),
    (422, {"status": "Completed", "note": SHORT_NOTE}),
    (422, {"status": "Completed", "note": LONG_NOTE, "cancellation_reason_code": "wrong_property"}),
    (400, {"status": "Completed", "note": "word " * 4001}),
    (422, {"status": "Cancelled"}),
    (422, {"status": "Cancelled", "cancellation_reason_code": "tired"}),
    (422, {"status": "Cancelled", "cancellation_reason_code": "see_notes"}),
    (422, {"status": "Cancelled", "cancellation_reason_code": "see_notes", "cancellation_notes": SHORT_NOTE}),
    (400, {"status": "Cancelled", "cancellation_reason_code": "wrong_property", "cancellation_notes": LONG_NOTE}),
)
INSTANTS = ("created_at", "updated_at", "completed_at", "cancelled_at")


class DifferentError(Exception):
    """A peer does not do the same work: a comparison would mean nothing."""


def _expect(condition: bool, about: str, ours: object, peers: object) -> None:
    if not condition:
        raise DifferentError(f"{about} differs: {ours!r} here, {peers!r} at the peer")


def _instants(ticket: dict[str, Any]) -> dict[str, Any]:
    """The ticket with its instants parsed: the two sides print them with different numbers of digits."""
    parsed = {name: datetime.datetime.fromisoformat(ticket[name]) for name in INSTANTS if ticket[name]}
    return ticket | parsed


def _same_ticket(ours: dict[str, Any], peers: dict[str, Any], *, besides: tuple[str, ...] = ()) -> None:
    _expect(list(ours) == list(peers), "the keys of a ticket", list(ours), list(peers))
    ours, peers = _instants(ours), _instants(peers)
    for name, value in ours.items():
        if name in besides:
            _expect((value is None) == (peers[name] is None), f"whether {name} is there", value, peers[name])
        else:
            _expect(value == peers[name], f"{name} of ticket {ours['entity_id']}", value, peers[name])


def _same_tickets(answers: Sequence[Answer], *, besides: tuple[str, ...] = ()) -> None:
    ours, *peers = (json.loads(answer.body) for answer in answers)
    for peer in peers:
        _same_ticket(ours, peer, besides=besides)


def _bodies(status: str) -> list[data.Row]:
    """The bodies of a change to this status."""
    if status == "Completed":
        return [{"status": status, "note": LONG_NOTE}]
    if status == "Cancelled":
        notes = {"cancellation_reason_code": "see_notes", "cancellation_notes": LONG_NOTE}
        return [{"status": status, "cancellation_reason_code": "duplicate_ticket"}, {"status": status} | notes]
    return [{"status": status}]


class Alike:
    """One client for each side, ours first, which send the same requests."""

    def __init__(self, clients: Sequence[Client], seeded: Seeded) -> None:
        self._clients = clients
        self._seeded = seeded
        self._read = seeded.of(seeded.measured, "read")[0]
        self._write = seeded.of(seeded.written, "write")[0]

    async def ask(self, method: str, path: str, key: str, body: bytes = b"", more: str = "") -> list[Answer]:
        """All answers. Raises DifferentError if the statuses differ."""
        answers = [await client.ask(client.request(method, path, key, body, more)) for client in self._clients]
        for other in answers[1:]:
            _expect(answers[0].status == other.status, f"the status of {method} {path}", answers[0], other)
        return answers

    async def check(self) -> int:
        """Compares every measured ticket, a create, changes, their replays and refusals; returns how many tickets."""
        compared = await self._lists()
        for ticket_id in self._seeded.ticket_ids[:20]:
            _same_tickets(await self.ask("GET", f"/tickets/{ticket_id}", self._read))
        await self._creates()
        await self._changes()
        await self._refusals()
        await self._refused_changes()
        return compared

    async def _lists(self) -> int:
        compared = 0
        cursors = [""] * len(self._clients)
        while True:
            pages = []
            for client, cursor in zip(self._clients, cursors, strict=True):
                pages.append((await client.ask(client.request("GET", f"/tickets?limit=200{cursor}", self._read))).body)
            ours, *peers = (json.loads(page) for page in pages)
            for peer in peers:
                _expect(list(ours) == list(peer), "the keys of a page", list(ours), list(peer))
                _expect(len(ours["data"]) == len(peer["data"]), "the length of a page", len(ours["data"]), "another")
                for mine, other in zip(ours["data"], peer["data"], strict=True):
                    _same_ticket(mine, other)
            compared += len(ours["data"])
            following = [next_cursor(page) for page in pages]
            for next_page in following:
                _expect(bool(following[0]) == bool(next_page), "the end of the list", following[0], next_page)
            if not following[0]:
                return compared
            cursors = [f"&cursor={cursor}" for cursor in following]

    async def _creates(self) -> None:
        body = {"unit_id": self._seeded.unit_ids[0], "title": "Door sticks", "category": "Doors/Windows"}
        other = body | {"title": "Door creaks"}
        await self._write_once("POST", "/tickets", body, other, 201, besides=("entity_id", "url", *INSTANTS))

    async def _changes(self) -> None:
        """Changes through all statuses and back, and to the same status again: with a new note and with nothing new."""
        path = f"/tickets/{next(iter(self._seeded.statuses))}"
        changed = ("updated_at", "completed_at", "cancelled_at")
        for status in (*CHANGES, "Completed", "Completed", "Open", "Open"):
            for body in _bodies(status):
                (other, *_) = _bodies("On Hold" if status != "On Hold" else "Open")
                await self._write_once("PATCH", path, body, other, 200, changed)

    async def _write_once(
        self, method: str, path: str, body: data.Row, other: data.Row, status: int, besides: tuple[str, ...]
    ) -> None:
        """A write, its replay, and its key with another body."""
        more = f"Idempotency-Key: {secrets.token_hex(16)}\r\n"
        firsts, replays, others = [
            await self.ask(method, path, self._write, json.dumps(sent).encode(), more) for sent in (body, body, other)
        ]
        _expect(firsts[0].status == status, f"the status of {method} {path}", firsts[0], status)
        _same_tickets(firsts, besides=besides)
        for first, replay in zip(firsts, replays, strict=True):
            _expect(json.loads(first.body) == json.loads(replay.body), "a replay", first, replay)
            _expect(b"x-idempotent-replay: 1" in replay.headers, "a replay's header", replay, "")
        self._same_code(others, 409, "idempotency_mismatch")

    async def _refusals(self) -> None:
        read, write = self._read, self._write
        key = "Idempotency-Key: a\r\n"
        body = json.dumps({"unit_id": self._seeded.unit_ids[0], "title": "Door", "category": "General"}).encode()
        self._same_code(await self.ask("GET", "/tickets", "nobody"), 401, "unauthorized")
        self._same_code(await self.ask("POST", "/tickets", read, body, key), 403, "insufficient_scope")
        self._same_code(await self.ask("GET", f"/tickets/{self._seeded.ticket_ids[0]}", write), 404, "not_found")
        self._same_code(await self.ask("GET", "/tickets?nonsense=1", read), 400, "invalid_request")
        self._same_code(await self.ask("GET", "/tickets?status=Done", read), 422, "invalid_request")
        self._same_code(await self.ask("GET", "/tickets?cursor=nonsense", read), 400, "invalid_cursor")
        self._same_code(await self.ask("POST", "/tickets", write, body), 400, "idempotency_key_required")
        long = body.replace(b"Door", b"x" * 151)
        self._same_code(await self.ask("POST", "/tickets", write, long, key), 422, "invalid_request")
        away = body.replace(str(self._seeded.unit_ids[0]).encode(), b"999999999")
        self._same_code(await self.ask("POST", "/tickets", write, away, key), 404, "not_found")

    async def _refused_changes(self) -> None:
        path, write = f"/tickets/{next(iter(self._seeded.statuses))}", self._write
        key = "Idempotency-Key: b\r\n"
        begun = b'{"status":"In Progress"}'
        self._same_code(await self.ask("PATCH", path, self._read, begun, key), 403, "insufficient_scope")
        self._same_code(await self.ask("PATCH", path, write, begun), 400, "idempotency_key_required")
        away = f"/tickets/{self._seeded.ticket_ids[0]}"  # of another company
        self._same_code(await self.ask("PATCH", away, write, begun, key), 404, "not_found")
        for status, body in REFUSED_CHANGES:
            answers = await self.ask("PATCH", path, write, json.dumps(body).encode(), key)
            self._same_code(answers, status, "invalid_request")

    def _same_code(self, answers: Sequence[Answer], status: int, code: str) -> None:
        for answer in answers:
            answered = json.loads(answer.body)["error"]["code"]
            _expect((answer.status, answered) == (status, code), "a refusal", answer, (status, code))
