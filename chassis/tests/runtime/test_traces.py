"""W3C Trace Context, level 1: what is accepted, what begins a new trace, what is passed on."""

import asyncio
import re

import pytest

from chassis.runtime import traces

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = f"00-{TRACE}-{PARENT}-01"
VALID = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]")


@pytest.mark.parametrize(
    ("header", "flags"),
    [
        (GIVEN, "01"),
        (f"00-{TRACE}-{PARENT}-00", "00"),
        (f"00-{TRACE}-{PARENT}-03", "01"),  # flags that version 00 does not know are dropped
        (f"00-{TRACE}-{PARENT}-fe", "00"),
        (f"01-{TRACE}-{PARENT}-01", "01"),  # a later version is read as far as it is known
        (f"cc-{TRACE}-{PARENT}-01-what-the-future-brings", "01"),
    ],
)
def test_a_valid_header_goes_on_with_the_trace(header: str, flags: str) -> None:
    assert traces.accepted(header) == f"00-{TRACE}-{PARENT}-{flags}"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        TRACE,
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}-01-",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-011",
        f"01-{TRACE}-{PARENT}-01.more",
        f"ff-{TRACE}-{PARENT}-01",
        f"0-{TRACE}-{PARENT}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT.upper()}-01",
        f"00-{TRACE}-{PARENT}-0A",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-{PARENT}-01",
        f"00-{TRACE[:-1]}g-{PARENT}-01",
        f"00-{TRACE}-{PARENT[:-1]}٣-01",
        f" {GIVEN}",
        f"{GIVEN} ",
        f"{GIVEN}\n",
        f"{GIVEN},{GIVEN}",
        GIVEN.replace("-", "_"),
    ],
)
def test_any_other_header_begins_a_new_trace(header: str) -> None:
    assert traces.accepted(header) == ""

    async def entered() -> str:
        traces.enter([header])
        return traces.current()

    new_trace = asyncio.run(entered())
    assert VALID.fullmatch(new_trace) and TRACE not in new_trace and new_trace.endswith("-01")


def test_work_has_a_parent_id_of_its_own_in_its_callers_trace() -> None:
    async def entered(headers: list[str]) -> str:
        traces.enter(headers)
        return traces.current()

    first, second = (asyncio.run(entered([GIVEN])) for _ in range(2))
    assert traces.id_of(first) == traces.id_of(second) == TRACE
    assert len({first[36:52], second[36:52], PARENT}) == 3 and VALID.fullmatch(first)
    for headers in ([], [GIVEN, GIVEN]):  # none, or several: no one can say which
        assert traces.id_of(asyncio.run(entered(headers))) != TRACE
    assert traces.current() == "", "tasks do not share it"


def test_a_block_goes_on_with_a_stored_trace_and_then_with_the_former() -> None:
    async def work() -> list[str]:
        traces.begin()
        contexts = [traces.current()]
        for stored in (GIVEN, "", "nonsense"):
            with traces.within(stored):
                contexts.append(traces.current())
        return [*contexts, traces.current()]

    before, stored, *new, after = asyncio.run(work())
    assert (stored, after) == (GIVEN, before)
    assert len({before, *new}) == 3 and all(VALID.fullmatch(context) for context in new)
