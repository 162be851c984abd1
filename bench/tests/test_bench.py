"""The bench runs, with tiny counts; the tests do not judge its measurements."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness import capacity, deliveries, depth, picture, readings, report
from harness.cpu import Machine, used
from harness.measure import Block, Result, rounds
from harness.seed import Sizes
from harness.sides import FLOORS, NODE, USUAL, LeftOutError
from harness.stage import scratch, stage
from harness.workloads import WORKLOADS, next_cursor
from testkit.requirements import ALL, lacks, required

CAPACITY = Path(__file__).parents[2] / "docs" / "capacity.md"

TINY = Sizes(companies=2, buildings=2, units_a_building=3, tickets_measured=205, tickets_elsewhere=10, keys=4)


async def test_all_sides_answer_alike_and_every_workload_is_measured() -> None:
    lines: list[str] = []
    with scratch() as folder:
        async with stage(folder, TINY, lines.append, (USUAL, *FLOORS)) as ready:
            machine = Machine([pid for side in ready.sides for pid in side.roots.values()])
            # With less, no process may use one of the kernel's ticks of 10 ms.
            results = await rounds(ready.sides, WORKLOADS, ready.seeded, lambda done: done < 1, {4: 0.05})
            others = machine.share_of_others()
            imports = await readings.measure(ready.ours, ready.sides[0].roots, folder, rows=1000)
            sent = await deliveries.measure(
                ready.ours, ready.sides[0], ready.seeded, folder, lambda done: done < 1, events=5, due=320, seconds=600
            )
            deep = await depth.measure(ready.ours, ready.sides[0], ready.seeded, tickets=1000, requests=12)
    assert not folder.exists()
    assert ready.compared == 205 and len(ready.seeded.unit_ids) == 6
    assert 0 <= others <= 1
    assert [(result.workload, result.connections) for result in results] == [(workload, 4) for workload in WORKLOADS]
    for result in results:
        assert list(result.blocks) == ["Makeready", "FastAPI", "aiohttp", "Litestar"]
        assert all(len(blocks) == 1 and blocks[0].total > 0 for blocks in result.blocks.values())
    assert [imported.rows for imported in imports] == [1000, 1000]
    assert all(
        imported.rows_a_second > 0 and imported.cpu["svc-catalog"] >= 0 < imported.cpu["command line"]
        for imported in imports
    )
    assert deep.tickets == 1100 and [page.name for page in deep.pages] == ["at the start", "after 1,000 tickets"]
    assert all(page.rows > 50 and page.blocks > 0 for page in deep.pages)
    assert all(seconds > 0 for seconds in ready.idle.seconds)
    tickets = ready.idle.memory["svc-tickets"]
    assert 10 < tickets.proportional < tickets.resident  # it shares pages with the process that forked it
    (pair,) = sent.pairs
    assert pair.total > 0 < pair.bare and sent.a_second > 0
    assert sent.backlog.due == sent.backlog.attempted == 320 and min(sent.backlog.megabytes) > 10
    # The page has both numbers of connections; the second one would be measured by the same code.
    results = [replace(result, connections=connections) for connections in (16, 1) for result in results]
    shares = {16: 0.05, 1: 0.05}
    run = report.Run(TINY, shares, {"Fastify": "npm is not here"}, ready.compared, 1.0, others, ready.idle, deep)
    assert "| property_id, status | deep |" in report.plans(run)
    page = report.page(results, run, imports, sent)
    assert "| again, nothing changed | 1000 |" in page
    assert all(f"| {workload.name} |" in page for workload in WORKLOADS)
    assert "| claimed, signed, sent, recorded |" in page and "| 320 due | 320 |" in page
    assert "| FastAPI: uvicorn |" in page and "| Makeready: svc-webhooks |" in page and "| aiohttp: postgres |" in page
    assert "| CPU ms a request, 1 connection | Makeready | FastAPI | aiohttp | Litestar |" in page
    assert "- The peer on Fastify was left out: npm is not here." in page
    filled = capacity.filled(CAPACITY.read_text(), results, imports, sent)
    assert filled != CAPACITY.read_text()
    assert filled == capacity.filled(filled, results, imports, sent)
    assert "| a delivery: claimed, signed, sent, recorded |" in filled


async def test_the_peer_on_node_answers_alike() -> None:
    if not required() & {"npm", ALL}:
        lacks("npm", "`make platform` installs from the registry")
    with scratch() as folder:
        async with stage(folder, TINY, lambda _: None, (USUAL, NODE)) as ready:
            if ready.left_out:
                lacks("npm", ready.left_out["Fastify"])
            results = await rounds(ready.sides, WORKLOADS, ready.seeded, lambda done: done < 1, {4: 0.05})
    assert all(result.blocks["Fastify"][0].total > 0 for result in results)


def test_a_peer_that_the_machine_can_not_run_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LeftOutError, match="npm and node are not here"):
        NODE.command(tmp_path / "fastify", 1)


def results_of(**cpu: float) -> list[Result]:
    """Results in which each side takes so many milliseconds a request, twice as many over one connection."""
    return [
        Result(workload, many, {name: [Block({"all": cost / 1000 * factor}, 9.0)] for name, cost in cpu.items()})
        for many, factor in ((16, 1), (1, 2))
        for workload in WORKLOADS
    ]


def test_the_table_says_which_goals_are_reached() -> None:
    lines = report.table(results_of(Makeready=1, FastAPI=3.3, aiohttp=0.5), 16).splitlines()
    assert [line.split(" | ")[5:] for line in lines[2:]] == [
        ["2.3 reached", "2.07 |"],
        ["5.5 missed, below its floor", "4.95 |"],
        ["8.0 missed, below its floor", "7.20 |"],
        ["3.3 reached", "2.97 |"],
        ["3.5 missed, floor held", "3.15 |"],
    ]
    assert "**3.30** (3.30 to 3.30) | 1.2 reached" in report.table(results_of(Makeready=1, FastAPI=3.3), 1)


def test_the_picture_is_the_same_for_the_same_figures_and_names_each_of_them() -> None:
    results = results_of(Makeready=0.5, FastAPI=2, aiohttp=0.25, Litestar=0.3)
    drawn = picture.draw(results)
    assert drawn == picture.draw(results) != picture.draw(results_of(Makeready=0.6, FastAPI=2))
    texts = [element.text for element in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("0.50 · 4.0 times less than FastAPI") == texts.count("1.00 · 4.0 times less than FastAPI") == 5
    assert texts.count("Litestar") == 10 and texts.count("0.30") == 5
    assert "a page of 200, connections 1: Makeready 1.00, FastAPI 4.00" in drawn


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_the_picture_can_be_read_in_light_and_in_dark(scheme: int) -> None:
    drawn = picture.draw(results_of(Makeready=0.5, FastAPI=2, aiohttp=0.25))
    style = (re.search("<style>(.*)</style>", drawn) or pytest.fail("no style"))[1]
    colours = dict(re.findall(r"\.(\w+)\{fill:(#\w+)\}", style.split("@media (prefers-color-scheme: dark)")[scheme]))
    assert set(re.findall(r'class="(\w+)"', drawn)) == set(colours)
    ground = luminance(colours.pop("ground"))
    for name, colour in colours.items():
        lighter, darker = sorted((ground, luminance(colour)), reverse=True)
        least = 4.5 if name in ("text", "quiet") else 3.0  # of WCAG, for texts and for shapes
        assert (lighter + 0.05) / (darker + 0.05) >= least, name


def luminance(colour: str) -> float:
    """The relative luminance of #rrggbb, as WCAG defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_process_below_another_is_counted_once() -> None:
    process_id, parent = os.getpid(), os.getppid()
    both = used({"parent": parent, "own": process_id})
    assert both["own"] > 0
    assert both["parent"] <= used({"parent": parent})["parent"]


def test_the_next_cursor_is_read_from_the_end_of_a_page() -> None:
    row = b'{"title":"a \\"next_cursor\\":null trick"}'
    assert next_cursor(b'{"data":[' + row + b'],"next_cursor":"a.b","limit":50}') == "a.b"
    assert next_cursor(b'{"data":[],"next_cursor":null,"limit":50}') is None
