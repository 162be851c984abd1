"""A client that openapi-python-client generates from the served document works against the running system."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from system import Company, System

PACKAGE = "makeready_client"


@pytest.fixture(scope="module")
def client(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The generated package."""
    folder = tmp_path_factory.mktemp("client")
    document, config = folder / "openapi.json", folder / "config.yml"
    document.write_bytes(system.get("/openapi.json").body)
    config.write_text(f"package_name_override: {PACKAGE}\npost_hooks: []\n")
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


def test_it_tells_errors_apart(client: ModuleType, company: Company) -> None:
    reader = session(client, company, "read")
    missing = operation("tickets", "get_ticket").sync_detailed(9_000_000_000, client=reader)
    assert missing.status_code == 404 and missing.parsed.error.code == "not_found"
    body = model("TicketCreate")(unit_id=1, title="x", category=model("TicketCategory")("HVAC"))
    refused = operation("tickets", "create_ticket").sync_detailed(client=reader, body=body, idempotency_key="scope")
    assert isinstance(refused.parsed, model("Error")) and refused.parsed.error.code == "insufficient_scope"


def test_it_subscribes_and_unsubscribes(client: ModuleType, company: Company) -> None:
    caller = session(client, company, "webhook_only")
    body = model("SubscriptionCreate")(
        destination_url="https://receiver.test/generated", events=[model("EventKey")("ticket.created")]
    )
    made = operation("webhooks", "create_subscription").sync(client=caller, body=body, idempotency_key="generated")
    assert made.secret and made.events == [model("EventKey").TICKET_CREATED]
    listed = operation("webhooks", "list_subscriptions").sync(client=caller)
    assert [one.entity_id for one in listed.data] == [made.entity_id]
    gone = operation("webhooks", "delete_subscription").sync_detailed(made.entity_id, client=caller)
    assert gone.status_code == 204
