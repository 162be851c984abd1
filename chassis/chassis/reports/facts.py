"""What a record adds to the figures of reports, and to which of them. Pure."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from chassis.reports.histograms import Histogram, bucket_of

DAY, MONTH = "day", "month"
ALL = ""
"""The dimension of figures that are of no group, and the value of a group whose records have none."""
PROPERTY = "property"
EVERYWHERE = 0
"""Stands for a property's id in the figures of all properties."""


class Fact(NamedTuple):
    """Something that counts on a day.

    amount: how many; a figure that is a level, such as a backlog, has negative ones, too. value: the duration that the
    fact measures, as a whole number of minutes or days; None if it measures none.
    """

    measure: str
    day: datetime.date
    amount: int = 1
    value: int | None = None


class RecordFacts(NamedTuple):
    """Facts of one record. property_id: EVERYWHERE for a record that is in none. groups: the values by which they are
    grouped, by dimension: {"vendor": "12"}."""

    property_id: int
    groups: Mapping[str, str]
    facts: Sequence[Fact]


class FigureKey(NamedTuple):
    """A figure: of a day or of a month, of a group, in a property or EVERYWHERE."""

    grain: str
    dimension: str
    property_id: int
    measure: str
    starts_on: datetime.date
    value: str


@dataclass(slots=True)
class Figure:
    """amount: the sum of the facts'; histogram: of the values that they measure."""

    amount: int = 0
    histogram: Histogram = field(default_factory=Histogram)

    def add(self, amount: int, histogram: Mapping[int, int]) -> None:
        self.amount += amount
        for bucket, count in histogram.items():
            self.histogram[bucket] += count
            if not self.histogram[bucket]:
                del self.histogram[bucket]

    @property
    def is_nothing(self) -> bool:
        return not self.amount and not self.histogram


Figures = defaultdict[FigureKey, Figure]


def keys_of(facts: RecordFacts, measure: str, day: datetime.date) -> Iterable[FigureKey]:
    """The figures to which a fact belongs. Groups have figures by month alone: there are many of them, and few ask for
    their days."""
    month = day.replace(day=1)
    for place in (EVERYWHERE, facts.property_id) if facts.property_id else (EVERYWHERE,):
        yield FigureKey(DAY, ALL, place, measure, day, ALL)
        yield FigureKey(MONTH, ALL, place, measure, month, ALL)
        for dimension, value in facts.groups.items():
            yield FigureKey(MONTH, dimension, place, measure, month, value)
    if facts.property_id:
        yield FigureKey(MONTH, PROPERTY, EVERYWHERE, measure, month, str(facts.property_id))


def add_differences(figures: Figures, before: Iterable[RecordFacts], after: Iterable[RecordFacts]) -> None:
    """Adds what changes about the figures if the facts of a record become others. Facts that stay cancel out."""
    for sign, side in ((-1, before), (1, after)):
        for facts in side:
            for measure, day, amount, value in facts.facts:
                histogram = {} if value is None else {bucket_of(value): sign}
                for key in keys_of(facts, measure, day):
                    figures[key].add(sign * amount, histogram)


_FACTS = msgspec.json.Decoder(list[RecordFacts])


def written(facts: Sequence[RecordFacts]) -> str:
    """The text that a row stores."""
    return msgspec.json.encode(facts).decode()


def read(text: str | None) -> list[RecordFacts]:
    """The facts of a stored text; None: none."""
    return [] if text is None else _FACTS.decode(text)
