"""An integrator who has a sandbox, the Python client and a receiver on loopback tries everything that time does.

The same records lie in a live company, of which nothing moves.
"""

from __future__ import annotations

import datetime
import http.server
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from makeready_client import Makeready, models, webhooks
from testkit.patience import until
from testkit.prepared import prepare_state

from .system import Company, System

UTC, HOUR, DAY = datetime.UTC, datetime.timedelta(hours=1), datetime.timedelta(days=1)
ZONES = {zone.key: zone for zone in map(ZoneInfo, ("America/New_York", "Asia/Kathmandu", "Pacific/Auckland"))}
LADDER = [datetime.timedelta(hours=hours) for hours in (0, 1, 2, 4, 8, 24)]
STALE: list[models.EventKey] = ["ticket.stale", "inspection.stale", "turn.task.stale"]
WRITERS = 3
EVENTS: list[models.EventKey] = [
    "ticket.created",
    "ticket.status_changed",
    "turn.status_changed",
    "turn.schedule_changed",
    "vendor.hold",
    "ticket.stale",
    "inspection.stale",
    "property.notice.published",
    "turn.task.stale",
    "pm.stale",
]


class Receiver:
    """http://127.0.0.1, any path. It verifies each delivery with the secret of its path, and answers as told: a path
    fails `failures` times, 0 unless it is set."""

    def __init__(self) -> None:
        outer = self
        self.secrets: dict[str, str] = {}
        self.failures: dict[str, int] = {}
        self.events: dict[str, list[models.Event]] = defaultdict(list)
        self.accepted: dict[str, list[str]] = defaultdict(list)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                # The receiver compares `t` with its own clock, whatever that of the sandbox says.
                event = webhooks.verify(body, self.headers, outer.secrets[self.path])
                outer.events[self.path].append(event)
                fails = outer.failures.get(self.path, 0) > 0
                outer.failures[self.path] = outer.failures.get(self.path, 0) - 1
                if not fails:
                    outer.accepted[self.path].append(event.event_id)
                self.send_response(500 if fails else 204)
                self.end_headers()

            def log_message(self, *_words: object) -> None:
                """Logs nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def system(states: Path) -> Iterator[System]:
    """Sweeps every hour, as an installation does: at the hours of each sandbox's clock."""
    running = System(states / "sandboxes", WEBHOOKS_SWEEP_SECONDS="3600", MAKEREADY_DEMO="0")
    prepare_state(running.state, demo=False)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def receiver_on_loopback() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def client_of(company: Company, stack: ExitStack) -> Makeready:
    return stack.enter_context(Makeready(company.keys["write"], base_url=company.system.base_url))


def subscribe(client: Makeready, receiver: Receiver, path: str, *events: models.EventKey) -> int:
    subscription = client.webhooks.create(destination_url=receiver.url + path, events=list(events))
    assert subscription.secret is not None
    receiver.secrets[path] = subscription.secret
    return subscription.entity_id


def advance(client: Makeready, **how: Any) -> models.SandboxClock:
    """Waits until the advance has done everything."""
    client.sandbox.advance_clock(**how)
    until(lambda: client.sandbox.get_clock().status == "ready", lambda: client.sandbox.get_clock().to_json())
    return client.sandbox.get_clock()


def events_of(client: Makeready, event: models.EventKey) -> list[models.Event]:
    page = client.events.list(event=event).page()
    assert page.next_cursor is None
    return list(page.data)


def with_records(company: Company, today: datetime.date) -> None:
    """A resident's ticket that staff have not seen, and what is due in the next days, in a unit that is let."""
    moved_in = today - 400 * DAY
    rows: dict[str, list[dict[str, Any]]] = {
        "properties": [{"external_id": "P", "name": "Elm Court", "address": "1 Elm St"}],
        "units": [
            {"external_id": "U", "property": "P", "name": "Elm 1"},
            {"external_id": "V", "property": "P", "name": "Elm 2"},
        ],
        "turns": [
            {"external_id": "T", "unit": "U", "move_in_date": f"{moved_in}", "move_out_date": f"{today + 9 * DAY}"},
        ],
        "turn-tasks": [
            {"external_id": "K", "turn": "T", "task_type": "Paint", "scheduled_date": f"{today + 4 * DAY}"},
        ],
        "inspections": [
            {"external_id": "I", "property": "P", "title": "Roof", "scheduled_date": f"{today + 3 * DAY}"},
        ],
        "tickets": [
            {
                "external_id": "R",
                "property": "P",
                "unit": "U",
                "title": "Cold",
                "category": "HVAC",
                "source": "resident_portal",
            },
        ],
    }
    for kind, imported in rows.items():
        report = company.import_rows(kind, imported)
        assert report["rejected"] == 0, report
    company.system.makeready("wait")


def morning_after(day: datetime.date, zone: ZoneInfo) -> datetime.datetime:
    """06:00 of the next day, in the company's timezone."""
    return datetime.datetime.combine(day + DAY, datetime.time(6), zone).astimezone(UTC)


def test_time_does_its_work_in_sandboxes_of_three_timezones_and_in_no_live_company(
    system: System, receiver_on_loopback: Receiver, stack: ExitStack
) -> None:
    live = system.company("Live beside a sandbox", "--timezone", "Asia/Kathmandu")
    with_records(live, datetime.datetime.now(UTC).date())
    in_live = client_of(live, stack)
    before = [
        record.to_dict() for records in (in_live.tickets, in_live.turns, in_live.units) for record in records.list()
    ]
    for name, zone in ZONES.items():
        company = system.company(f"Sandbox in {name}", "--sandbox", "--timezone", name)
        client = client_of(company, stack)
        assert client.whoami().company.mode == "sandbox" and company.keys["write"].startswith("mk_test_")
        today = client.sandbox.get_clock().now.astimezone(zone).date()
        with_records(company, today)
        path = f"/{zone.key}"
        subscribe(client, receiver_on_loopback, path, *STALE)
        (ticket,) = client.tickets.list()
        move_in = client.units.record_move_in(
            next(unit.entity_id for unit in client.units.list() if unit.external_id == "V"),
            move_in_date=today + 5 * DAY,
            lease_start_date=today + 5 * DAY,
            provider="pms",
            parties=[models.PartyCreate(first_name="Ana", last_name="Ortiz", role="leaseholder")],
        )
        clock = advance(client, advance_by="P10D")
        stale = [event.occurred_at - ticket.created_at for event in events_of(client, "ticket.stale")]
        assert [elapsed // HOUR for elapsed in stale] == [72, 144, 216]
        (inspection,) = events_of(client, "inspection.stale")
        (task,) = events_of(client, "turn.task.stale")
        for event, day in ((inspection, today + 3 * DAY), (task, today + 4 * DAY)):
            assert datetime.timedelta() <= event.occurred_at - morning_after(day, zone) < datetime.timedelta(minutes=1)
        begun = client.turns.get(move_in.entity_id)
        unit = client.units.get(move_in.unit_id)
        assert (begun.status, unit.unit_status) == ("Active", "Occupied")
        (occupied,) = [
            event
            for event in events_of(client, "turn.status_changed")
            if isinstance(event, models.TurnStatusChangedEvent) and event.data.entity_id == begun.entity_id
        ]
        assert occupied.change.to == "Occupied" and occupied.occurred_at.astimezone(zone).date() == today + 5 * DAY
        # Each has arrived once, and the counts of the advance say the same.
        fired = [event.event_id for key in STALE for event in events_of(client, key)]
        assert sorted(receiver_on_loopback.accepted[path]) == sorted(fired) and len(fired) == 5
        assert clock.done["ticket.stale"] == 3 and clock.done["inspection.stale"] == 1
    assert before == [
        record.to_dict() for records in (in_live.tickets, in_live.turns, in_live.units) for record in records.list()
    ]
    assert [event for key in EVENTS for event in events_of(in_live, key)] == []


def test_a_receiver_that_fails_is_tried_by_the_ladder_of_the_sandboxs_clock(
    system: System, receiver_on_loopback: Receiver, stack: ExitStack
) -> None:
    company = system.company("A ladder in a sandbox", "--sandbox")
    client = client_of(company, stack)
    subscribe(client, receiver_on_loopback, "/fails-four-times", "ticket.created")
    parked = subscribe(client, receiver_on_loopback, "/fails", "ticket.created")
    receiver_on_loopback.failures |= {"/fails-four-times": 4, "/fails": 6}
    created = client.sandbox.create_trigger(event="ticket.created")
    advance(client, advance_by="P2D")
    assert receiver_on_loopback.accepted["/fails-four-times"] == [created.event_id]
    (delivery,) = client.webhooks.list_deliveries(parked)
    assert (delivery.state, len(receiver_on_loopback.events["/fails"])) == ("parked", 6)
    started = [attempt.started_at for attempt in delivery.attempts]
    assert [instant - started[0] for instant in started] == pytest.approx(LADDER, abs=datetime.timedelta(minutes=1))
    (subscription,) = [entry for entry in client.webhooks.list() if entry.entity_id == parked]
    assert subscription.health == "dead_lettered"
    # An administrator has it wait again, and the receiver answers at the next hour.
    system.makeready("webhooks", "retry", "--all-parked", str(parked))
    advance(client, advance_by="PT1H")
    assert receiver_on_loopback.accepted["/fails"] == [created.event_id]


def test_each_of_the_ten_events_can_be_triggered_and_arrives(
    system: System, receiver_on_loopback: Receiver, stack: ExitStack
) -> None:
    company = system.company("Ten triggers", "--sandbox")
    client = client_of(company, stack)
    subscribe(client, receiver_on_loopback, "/ten", *EVENTS)
    triggered = [client.sandbox.create_trigger(event=event) for event in EVENTS]
    assert [event.event for event in triggered] == EVENTS
    advance(client, advance_by="PT1H")
    arrived = Counter(receiver_on_loopback.accepted["/ten"])
    assert {event.event_id for event in triggered} <= set(arrived) and set(arrived.values()) == {1}


def test_a_write_beside_an_advance_has_the_instant_that_the_clock_then_says(system: System, stack: ExitStack) -> None:
    sandbox = system.company("Writers beside an advance", "--sandbox")
    client = client_of(sandbox, stack)
    sandbox.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    sandbox.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    (unit,) = client.units.list()
    rows = [
        {"external_id": f"T{n}", "property": "P1", "title": "Cold", "category": "HVAC", "source": "resident_portal"}
        for n in range(40)
    ]
    sandbox.import_rows("tickets", rows)
    written: list[tuple[float, float, str]] = []
    is_over = threading.Event()

    def write(writer: int, key: str) -> None:
        number = 0
        while not is_over.is_set() and number < 100:
            number += 1
            body = {"unit_id": unit.entity_id, "title": f"Tap {number}", "category": "Leak"}
            begun = time.monotonic()
            answer = system.post("/tickets", key, body, f"writer {writer} {number}")
            assert answer.status == 201, answer
            written.append((begun, time.monotonic(), answer.json["created_at"]))

    keys = [system.mint(sandbox.company_id, "write", sandbox.email) for _ in range(WRITERS)]
    writers = [threading.Thread(target=write, args=pair) for pair in enumerate(keys)]
    for writer in writers:
        writer.start()
    end = advance(client, advance_by="P30D")
    is_over.set()
    for writer in writers:
        writer.join()
    assert len(written) > WRITERS and end.done["ticket.stale"] >= 400
    for begun, _, created_at in written:
        earlier = [other for _, ended, other in written if ended < begun]
        assert not earlier or max(earlier) <= created_at
    # Those that time makes are in the order in which they were stored.
    instants = [event.occurred_at for event in client.events.list(event="ticket.stale", limit=200).page().data]
    assert len(instants) == 200 and instants == sorted(instants)
