"""Walks through the month: each step runs commands or a sweep, then reads the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from .month_calendar import Calendar
from .month_company import EVENTS, Player, Record, together
from .month_model import BEGUN, VACATED
from .month_parts import Implied
from .system import System

LISTS = {"ticket": "/tickets", "turn": "/turns", "inspection": "/inspections", "vendor": "/vendors"}
COUNTED = (*EVENTS, VACATED, BEGUN)
Act = Callable[[], Any]


@dataclass
class Month:
    """players: the companies by their name in the script. seen: each record as GET served it after a step with an event
    about it. steps: the real start and end of each step."""

    system: System
    calendar: Calendar
    players: dict[str, Player] = field(default_factory=dict)
    seen: dict[tuple[str, str, int, int], Record] = field(default_factory=dict)
    steps: list[tuple[datetime, datetime]] = field(default_factory=list)
    sweeps: int = 0
    swept_at: datetime | None = None
    _acts: dict[int, list[Act]] = field(default_factory=dict)

    def on(self, day: int, *acts: Act) -> None:
        """Plans commands for a day, before its sweeps. Those of one call run in order, separate calls in parallel."""

        def all_of_them() -> None:
            for act in acts:
                act()

        self._acts.setdefault(day, []).append(all_of_them)

    def step(self, *acts: Act) -> list[Any]:
        """One step: runs the commands in parallel, then reads the records that their events are about."""
        for player in self.players.values():
            player.model.step = len(self.steps)
        began = datetime.now(UTC)
        done = together(acts) if len(acts) > 1 else [act() for act in acts]
        self.steps.append((began, datetime.now(UTC)))
        together([partial(self._read, name, player) for name, player in self.players.items()])
        return done

    def _read(self, name: str, player: Player) -> None:
        step = len(self.steps) - 1
        implied = {(event.kind, event.entity_id) for event in player.model.implied if event.step == step and event.kind}
        for kind in {kind for kind, _ in implied}:
            ids = {entity_id for other, entity_id in implied if other == kind}
            path = LISTS[str(kind)]
            records = [player.get(f"{path}/{entity_id}") for entity_id in ids] if len(ids) < 3 else player.all(path)
            self.seen |= {
                (name, str(kind), record["entity_id"], step): record for record in records if record["entity_id"] in ids
            }

    def sweep(self, now: datetime, at_once: int = 1) -> None:
        """Runs `sweep stale --now` in `at_once` parallel processes; together they must do exactly what is implied."""
        words = ("sweep", "stale", "--now", now.isoformat(), "--yes-for-all-companies")

        def sweeping() -> None:
            done: Counter[str] = Counter()
            for printed in together([lambda: self.system.makeready(*words)] * at_once):
                done.update(printed["done"])
            implied: Counter[str] = Counter()
            for player in self.players.values():
                implied.update(player.model.sweep(now))
            counts = {name: done[name] for name in COUNTED if done[name]}
            assert counts == {name: count for name, count in implied.items() if count}, (now, counts, implied)

        self.step(sweeping)
        self.sweeps += at_once
        self.swept_at = now

    def walk(self, is_down: range, returning: int) -> None:
        """Runs every day: the planned commands, then the sweeps. is_down: days without sweeps; on the day after them
        `returning` parallel processes sweep."""
        for number in range(len(self.calendar)):
            if acts := self._acts.pop(number, []):
                self.step(*acts)
            if number not in is_down:
                for now in self.calendar.instants(number):
                    self.sweep(now, returning if number == is_down.stop else 1)
        assert not self._acts, f"the month ends before {sorted(self._acts)}"

    def implied(self, name: str) -> list[Implied]:
        return self.players[name].model.implied
