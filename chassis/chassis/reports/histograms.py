"""Histograms of durations: they can be added up, and tell each percentile to within two per cent. Pure.

A value is a whole number of minutes or days. It falls into a bucket: up to EXACT each value has one, above it a bucket
is 4 % wide. A histogram is the number of values by bucket.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

EXACT = 64
GROWTH = 1.04
ERROR = (GROWTH - 1) / (GROWTH + 1)
"""How far a percentile may lie from the true one, as a part of it: 0.0196. Those up to EXACT are exact."""
VALUE_MAX = 60 * 24 * 366 * 100
"""A century, in minutes: longer durations count as this long. So a histogram has at most 490 buckets."""

Histogram = Counter[int]


def bucket_of(value: int) -> int:
    """The bucket of a value. A negative one, of instants in the wrong order, counts as 0."""
    if value <= EXACT:
        return max(value, 0)
    return EXACT + math.ceil(math.log(min(value, VALUE_MAX) / EXACT) / math.log(GROWTH))


def value_of(bucket: int) -> int:
    """The value that stands for all values of a bucket."""
    if bucket <= EXACT:
        return bucket
    upper = EXACT * GROWTH ** (bucket - EXACT)
    return round(2 * upper / (GROWTH + 1))


def percentile(histogram: Mapping[int, int], part: float) -> int | None:
    """The least value that at least this part of all values does not exceed; None if there are none."""
    rank = math.ceil(part * sum(histogram.values()))
    reached = 0
    for bucket in sorted(histogram):
        reached += histogram[bucket]
        if reached >= rank > 0:
            return value_of(bucket)
    return None


def written(histogram: Mapping[int, int]) -> str | None:
    """The text that a row stores: "0:3 12:1"; None for an empty histogram."""
    return " ".join(f"{bucket}:{count}" for bucket, count in sorted(histogram.items()) if count) or None


def read(text: str | None) -> Histogram:
    """The histogram of a stored text."""
    histogram: Histogram = Counter()
    for entry in (text or "").split():
        bucket, _, count = entry.partition(":")
        histogram[int(bucket)] = int(count)
    return histogram
