"""A client that openapi-python-client generates from the served document works against the running system."""

from __future__ import annotations

import datetime
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .system import Company, System

PACKAGE = "generated_client"
# The second setting is that of docs/sync.md: the generator knows no media type of JSON lines.
CONFIG = f"""\
package_name_override: {PACKAGE}
content_type_overrides:
  application/x-ndjson: text/plain
post_hooks: []
"""


@pytest.fixture(scope="module")
def client(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The generated package."""
    folder = tmp_path_factory.mktemp("client")
    document, config = folder / "openapi.json", folder / "config.yml"
    document.write_bytes(system.get("/openapi.json").body)
    config.write_text(CONFIG)
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("openapi-python-client")), "generate", "--fail-on-warning",
            "--path", str(document), "--config", str(config), "--meta", "none", "--output-path", str(folder / PACKAGE),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield importlib.import_module(PACKAGE)
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    company = system.company("Generated")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows(
        "units", [{"external_id": f"U{number}", "property": "P1", "name": f"Unit {number}"} for number in range(5)]
    )
    return company


def operation(tag: str, name: str) -> Any:
    return importlib.import_module(f"{PACKAGE}.api.{tag}.{name}")


def model(name: str) -> Any:
    return getattr(importlib.import_module(f"{PACKAGE}.models"), name)


def session(client: ModuleType, company: Company, scope: str) -> Any:
    return client.AuthenticatedClient(base_url=company.system.base_url, token=company.keys[scope])


def test_it_has_no_errors_of_types(client: ModuleType) -> None:
    folder = Path(str(client.__file__)).parent
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=/dev/null", PACKAGE]
    done = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_walks_a_list_by_its_cursor(client: ModuleType, company: Company) -> None:
    caller, names = session(client, company, "read"), []
    query: dict[str, str] = {}
    while True:
        page = operation("units", "list_units").sync(client=caller, limit=2, **query)
        assert isinstance(page, model("UnitPage")) and page.limit == 2
        names += [unit.name for unit in page.data]
        if page.next_cursor is None:
            break
        query = {"cursor": page.next_cursor}
    assert names == [f"Unit {number}" for number in range(5)]


def test_it_creates_a_ticket_once_and_fetches_it(client: ModuleType, company: Company) -> None:
    caller = session(client, company, "write")
    unit = operation("units", "list_units").sync(client=caller).data[0]
    body = model("TicketCreate")(
        unit_id=unit.entity_id, title="A tap drips", category=model("TicketCategory")("Plumbing")
    )
    create = operation("tickets", "create_ticket")
    opened = create.sync(client=caller, body=body, idempotency_key="generated")
    assert isinstance(opened, model("Ticket"))
    assert (opened.status, opened.priority) == (model("TicketStatus").OPEN, model("TicketPriority").MEDIUM)
    assert opened.unit.name == unit.name and opened.completed_at is None and opened.created_at.tzinfo is not None
    again = create.sync_detailed(client=caller, body=body, idempotency_key="generated")
    assert again.headers["X-Idempotent-Replay"] == "1" and again.parsed == opened
    assert operation("tickets", "get_ticket").sync(opened.entity_id, client=caller) == opened
    listed = operation("tickets", "list_tickets").sync(client=caller, status=model("ListTicketsStatus").OPEN)
    assert listed.data == [opened]


def test_it_changes_a_tickets_status(client: ModuleType, company: Company) -> None:
    caller = session(client, company, "write")
    unit = operation("units", "list_units").sync(client=caller).data[1]
    ticket = model("TicketCreate")(unit_id=unit.entity_id, title="No heat", category=model("TicketCategory")("HVAC"))
    opened = operation("tickets", "create_ticket").sync(client=caller, body=ticket, idempotency_key="to change")
    change, statuses = operation("tickets", "change_ticket_status"), model("TicketStatus")
    body = model("StatusChange")(status=statuses.COMPLETED, note="The boiler was lit again")
    done = change.sync(opened.entity_id, client=caller, body=body, idempotency_key="complete")
    assert isinstance(done, model("Ticket")) and done.status == statuses.COMPLETED
    assert done.completed_at == done.updated_at and done.cancelled_at is None
    again = change.sync_detailed(opened.entity_id, client=caller, body=body, idempotency_key="complete")
    assert again.headers["X-Idempotent-Replay"] == "1" and again.parsed == done
    body = model("StatusChange")(status=statuses.COMPLETED)
    refused = change.sync(opened.entity_id, client=caller, body=body, idempotency_key="no note")
    assert isinstance(refused, model("ErrorAnswer")) and refused.error.code == "invalid_request"


def test_it_records_a_move_in_and_a_notice(client: ModuleType, company: Company) -> None:
    caller = session(client, company, "write")
    unit = operation("units", "list_units").sync(client=caller).data[2]
    ana = model("PartyCreate")(
        first_name="Ana", last_name="Ortiz", role=model("PartyRole").LEASEHOLDER, email="ana@tenants.test"
    )
    body = model("MoveInCreate")(
        move_in_date=datetime.date(2026, 3, 1),
        lease_start_date=datetime.date(2026, 3, 1),
        provider="Feed",
        parties=[model("PartyCreate")(first_name="Bo"), ana],
    )
    record = operation("units", "record_move_in").sync(
        unit.entity_id, client=caller, body=body, idempotency_key="move in"
    )
    assert isinstance(record, model("OccupancyRecord")) and record.occupancy_source == "feed"
    assert record.lease.end_date is None and [party.first_name for party in record.parties] == ["Ana", "Bo"]
    body = model("NoticeCreate")(move_out_date=datetime.date(2026, 9, 30), provider="Feed")
    notice = operation("units", "record_notice").sync(
        unit.entity_id, client=caller, body=body, idempotency_key="notice"
    )
    assert (notice.entity_id, notice.move_out_date) == (record.entity_id, datetime.date(2026, 9, 30))
    assert notice.lease is None and notice.parties == []
    turn = operation("turns", "get_turn").sync(notice.entity_id, client=caller)
    assert turn.move_out_date == notice.move_out_date and turn.unit.id == unit.entity_id


def test_it_distinguishes_errors(client: ModuleType, company: Company) -> None:
    reader = session(client, company, "read")
    missing = operation("tickets", "get_ticket").sync_detailed(9_000_000_000, client=reader)
    assert missing.status_code == 404 and missing.parsed.error.code == "not_found"
    body = model("TicketCreate")(unit_id=1, title="x", category=model("TicketCategory")("HVAC"))
    refused = operation("tickets", "create_ticket").sync_detailed(client=reader, body=body, idempotency_key="scope")
    assert isinstance(refused.parsed, model("ErrorAnswer")) and refused.parsed.error.code == "insufficient_scope"


def test_it_subscribes_and_unsubscribes(client: ModuleType, company: Company) -> None:
    caller = session(client, company, "webhook_only")
    body = model("SubscriptionCreate")(
        destination_url="https://receiver.test/generated", events=[model("EventKey")("ticket.created")]
    )
    subscription = operation("webhooks", "create_subscription").sync(
        client=caller, body=body, idempotency_key="generated"
    )
    assert subscription.secret and subscription.events == [model("EventKey").TICKET_CREATED]
    listed = operation("webhooks", "list_subscriptions").sync(client=caller)
    assert [subscription.entity_id for subscription in listed.data] == [subscription.entity_id]
    gone = operation("webhooks", "delete_subscription").sync_detailed(subscription.entity_id, client=caller)
    assert gone.status_code == 204


def followed(feed: Any, until: Any, **query: Any) -> list[Any]:
    """The items of a feed, page by page, to one for which `until` holds. A cursor may be from before older changes."""
    items: list[Any] = []
    for _ in range(20):
        page = feed.sync(wait=2, limit=1, **query)
        items += page.data
        if any(until(item) for item in page.data):
            return items
        query["cursor"] = page.resume_cursor
    raise AssertionError(f"not in the feed: {items}")


def open_ticket(caller: Any, name: str) -> Any:
    unit = operation("units", "list_units").sync(client=caller).data[0]
    body = model("TicketCreate")(unit_id=unit.entity_id, title=name, category=model("TicketCategory")("Plumbing"))
    return operation("tickets", "create_ticket").sync(client=caller, body=body, idempotency_key=name)


def test_it_takes_a_snapshot_and_follows_the_changes_since(client: ModuleType, company: Company) -> None:
    caller = session(client, company, "write")
    open_ticket(caller, "before the snapshot")
    listed = operation("tickets", "list_tickets").sync(client=caller).data
    taken = operation("changes", "get_tickets_snapshot").sync_detailed(client=caller)
    *lines, last_line = taken.parsed.split("\n")
    assert last_line == "" and [model("Ticket").from_dict(json.loads(line)) for line in lines] == listed
    opened, feed = open_ticket(caller, "after the snapshot"), operation("changes", "list_ticket_changes")
    cursor = taken.headers["Service-Resume-Cursor"]
    changes = followed(feed, lambda change: change.entity_id == opened.entity_id, client=caller, cursor=cursor)
    assert all(isinstance(change, model("TicketChange")) and not change.gone for change in changes)
    assert changes[-1].record == opened and all(change.record in listed for change in changes[:-1])


def test_it_follows_events(client: ModuleType, company: Company) -> None:
    caller = session(client, company, "write")
    opened, created = open_ticket(caller, "an event"), model("ListEventsEvent").TICKET_CREATED
    feed = operation("changes", "list_events")
    events = followed(feed, lambda event: event.data.entity_id == opened.entity_id, client=caller, event=created)
    assert all(isinstance(event, model("TicketCreatedEvent")) for event in events)
    assert len({event.data.entity_id for event in events}) == len(events)
