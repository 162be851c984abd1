"""Histograms: percentiles are exact up to 64 and within two per cent above, and sums are those of all values."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from chassis.reports import histograms
from chassis.reports.histograms import ERROR, EXACT, VALUE_MAX, Histogram, bucket_of, percentile, value_of

VALUES = st.lists(st.integers(0, VALUE_MAX), min_size=1, max_size=50)
PARTS = st.sampled_from([0.1, 0.5, 0.9, 1.0])


def filled(values: list[int]) -> Histogram:
    return Histogram(bucket_of(value) for value in values)


@given(VALUES, PARTS)
def test_a_percentile_is_that_of_the_sorted_values(values: list[int], part: float) -> None:
    true = sorted(values)[math.ceil(part * len(values)) - 1]
    near = percentile(filled(values), part)
    assert near is not None
    assert near == true if true <= EXACT else abs(near - true) <= ERROR * true + 1


@given(VALUES, VALUES)
def test_histograms_can_be_added_and_stored(values: list[int], more: list[int]) -> None:
    both = histograms.read(histograms.written(filled(values)))
    both.update(histograms.read(histograms.written(filled(more))))
    assert both == filled(values + more)


def test_buckets_ascend_with_values_and_stay_few() -> None:
    buckets = [bucket_of(value) for value in (*range(2000), *range(2000, VALUE_MAX, VALUE_MAX // 5000))]
    assert buckets == sorted(buckets) and bucket_of(2 * VALUE_MAX) == bucket_of(VALUE_MAX) < 490
    assert [value_of(bucket_of(value)) for value in range(EXACT + 1)] == list(range(EXACT + 1))


def test_nothing_has_no_percentile_and_no_text() -> None:
    assert percentile(Histogram(), 0.5) is None and histograms.written(Histogram({3: 0})) is None
    assert bucket_of(-5) == 0
