"""What the turns of a unit add to which day."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

from svc_occupancy.reports.facts import Change, Done, TurnOfUnit, UnitHistory, facts_of

ZONE = zoneinfo.ZoneInfo("America/Chicago")


def day(number: int) -> datetime.date:
    return datetime.date(2026, 6, number)


def at(number: int, hour: int = 18) -> datetime.datetime:
    return datetime.datetime(2026, 6, number, hour, tzinfo=datetime.UTC)


def history(*changes: tuple[int, str], move_in: datetime.date | None = None, tasks: Any = ()) -> UnitHistory:
    """A unit whose resident left on the 10th, and perhaps the next one's move-in."""
    turns = [TurnOfUnit(1, day(1), day(10), has_left=True)]
    if move_in is not None:
        turns.append(TurnOfUnit(2, move_in, None, has_left=False))
    return UnitHistory(7, turns, [Change(at(number), status, 1) for number, status in changes], tasks)


def told(unit: UnitHistory) -> set[tuple[str, int, int, int | None]]:
    return {
        (fact.measure, fact.day.day, fact.amount, fact.value) for facts in facts_of(unit, ZONE) for fact in facts.facts
    }


def test_the_days_of_a_turn_from_notice_to_move_in() -> None:
    unit = history((2, "Notice"), (11, "Vacant Not Ready"), (15, "Vacant Ready"), move_in=day(20))
    assert told(unit) == {
        ("moved_out", 10, 1, None), ("vacant", 10, 1, None), ("vacant", 20, -1, None),
        ("ready", 15, 1, 5), ("notice_to_ready", 15, 1, 13), ("not_ready", 15, 1, 4),
        ("moved_in", 20, 1, 10), ("ready_to_move_in", 20, 1, 5),
    }  # fmt: skip


def test_a_unit_that_is_ready_no_more_becomes_ready_later() -> None:
    unit = history((11, "Vacant Not Ready"), (12, "Vacant Ready"), (13, "Down"), (16, "Vacant Ready"))
    figures = told(unit)
    assert ("ready", 16, 1, 6) in figures and ("down", 16, 1, 3) in figures and ("not_ready", 16, 1, 1) in figures
    assert not any(measure == "ready" and at_day == 12 for measure, at_day, *_ in figures)


def test_a_move_in_of_a_unit_that_was_never_ready_counts_its_days() -> None:
    unit = history((11, "Vacant Not Ready"), move_in=day(14))
    assert {("moved_in", 14, 1, 4), ("not_ready", 14, 1, 3)} <= told(unit)
    assert not any(measure in ("ready", "ready_to_move_in") for measure, *_ in told(unit))


def test_a_resident_who_is_still_there_and_days_at_midnight() -> None:
    staying = UnitHistory(7, [TurnOfUnit(1, day(1), day(10), has_left=False)], [], [])
    assert facts_of(staying, ZONE) == []
    late = UnitHistory(7, [TurnOfUnit(1, None, day(10), has_left=True)], [Change(at(13, 4), "Vacant Ready", 1)], [])
    assert ("ready", 12, 1, 2) in told(late), "it is still the 12th in Chicago"


def test_tasks_count_by_their_type() -> None:
    unit = history(tasks=[Done(1, "Paint", at(12)), Done(1, "Clean", at(13)), Done(9, "Paint", at(14))])
    groups = {facts.groups["task_type"]: list(facts.facts) for facts in facts_of(unit, ZONE) if facts.groups}
    assert {name: [fact.value for fact in facts] for name, facts in groups.items()} == {"Paint": [2], "Clean": [3]}
