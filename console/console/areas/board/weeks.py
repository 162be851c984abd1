"""Four weeks of units on their way to ready: bars over days. A bar's place is a class of the stylesheet. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from console.areas.board.cards import DOWN, NOT_READY, NOTICE, READY, Card, Days, date_of
from console.kit.texts import _, ngettext

DAYS = 28
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Bar:
    """first: its first day, from 1; days: how many; both are classes of the stylesheet."""

    tone: str
    first: int
    days: int
    words: str


@dataclass(frozen=True, slots=True)
class Label:
    """A day above the bars. first: its column; the names of units have the first one."""

    first: int
    days: int
    words: str
    is_today: bool = False


@dataclass(frozen=True, slots=True)
class Weeks:
    """now: today's place, from 1."""

    labels: Sequence[Label]
    rows: Sequence[tuple[Card, Sequence[Bar]]]
    now: int


def weeks(cards: Sequence[Card], days: Days, zone: datetime.tzinfo) -> Weeks:
    """From the Monday of this week on."""
    start = days.today - days.today.weekday() * DAY
    rows = [(card, list(bars(card, days, start, zone))) for card in cards]
    return Weeks(list(_labels(days.today, start)), rows, days.today.weekday() + 1)


def _labels(today: datetime.date, start: datetime.date) -> Iterator[Label]:
    index, month = today.weekday(), 0
    for week in range(0, DAYS, 7):
        monday = start + week * DAY
        words = f"Mon {monday.day}" + (f" {monday:%b}" if monday.month != month else "")
        month = monday.month
        if week or index == 0:
            yield Label(week + 2, 7, words, is_today=not week)
        elif index < 3:  # too near for two labels
            yield Label(index + 2, 7 - index, f"{today:%a} {today.day} {today:%b}", is_today=True)
        else:
            yield Label(2, index, words)
            yield Label(index + 2, 1, str(today.day), is_today=True)


def bars(card: Card, days: Days, start: datetime.date, zone: datetime.tzinfo) -> Iterator[Bar]:
    """The unit's stretches of time, as far as they lie in the four weeks."""
    end = start + (DAYS - 1) * DAY
    for tone, begins, ends, words in _stretches(card, days, start, end, zone):
        first, last = max(begins, start), min(ends, end)
        if first <= last:
            yield Bar(tone, (first - start).days + 1, (last - first).days + 1, words)


def _stretches(
    card: Card, days: Days, start: datetime.date, end: datetime.date, zone: datetime.tzinfo
) -> Iterator[tuple[str, datetime.date, datetime.date, str]]:
    unit, status = card.unit, card.unit.unit_status
    move_out, ready_on = date_of(unit.move_out_date), date_of(unit.projected_ready_on)
    comes = card.move_in
    last = _before(comes) if comes else end
    if status == NOTICE:
        leaves = _("Moving out %(day)s") % {"day": days.words(move_out)} if move_out else _("Notice")
        yield "violet", start, min(move_out or last, last) if card.clash else move_out or last, leaves
        if card.clash and (move_out is None or move_out > last):
            pass  # the work begins after the next resident's day
        elif move_out and ready_on:
            yield "red" if card.late else "amber", _after(move_out), ready_on, _ready(days, ready_on)
        elif move_out:
            yield "red" if card.late else "amber", _after(move_out), last, _("No ready date")
    elif status == NOT_READY:
        move_out = date_of(unit.empty_since)
        if move_out and move_out >= start:
            yield "violet", start, move_out, ""  # the days before the departure
        first = _after(move_out) if move_out else start
        yield "red" if card.late else "amber", first, _until(ready_on, days, last), _work(card, days, ready_on)
    elif status == DOWN:
        words = f"{_('Down')} · {_ready(days, ready_on)}"
        yield "red" if card.late else "slate", start, _until(ready_on, days, last), words
    elif status == READY:
        is_known = unit.HasField("unit_status_since") and not unit.since_or_earlier
        at = unit.unit_status_since.ToDatetime(datetime.UTC).astimezone(zone).date() if is_known else None
        yield "green", at or start, last, _("Ready since %(day)s") % {"day": days.words(at)} if at else _("Ready")
    else:
        yield "slate", start, last, status
    if comes:
        parts = (_("Conflict") if card.clash else "", card.next, unit.next_resident)
        yield "red" if card.clash or card.soon else "blue", comes, end, " · ".join(filter(None, parts))


# Records may have the first and the last day of the calendar.


def _before(date: datetime.date) -> datetime.date:
    return date - DAY if date > datetime.date.min else date


def _after(date: datetime.date) -> datetime.date:
    return date + DAY if date < datetime.date.max else date


def _until(ready_on: datetime.date | None, days: Days, last: datetime.date) -> datetime.date:
    """A unit that missed its date is on its way until today at least."""
    return last if ready_on is None else max(ready_on, days.today)


def _work(card: Card, days: Days, ready_on: datetime.date | None) -> str:
    if card.unit.tasks_late:
        tasks_late = card.unit.tasks_late
        work = ngettext("%(num)s task overdue", "%(num)s tasks overdue", tasks_late) % {"num": tasks_late}
    else:
        work = ", ".join(task.name for task in card.tasks if task.look != "done")[:60]
    return " · ".join(filter(None, (work, _ready(days, ready_on))))


def _ready(days: Days, ready_on: datetime.date | None) -> str:
    return _("Ready %(day)s") % {"day": days.words(ready_on)} if ready_on else _("No ready date")
