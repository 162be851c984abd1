"""An ended sandbox. The demo company, which has rows in nearly every table, is made one. It ends, processes are killed,
and then no database and no file has anything of it, whatever arrives late. A live company beside it stays."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import asyncpg
import pytest

from importing.demo import story
from makeready_local.databases import url_for
from testkit.patience import until
from testkit.prepared import prepare_state

from .system import Company, System

pytestmark = pytest.mark.chaos

CONTEXTS = ("catalog", "tickets", "occupancy", "webhooks")
DATABASES = ("gateway", *CONTEXTS, "console")
VARYING = ("document", "document_shape", "stale_due_at")
TABLES = """
SELECT c.relname AS name, EXISTS (
    SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'company_id' AND NOT a.attisdropped
) AS has_company
FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace ORDER BY 1
"""


class Databases:
    """The six databases of a system, by their services' roles."""

    def __init__(self, system: System) -> None:
        secrets = json.loads((system.state / "secrets.json").read_text())
        server = system.runtime["database_url"]
        self._urls = {name: url_for(server, name, secrets[f"database_{name}"]) for name in DATABASES}

    def rows(self, database: str, sql: str, *values: object) -> list[Any]:
        async def fetch() -> list[Any]:
            connection = await asyncpg.connect(self._urls[database])
            try:
                rows: list[Any] = await connection.fetch(sql, *values)
                return rows
            finally:
                await connection.close()

        return asyncio.run(fetch())

    @contextmanager
    def without_writes(self, database: str, table: str) -> Iterator[None]:
        """Lets every write of the table wait."""
        with asyncio.Runner() as runner:
            connection = runner.run(asyncpg.connect(self._urls[database]))
            runner.run(connection.execute(f'BEGIN; LOCK TABLE "{table}" IN SHARE MODE'))
            yield
            runner.run(connection.close())

    def of_company(self, company_id: int) -> dict[str, int]:
        """How many rows of each table name the company; tables without such rows are left out."""
        counts = {}
        for database in DATABASES:
            for name, has_company in self.rows(database, TABLES):
                if has_company:
                    sql = f'SELECT count(*) FROM "{name}" WHERE company_id = $1'
                    (counts[f"{database}.{name}"],) = self.rows(database, sql, company_id)[0]
        return {name: rows for name, rows in counts.items() if rows}

    def holding(self, *texts: str) -> set[str]:
        """The tables that have one of these texts anywhere, also in bytes."""
        forms = [form for text in texts for form in (f"%{text}%", f"%{text.encode().hex()}%")]
        return {
            f"{database}.{name}"
            for database in DATABASES
            for name, _ in self.rows(database, TABLES)
            if self.rows(database, f'SELECT 1 FROM "{name}" AS r WHERE r::text LIKE ANY ($1) LIMIT 1', forms)
        }


@pytest.fixture(scope="module")
def house(states: Path) -> Iterator[System]:
    """A separate system with the demo company."""
    prepare_state(states / "ended", demo=True)
    system = System(states / "ended")
    system.start()
    yield system
    system.stop()


@pytest.fixture(scope="module")
def beside(house: System) -> Company:
    """A live company with a record in each context."""
    company = house.company("Beside")
    company.import_rows("properties", [{"external_id": "P1", "name": "Stays Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    ticket = {"external_id": "T1", "property": "P1", "unit": "U1", "title": "Stays cold", "category": "HVAC"}
    company.import_rows("tickets", [ticket], "--events")
    house.makeready("wait")
    return company


def keep_files(system: System, databases: Databases, company_id: int) -> None:
    """A photo and an import that the console keeps."""
    files = system.state / "files"
    for folder in ("photos", "imports"):
        (files / folder).mkdir(exist_ok=True)
    owner = json.dumps({"company_id": company_id, "actor": "staff:1", "at": ""})
    photo = f"{company_id:022}"
    for name, content in ((f"{photo}.json", owner), (f"{photo}-400.jpg", ""), (f"{photo}-2048.jpg", "")):
        (files / "photos" / name).write_text(content)
    (files / "imports" / str(company_id)).write_text("external_id,name")
    insert = (
        "INSERT INTO job (company_id, act, person, file_name, file_bytes, stored_as) VALUES ($1, $2, '', '', 16, $3)"
    )
    databases.rows("console", insert, company_id, str(company_id), f"imports/{company_id}")


def files_of(system: System, company_id: int) -> list[str]:
    """The names of its photos and imports."""
    names = (file.name for file in (system.state / "files").rglob("*") if file.is_file())
    return [name for name in names if name.startswith((f"{company_id:022}", str(company_id)))]


def test_a_sandbox_starts_as_a_copy_of_its_live_company(house: System, beside: Company) -> None:
    words = ("company", "create", "Copy", "--sandbox", "--of", str(beside.company_id), "--content", "copy")
    sandbox_id = house.makeready(*words)["company_id"]
    sandbox = Company(house, sandbox_id, beside.email, {"write": house.mint(sandbox_id, "write", beside.email)})
    write = sandbox.keys["write"]
    until(lambda: house.get("/units", write).json["data"], "no unit is copied")
    (unit,), (original,) = house.get("/units", write).json["data"], list(beside.walk("/units"))
    assert (unit["external_id"], unit["property"]["name"]) == ("U1", "Stays Court")
    assert unit["entity_id"] != original["entity_id"]
    assert house.get("/tickets", write).json["data"] == [], "tickets are not copied"
    # The other contexts know the copies, as they know any unit.
    assert sandbox.create_ticket(unit["entity_id"], "A leak in the copy", "copy").status == 201
    databases = Databases(house)
    filled = "SELECT filled_at FROM company WHERE id = $1"
    until(lambda: databases.rows("gateway", filled, sandbox_id)[0]["filled_at"], "the copy does not end")


# By kind of import: its database and its rows.
IMPORTED = {
    "staff": ("gateway", "staff"),
    "vendors": ("catalog", "vendor"),
    "properties": ("catalog", "property"),
    "units": ("catalog", "unit"),
    "assets": ("catalog", "asset"),
    "turns": ("occupancy", "transition"),
    "inspections": ("catalog", "inspection"),
    "meters": ("catalog", "meter"),
    "readings": ("catalog", "reading"),
    "tickets": ("tickets", "ticket"),
    "pm-tasks": ("tickets", "pm_task"),
    "turn-tasks": ("occupancy", "turn_task"),
    "notices": ("catalog", "notice"),
}


def test_a_sandbox_starts_with_the_demos_records_though_the_gateway_is_killed(house: System) -> None:
    databases = Databases(house)
    words = ("company", "create", "Tour", "--sandbox", "--content", "demo", "--timezone", "Pacific/Auckland")

    def records() -> dict[str, dict[str, Any]]:
        """By kind and external_id: the rows, without the stored JSON and what a sweep may change meanwhile."""
        return {
            kind: {
                row["external_id"]: {**row} | dict.fromkeys(VARYING)
                for row in databases.rows(database, f"SELECT * FROM {table} WHERE company_id = $1", sandbox_id)
            }
            for kind, (database, table) in IMPORTED.items()
        }

    def is_filled() -> bool:
        row = databases.rows("gateway", "SELECT filled_at FROM company WHERE id = $1", sandbox_id)[0]
        return row["filled_at"] is not None

    with databases.without_writes("tickets", "ticket"):
        sandbox_id = house.makeready(*words)["company_id"]
        until(lambda: records()["readings"], "no reading is imported")
        assert not records()["tickets"] and not is_filled()
        os.kill(house.runtime["processes"]["gateway"]["pid"], signal.SIGKILL)
    house.stop()
    house.start()
    databases = Databases(house)
    until(is_filled, "the sandbox is not filled")
    (company,) = databases.rows("gateway", "SELECT created_at FROM company WHERE id = $1", sandbox_id)
    day = company["created_at"].astimezone(ZoneInfo("Pacific/Auckland")).date()
    filled = records()
    expected = {kind: {row["external_id"] for row in rows} for kind, rows in story.rows(day).items()}
    assert {kind: set(rows) for kind, rows in filled.items()} == expected
    # Silent, and nobody can sign in.
    house.makeready("wait")
    tables = databases.of_company(sandbox_id)
    assert "gateway.staff" in tables and not [name for name in tables if name.startswith("webhooks.")], tables
    assert not {"gateway.administrator", "gateway.api_key", "gateway.account", "gateway.link"} & set(tables), tables
    # A second time changes nothing, not even where the outcomes of the first are no longer known.
    for database in ("gateway", "catalog", "tickets", "occupancy"):
        databases.rows(database, "DELETE FROM idempotency WHERE company_id = $1", sandbox_id)
    databases.rows("gateway", "UPDATE company SET filled_at = NULL WHERE id = $1", sandbox_id)
    until(is_filled, "the sandbox is not filled a second time")
    assert records() == filled


def deliver_late(house: System, databases: Databases, late: list[Any], public: list[Any]) -> None:
    """Has events that no consumer has applied yet arrive, and replicas built anew."""
    for context, rows in (("catalog", late), ("tickets", public)):
        for row in rows:
            databases.rows(
                context,
                "INSERT INTO outbox (event_id, subject, message) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                *(row[name] for name in ("event_id", "subject", "message")),
            )
    assert late and public
    for context in CONTEXTS:
        ids = [row["event_id"] for row in (*late, *public)]
        databases.rows(context, "DELETE FROM inbox WHERE event_id = ANY ($1)", ids)
    house.makeready("wait")
    house.makeready("replicas", "rebuild")
    house.makeready("wait")


def note_purge(databases: Databases, company_id: int) -> None:
    """Waits until the purge is noted, as if an hour had passed since the end."""
    databases.rows("gateway", "UPDATE company SET ended_at = ended_at - interval '2 hours' WHERE id = $1", company_id)

    def purged() -> bool:
        return (
            databases.rows("gateway", "SELECT purged_at FROM company WHERE id = $1", company_id)[0]["purged_at"]
            is not None
        )

    for _ in range(3):  # each process looks twice a minute
        try:
            until(purged)
            break
        except AssertionError:
            continue
    assert purged()


def test_nothing_of_an_ended_sandbox_is_left_anywhere(house: System, beside: Company) -> None:
    demo_id, key = house.demo["company_id"], house.demo["keys"]["read"]
    databases = Databases(house)
    assert house.run("company", "end", str(demo_id), "--yes").returncode == 1, "a live company"

    databases.rows("gateway", "UPDATE company SET is_sandbox = true, sandbox_of = $2 WHERE id = $1", demo_id,
                   beside.company_id)  # fmt: skip
    for context in CONTEXTS:
        databases.rows(context, "UPDATE company SET is_sandbox = true WHERE id = $1", demo_id)
    for company_id in (demo_id, beside.company_id):
        keep_files(house, databases, company_id)
    names = ["Goes Court"]
    demo = Company(house, demo_id, house.demo["administrator"]["email"], house.demo["keys"])
    demo.import_rows("properties", [{"external_id": "G1", "name": names[0], "address": "2 Elm St"}])
    demo.import_rows("units", [{"external_id": "GU1", "property": "G1", "name": "Unit 1"}])
    ticket = {"external_id": "GT1", "property": "G1", "unit": "GU1", "title": "Goes cold", "category": "HVAC"}
    demo.import_rows("tickets", [ticket], "--events")
    house.makeready("wait")
    before, held = databases.of_company(demo_id), databases.holding(*names)
    assert len(before) > 50, before
    assert {"catalog.property", "tickets.property", "occupancy.property", "webhooks.event"} <= held
    assert len(files_of(house, demo_id)) == 4
    others = databases.of_company(beside.company_id)
    # What arrives late: a record of each context, and an event for receivers.
    late = databases.rows("catalog", "SELECT * FROM outbox ORDER BY event_id")
    public = databases.rows("tickets", "SELECT * FROM outbox WHERE subject LIKE '%public%' ORDER BY event_id")

    unconfirmed = house.run("company", "end", str(demo_id))
    assert unconfirmed.returncode == 1 and "--yes" in unconfirmed.stderr
    assert house.get("/whoami", key).status == 200
    house.makeready("company", "end", str(demo_id), "--yes")
    until(lambda: house.get("/whoami", key).status == 401, "its key is known")
    until(lambda: databases.of_company(demo_id) != before, "nothing is deleted")
    for name in ("svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks", "console", "gateway"):
        os.kill(house.runtime["processes"][name]["pid"], signal.SIGKILL)
    house.stop()
    house.settings["MAKEREADY_DEMO"] = "0"  # or the runner makes another demo company
    house.start()
    databases = Databases(house)
    until(lambda: not databases.of_company(demo_id), lambda: f"left: {databases.of_company(demo_id)}")
    until(lambda: not databases.holding(*names), lambda: f"left: {databases.holding(*names)}")
    until(lambda: not files_of(house, demo_id), lambda: f"left: {files_of(house, demo_id)}")
    assert len(files_of(house, beside.company_id)) == 4
    assert (
        databases.of_company(beside.company_id).items()
        >= {name: rows for name, rows in others.items() if name != "gateway.audit"}.items()
    )

    deliver_late(house, databases, late, public)
    without_outbox = {name for name in databases.holding(*names) if not name.endswith(".outbox")}
    assert not without_outbox and not databases.of_company(demo_id)
    assert next(beside.walk("/tickets"))["title"] == "Stays cold"

    note_purge(databases, demo_id)
    assert not databases.holding(*names)
    (entry,) = databases.rows("gateway", "SELECT * FROM audit WHERE action = 'sandbox.ended'")
    assert (entry["company_id"], entry["subject_id"]) == (beside.company_id, demo_id)
