"""Readings are sent in the order of their periods, whatever the order of the file and however large it is."""

from __future__ import annotations

import datetime
import functools
import json
import random
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import mapping_file, ordering
from importing.errors import ImportFault
from importing.kinds import KINDS, Kind
from importing.ordering import Order
from importing.passes import ImportStopped, KindOutcome, Outcome, Passes
from importing.rejects import Rejects
from importing.rows import Fault, Reading, Source, SourceRow
from importing.run import Counts, Record
from importing.sending import ROWS_MAX, Entry, Sender
from importing.shapes import Mapped, Plain, Shape
from makeready.common.v1 import documents_pb2 as common

from .conftest import Write

READINGS = KINDS["readings"]
BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def reading(meter: str, hour: int, **more: Any) -> dict[str, Any]:
    start, end = (BEGIN + datetime.timedelta(hours=at) for at in (hour, hour + 1))
    values = {"external_id": f"{meter}-{hour}", "meter": meter, "consumption": hour}
    return values | {"period_start": start.isoformat(), "period_end": end.isoformat()} | more


def text_of(rows: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


class Owner:
    """The service that owns readings: it stores rows in the order of their arrival, and is away after some batches."""

    def __init__(self) -> None:
        self.arrived: list[dict[str, Any]] = []
        self.batches_left = -1

    async def ask(self, _kind: Kind, request: Any) -> Any:
        if self.batches_left == 0:
            raise ImportFault("It is away.")
        self.batches_left -= 1
        rows = [json.loads(row.json) for row in request.rows]
        self.arrived += rows
        results = [
            common.ImportResult(line=sent.line, field="consumption", reason="It is bad.")
            if row["consumption"] == "bad"
            else common.ImportResult(line=sent.line, outcome=common.IMPORT_OUTCOME_CREATED)
            for sent, row in zip(request.rows, rows, strict=True)
        ]
        return common.ImportReply(results=results)


def test_a_mapping_gives_single_values(write: Write) -> None:
    mapping = mapping_file.read(
        write(
            "m.toml",
            """
            kind = "readings"
            [fields]
            external_id = {template = "{Meter} {Time}"}
            meter = "Meter"
            consumption = "Load"
            period_start = {column = "Time", date = "%d.%m.%Y", timezone = "UTC"}
            period_end = {column = "Time", date = "%d.%m.%Y", timezone = "UTC", plus_minutes = 60}
            """,
        ),
        READINGS,
    )
    ((_, file_mapping),) = mapping.records
    row = SourceRow(2, "", {"Meter": "M1", "Time": "02.01.2026", "Load": "?"})
    value_of = Mapped(file_mapping).value_of(row)
    assert [value_of(name) for name in ("meter", "period_start", "period_end")] == [
        "M1",
        "2026-01-02T00:00:00.000000Z",
        "2026-01-02T01:00:00.000000Z",
    ]


async def imported(owner: Owner, path: Path, *shapes: Shape, before: Outcome | None = None) -> Outcome:
    """Raises ImportStopped."""
    records = [Record(READINGS, shape, Sender(owner.ask, READINGS, False, False)) for shape in shapes]

    def rejects(source: Source, kind: str) -> Rejects:
        return Rejects(path, source, None, path.parent, kind)

    positions = []

    async def progress(outcome: Outcome, position: int) -> None:
        positions.append(position)
        assert sum(kind.counts.settled for kind in outcome.kinds) > 0

    try:
        return await Passes(path, Reading(), records, rejects).run(lambda *_: None, progress, before)
    finally:
        size = len(path.read_bytes())  # noqa: ASYNC240 - a small file
        assert positions == sorted(positions) and all(0 < position <= size for position in positions)


@pytest.fixture(params=[20_000, 300], ids=["in memory", "in runs"])
def _run_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "RUN_ROWS", request.param)
    monkeypatch.setattr(ordering, "BLOCK_ROWS", 32)


Rows = list[dict[str, Any]]
ORDERS: dict[str, Callable[[Rows], Rows]] = {
    "newest first": lambda rows: rows[::-1],
    "oldest first": lambda rows: rows,
    "by hour": lambda rows: sorted(rows, key=lambda row: row["period_start"]),
    "mixed": lambda rows: random.Random(5).sample(rows, len(rows)),
}


@pytest.mark.usefixtures("_run_rows")
@pytest.mark.parametrize("order", ORDERS)
async def test_a_file_of_several_batches_arrives_in_the_order_of_its_periods(write: Write, order: str) -> None:
    owner, rows = Owner(), [reading(meter, hour) for meter in ("M1", "M2", "M3") for hour in range(ROWS_MAX)]
    outcome = await imported(owner, write("hours.jsonl", text_of(ORDERS[order](rows))), Plain(READINGS))
    assert outcome.counts == Counts(read=len(rows), created=len(rows))
    in_order = sorted(owner.arrived, key=lambda row: row["meter"])
    assert in_order == rows, "each meter's readings, the oldest first"


async def test_one_row_at_the_end_may_put_all_others_behind_it(write: Write) -> None:
    """Also in a file that is in order for longer than anyone would look ahead."""
    rows = [reading(meter, hour) for hour in range(3 * ROWS_MAX) for meter in ("M1", "M2")]
    owner = Owner()
    await imported(owner, write("late.jsonl", text_of([*rows[1:], rows[0]])), Plain(READINGS))
    assert owner.arrived == sorted(rows, key=lambda row: row["meter"])


@pytest.mark.parametrize("meters", [3, 10])
async def test_a_file_in_order_is_sent_as_it_is_read(
    write: Write, monkeypatch: pytest.MonkeyPatch, meters: int
) -> None:
    """Unless it has more meters than a scan may remember."""
    monkeypatch.setattr(ordering, "GROUPS_MAX", 5)
    rows = [reading(f"M{meter:02}", hour) for hour in range(100) for meter in range(meters)]
    owner = Owner()
    await imported(owner, write("days.jsonl", text_of(rows)), Plain(READINGS))
    assert owner.arrived == (rows if meters < 5 else sorted(rows, key=lambda row: row["meter"]))


async def test_periods_are_instants_and_not_texts(write: Write) -> None:
    rows = [
        reading("M1", 0, external_id="b", period_start="2026-01-01T00:30:00+01:00"),  # in 2025, by UTC
        reading("M1", 0, external_id="d", period_end="2026-01-03"),
        reading("M1", 0, external_id="c", period_start="2026-01-01", period_end="2026-01-02"),
        reading("M1", 0, external_id="a", period_start="2025-12-31T23:00:00Z"),
        reading("M1", 0, external_id="e", period_start="2026-01-01T00:00:00.5Z"),
    ]
    owner = Owner()
    await imported(owner, write("days.jsonl", text_of(rows)), Plain(READINGS))
    assert [row["external_id"] for row in owner.arrived] == ["a", "b", "c", "d", "e"]


@pytest.mark.usefixtures("_run_rows")
async def test_bad_and_repeated_rows_are_those_of_the_file(write: Write) -> None:
    """The first line that has an external_id counts, also if a later one has an earlier period."""
    rows = [reading("M1", hour) for hour in range(1000, 0, -1)]
    rows[10] |= {"consumption": "bad"}  # which the owner refuses
    rows[20] |= {"period_start": "yesterday"}  # nobody knows when
    rows[30] |= {"nonsense": 1}  # refused before it is sent
    again = reading("M1", 0, external_id=rows[5]["external_id"])
    owner, path = Owner(), write("bad.jsonl", text_of([*rows, again]))
    outcome = await imported(owner, path, Plain(READINGS))
    assert outcome.counts == Counts(read=1001, created=998, rejected=3)
    assert owner.arrived[0]["period_start"] == "yesterday", "the owner reports it"
    others = owner.arrived[1:]
    assert others == sorted(others, key=lambda row: row["period_start"]) and again not in others
    (kind,) = outcome.kinds
    assert kind.rejects_file is not None
    rejected = [json.loads(line) for line in kind.rejects_file.read_text().splitlines()]
    assert [(members["reject_line"], members["reject_field"]) for members in rejected] == [
        (31, "nonsense"),
        (1001, "external_id"),
        (11, "consumption"),
    ]
    assert {name: value for name, value in rejected[2].items() if not name.startswith("reject")} == rows[10]


@pytest.mark.usefixtures("_run_rows")
async def test_an_interrupted_import_goes_on_where_it_was(write: Write) -> None:
    rows = [reading("M1", hour) for hour in range(5 * ROWS_MAX)]
    path, owner = write("hours.jsonl", text_of(rows[::-1])), Owner()
    owner.batches_left = 2
    with pytest.raises(ImportStopped) as stopped:
        await imported(owner, path, Plain(READINGS))
    before = stopped.value.outcome
    assert (before.counts.read, before.counts.created) == (0, 2 * ROWS_MAX)
    owner.batches_left = -1
    outcome = await imported(owner, path, Plain(READINGS), before=before)
    assert outcome.counts == Counts(read=len(rows), created=len(rows))
    assert owner.arrived == rows, "each row once"


async def test_an_import_that_was_begun_in_the_order_of_the_file_ends_in_it(write: Write) -> None:
    """The release before counts the rows of the file that it has settled."""
    rows = [reading("M1", hour) for hour in range(2 * ROWS_MAX)][::-1]
    path, owner = write("hours.jsonl", text_of(rows)), Owner()
    before = Outcome()
    before.kinds.append(KindOutcome("readings", Counts(read=ROWS_MAX, created=ROWS_MAX)))
    outcome = await imported(owner, path, Plain(READINGS), before=before)
    assert outcome.counts == Counts(read=len(rows), created=len(rows))
    assert owner.arrived == rows[ROWS_MAX:]


async def test_a_file_that_breaks_off_is_stored_as_far_as_it_goes(write: Write) -> None:
    rows = [reading("M1", hour) for hour in range(50_000)]
    path, owner = write("hours.jsonl.gz", text_of(rows[::-1])), Owner()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ImportStopped, match="hours"):
        await imported(owner, path, Plain(READINGS))
    many = len(owner.arrived)
    assert ROWS_MAX < many < len(rows) and owner.arrived == rows[-many:]


async def test_all_readings_that_a_mapping_makes_of_a_row_are_in_one_order(write: Write) -> None:
    """A column for each month: every pass over the file has its own part of each meter's periods."""
    tables = "".join(
        f"""
        [[records]]
        kind = "readings"
        [records.fields]
        external_id = {{template = "{{meter}}-{{year}}-{month:02}"}}
        meter = "meter"
        period_start = {{template = "{{year}}-{month:02}-01"}}
        period_end = {{template = "{{year}}-{month:02}-28"}}
        consumption = "m{month}"
        """
        for month in (2, 1, 3)
    )
    mapping = mapping_file.read(write("months.toml", tables), None)
    file = "meter,year,m1,m2,m3\nM2,2026,1,2,3\nM1,2027,4,5,6\nM1,2026,7,bad,9\n"
    owner = Owner()
    outcome = await imported(
        owner, write("months.csv", file), *(Mapped(file_mapping) for _, file_mapping in mapping.records)
    )
    assert [row["external_id"] for row in owner.arrived] == [
        f"{meter}-{year}-{month:02}"
        for meter, year in (("M1", 2026), ("M1", 2027), ("M2", 2026))
        for month in (1, 2, 3)
    ]
    assert [kind.counts for kind in outcome.kinds] == [
        Counts(read=3, created=2, rejected=1),
        Counts(read=3, created=3),
        Counts(read=3, created=3),
    ]
    assert [kind.rejects_file is not None for kind in outcome.kinds] == [True, False, False]


ENTRIES = st.lists(
    st.tuples(
        st.sampled_from(["M1", "M2", None]),
        st.sampled_from(["2026-01-01", "2026-01-01T00:00:00+01:00", "2025-06-01T12:00:00Z", "", "soon", None]),
        st.text(st.characters(exclude_categories=[]), max_size=5),
        st.none() | st.builds(Fault, st.just("meter"), st.text(max_size=3), st.just(""), st.none(), st.just(("a",))),
        st.booleans(),
    ),
    max_size=60,
)


@given(ENTRIES, st.integers(1, 20), st.integers(1, 5))
def test_entries_come_back_whole_and_in_order(drawn: list[tuple[Any, ...]], run_rows: int, block_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "RUN_ROWS", run_rows)
        patch.setattr(ordering, "BLOCK_ROWS", block_rows)
        order, entries = Order(READINGS.order), []
        for number, (meter, start, kept, fault, is_json) in enumerate(drawn):
            sent = json.dumps({"meter": meter, "period_start": start, "period_end": "2026-02-01"}).encode()
            row = SourceRow(number, kept, {"meter": meter}, None, "{}" if is_json else None, False, number + 7)
            entry = Entry(row, b"" if fault else sent, fault, f"id {number}", number % 3)
            entries.append(entry)
            order.add(entry)
        stored = list(order.entries())
        order.close()
    assert order.count == len(entries) == len(stored)
    assert sorted(entry_stored.row.line for entry_stored in stored) == list(range(len(entries)))
    keys = []
    for entry_stored in stored:
        was = entries[entry_stored.row.line]
        assert (entry_stored.sent, entry_stored.fault, entry_stored.external_id, entry_stored.part) == (
            was.sent,
            was.fault,
            was.external_id,
            was.part,
        )
        assert (entry_stored.row.kept, entry_stored.row.number) == (was.row.kept, was.row.number)
        assert (entry_stored.row.json is None) == (was.row.json is None)
        meter, start = drawn[entry_stored.row.line][:2]
        instant = {"2026-01-01": 3, "2026-01-01T00:00:00+01:00": 2, "2025-06-01T12:00:00Z": 1}.get(start)
        has_key = was.fault is None and meter is not None and instant is not None
        keys.append((meter, instant, entry_stored.row.line) if has_key else ("", 0, entry_stored.row.line))
    assert keys == sorted(keys)


def test_an_order_of_many_rows_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand rows, 30 MB of texts, in runs of 5,000."""
    monkeypatch.setattr(ordering, "RUN_ROWS", 5000)
    order = Order(READINGS.order)
    tracemalloc.start()
    try:
        for number in range(100_000):
            sent = json.dumps(reading(f"M{number % 7}", -number)).encode()
            order.add(Entry(SourceRow(number, sent.decode(), {}, None), sent, None, str(number)))
        last, count = ("", 0.0), 0
        for entry in order.entries():
            row = json.loads(entry.sent)
            key = row["meter"], datetime.datetime.fromisoformat(row["period_start"]).timestamp()
            assert key > last
            last, count = key, count + 1
        assert count == order.count == 100_000
        assert tracemalloc.get_traced_memory()[1] < 12 * 1024 * 1024
    finally:
        tracemalloc.stop()
        order.close()


def test_a_full_disk_ends_the_import_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "RUN_ROWS", 2)
    monkeypatch.setattr("importing.ordering.tempfile.TemporaryFile", functools.partial(Path("/dev/full").open, "r+b"))
    order = Order(READINGS.order)
    sent = json.dumps(reading("M1", 1)).encode()
    order.add(Entry(SourceRow(1, "x", {}), sent))
    with pytest.raises(ImportFault, match=r"temporary file of this import can't be used: No space left on device\."):
        order.add(Entry(SourceRow(2, "x", {}), sent))
    order.close()
