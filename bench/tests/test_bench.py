"""The bench runs, with tiny counts; the tests do not judge its measurements."""

from __future__ import annotations

import os

from harness import deliveries, depth, readings, report
from harness.cpu import Machine, used
from harness.measure import pairs
from harness.seed import Sizes
from harness.stage import scratch, stage
from harness.workloads import WORKLOADS, next_cursor

TINY = Sizes(companies=2, buildings=2, units_a_building=3, tickets_measured=205, tickets_elsewhere=10, keys=4)


async def test_both_sides_answer_alike_and_every_workload_is_measured() -> None:
    lines: list[str] = []
    with scratch() as folder:
        async with stage(folder, TINY, lines.append) as ready:
            machine = Machine([pid for side in ready.sides for pid in side.roots.values()])
            # With less, no process may use one of the kernel's ticks of 10 ms.
            results = await pairs(ready.sides, WORKLOADS, ready.seeded, 4, lambda done: done < 1, share=0.05)
            others = machine.share_of_others()
            imports = await readings.measure(ready.ours, ready.sides[0].roots, folder, rows=1000)
            sent = await deliveries.measure(
                ready.ours, ready.sides[0], ready.seeded, folder, lambda done: done < 1, events=5, due=320, seconds=600
            )
            deep = await depth.measure(ready.ours, ready.sides[0], ready.seeded, tickets=1000, requests=12)
    assert not folder.exists()
    assert ready.compared == 205 and len(ready.seeded.unit_ids) == 6
    assert 0 <= others <= 1
    assert [len(result.ours) for result in results] == [len(result.peers) for result in results] == [1, 1, 1, 1, 1]
    assert all(result.ours[0].total > 0 and result.peers[0].total > 0 for result in results)
    assert [one.rows for one in imports] == [1000, 1000]
    assert all(one.rows_a_second > 0 and one.cpu["svc-catalog"] >= 0 < one.cpu["command line"] for one in imports)
    assert deep.tickets == 1100 and [one.name for one in deep.pages] == ["at the start", "after 1,000 tickets"]
    assert all(one.rows > 50 and one.blocks > 0 for one in deep.pages)
    assert all(seconds > 0 for seconds in ready.rest.seconds)
    tickets = ready.rest.memory["svc-tickets"]
    assert 10 < tickets.own < tickets.resident  # it shares pages with the process that forked it
    (pair,) = sent.pairs
    assert pair.total > 0 < pair.bare and sent.a_second > 0
    assert sent.backlog.due == sent.backlog.attempted == 320 and min(sent.backlog.megabytes) > 10
    run = report.Run(TINY, 4, ready.compared, 1.0, others, ready.rest, deep)
    assert "| property_id, status | deep |" in report.plans(run)
    page = report.page(results, run, imports, sent)
    assert "| again, nothing changed | 1000 |" in page
    assert all(f"| {workload.name} |" in page for workload in WORKLOADS)
    assert "| claimed, signed, sent, recorded |" in page and "| 320 due | 320 |" in page
    assert "| peer: uvicorn |" in page and "| Makeready: svc-webhooks |" in page


def test_a_process_below_another_is_counted_once() -> None:
    own, parent = os.getpid(), os.getppid()
    both = used({"parent": parent, "own": own})
    assert both["own"] > 0
    assert both["parent"] <= used({"parent": parent})["parent"]


def test_the_next_cursor_is_read_from_the_end_of_a_page() -> None:
    row = b'{"title":"a \\"next_cursor\\":null trick"}'
    assert next_cursor(b'{"data":[' + row + b'],"next_cursor":"a.b","limit":50}') == "a.b"
    assert next_cursor(b'{"data":[],"next_cursor":null,"limit":50}') is None
