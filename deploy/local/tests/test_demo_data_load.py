"""Loading the demo company: once, despite any interruption, and into any existing database."""

import json
import shlex
import signal
import stat
import subprocess
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import pytest

from testkit.patience import PATIENCE_SECONDS, took
from testkit.plugin import server_folder
from testkit.prepared import prepare_cluster

from .installation import READY_SECONDS, WARM_RUNNER, System, wait_for

STARTS_WITH = WARM_RUNNER
SERVICES = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")


def test_the_first_start_loads_the_demo_and_a_stop_keeps_it(system: System) -> None:
    system.started()
    demo, runtime = system.read("demo.json"), system.read("runtime.json")
    assert set(demo) == {"base_url", "admin_url", "company_id", "keys", "administrator", "staff"}
    assert [set(person) for person in demo["staff"]] == [{"name", "email", "password"}] * 2
    assert "Left as it is" not in system.terminal.read_text()
    worked = work_of(system, demo)
    assert {subscription["health"] for subscription in worked["webhooks"]["subscriptions"]} == {
        "healthy",
        "dead_lettered",
        "paused",
    }
    assert {("parked", 6), ("waiting", 1), ("waiting", 0)} == states_of(system, worked, "dead_lettered")
    assert ("succeeded", 1) in states_of(system, worked, "healthy")
    for person in demo["staff"]:
        assert person["password"] in system.terminal.read_text()
    photos = {
        entry["after"]["photo_url"] for entry in worked["audit"]["entries"] if entry["action"] == "ticket.photographed"
    }
    assert len(photos) == 10
    for address in photos:  # the console's name for itself
        assert urlsplit(address).netloc == f"localhost:{system.ports[1]}"
        with urllib.request.urlopen(address, timeout=PATIENCE_SECONDS) as photo:
            assert b"CC0" in photo.read()
    assert set(demo["keys"]) == {"read", "write", "webhook_only"}
    assert demo["base_url"] == runtime["base_url"] == f"http://127.0.0.1:{system.ports[0]}/api/v1"
    assert runtime["pid"] == system.runner.pid  # type: ignore[union-attr]
    assert set(runtime["processes"]) == {"postgres", "nats", "console", *SERVICES}
    for name in ("demo.json", "runtime.json", "secrets.json"):
        assert stat.S_IMODE((system.folder / name).stat().st_mode) == 0o600
    line = next(line for line in system.terminal.read_text().splitlines() if line.startswith("  curl "))
    page = subprocess.run(shlex.split(line), capture_output=True, text=True, check=True, timeout=20)
    assert len(json.loads(page.stdout)["data"]) == 3
    titles = {ticket["title"] for ticket in system.tickets(demo["keys"]["read"])}
    assert {"Kitchen faucet drips", "台所の蛇口から水漏れ", "المكيف لا يعمل في غرفة النوم"} <= titles
    first = system.get("/tickets?limit=200", demo["keys"]["read"])["data"]
    recorded = system.read("demo-story.json")

    assert system.stop() == 0
    assert system.remains() == []
    assert not (system.folder / "runtime.json").exists()
    with pytest.raises(urllib.error.URLError):
        system.get("/whoami", demo["keys"]["read"])

    began = time.monotonic()
    system.start()

    def answers() -> bool:
        try:
            return bool(system.get("/tickets?limit=200", demo["keys"]["read"])["data"] == first)
        except OSError:
            return False

    wait_for(answers)
    # The promise is 5 s on an idle machine; other tests may run at the same time.
    took("a second start answers", time.monotonic() - began)
    wait_for((system.folder / "runtime.json").exists)
    assert system.read("demo.json") == demo and system.read("demo-story.json") == recorded
    assert "demo company" not in system.terminal.read_text()
    assert work_of(system, demo) == worked
    assert system.stop(signal.SIGTERM) == 0
    assert system.remains() == []


def work_of(system: System, demo: Any) -> dict[str, Any]:
    """What people and integrations have done in the demo company."""
    company = str(demo["company_id"])
    return {
        "audit": system.makeready("audit", "list", company, "--limit", "1000"),
        "webhooks": system.makeready("webhooks", "list", company),
        "notices": system.makeready("notice", "list", company),
        "tasks": system.makeready("pm", "list", company),
    }


def states_of(system: System, worked: dict[str, Any], health: str) -> set[tuple[str, int]]:
    """The states of a subscription's deliveries, each with a number of attempts."""
    (subscription,) = (row for row in worked["webhooks"]["subscriptions"] if row["health"] == health)
    deliveries = system.makeready("webhooks", "deliveries", str(subscription["entity_id"]))["deliveries"]
    return {(delivery["state"], len(delivery["attempts"])) for delivery in deliveries}


@pytest.mark.slow
def test_a_demo_of_an_earlier_version_gets_what_it_lacks_and_keeps_the_rest(prepared: System) -> None:
    folder = prepared.folder.with_name("rows")
    folder.mkdir()
    alder_court = {"external_id": "P-100", "name": "Alder Court", "address": "1420 Alder Street", "city": "Portland"}
    somebodys = {"external_id": "Own", "name": "Somebody's own", "address": "1 Own Street"}
    prepared.started(MAKEREADY_DEMO="0")
    company = prepared.makeready("company", "create", "Makeready Demo")["company_id"]
    email = "old@example.com"
    prepared.makeready("administrator", "create", str(company), email)
    keys = {
        scope: prepared.makeready("key", "mint", str(company), "--scope", scope, "--administrator", email)["key"]
        for scope in ("read", "write", "webhook_only")
    }
    # A unit with the external_id of a demo unit, in another property: the demo's own unit is rejected then.
    in_the_way = {"external_id": "P-100-101", "property": "Own", "name": "Somebody's own unit"}
    for kind, rows in (("properties", (alder_court, somebodys)), ("units", (in_the_way,))):
        (folder / f"{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        prepared.makeready("import", str(company), kind, str(folder / f"{kind}.jsonl"))
    assert prepared.stop() == 0
    demo = {"company_id": company, "keys": keys, "administrator": {"email": email, "password": "secret"}}
    (prepared.folder / "demo.json").write_text(json.dumps(demo))

    prepared.started()
    assert "Bringing the demo company up to date" in prepared.terminal.read_text()
    assert prepared.read("demo.json").items() >= demo.items()
    properties = prepared.get("/properties?limit=200", keys["read"])["data"]
    assert [record["external_id"] for record in properties[:2]] == ["P-100", "Own"]
    assert properties[0]["building_type"] == "Mid-rise" and len(properties) > 5
    assert prepared.get("/tickets", keys["read"])["data"]
    units = {unit["external_id"]: unit["name"] for unit in prepared.get("/units?limit=200", keys["read"])["data"]}
    assert units["P-100-101"] == "Somebody's own unit" and units["P-100-102"] == "Alder Court 102"
    assert "Left as it is in the demo company: 1 of 130 units were rejected, see " in prepared.terminal.read_text()
    assert prepared.stop() == 0
    prepared.started()
    assert "demo company" not in prepared.terminal.read_text()
    assert prepared.stop() == 0


@pytest.mark.slow
def test_a_load_that_is_interrupted_in_another_database_is_finished_at_the_next_start(prepared_demo: System) -> None:
    """The demo of the first database stays as it is; the other one is loaded anew, once, whatever interrupts it."""
    first = prepared_demo.read("demo.json")
    email = first["administrator"]["email"]
    progress, story = (prepared_demo.folder / f"demo-{name}.json" for name in ("progress", "story"))
    with server_folder() as folder:
        server = prepare_cluster(folder)
        server.start()
        try:
            # As after the loss of a demo.json: its company is there.
            prepared_demo.started(MAKEREADY_DEMO="0", MAKEREADY_DATABASE_URL=server.url)
            lost = prepared_demo.makeready("company", "create", "Makeready Demo")["company_id"]
            prepared_demo.makeready("administrator", "create", str(lost), email)
            key = prepared_demo.makeready("key", "mint", str(lost), "--scope", "read")["key"]
            assert prepared_demo.stop() == 0

            runner = prepared_demo.start(MAKEREADY_DATABASE_URL=server.url)
            runner.wait_until(lambda: progress.exists() and "keys" in progress.read_text(), READY_SECONDS)
            runner.kill()
            runner.wait()
            assert prepared_demo.read("demo.json") == first
            # Once more, in the middle of the work that follows the files.
            company = str(prepared_demo.read(progress.name)["company_id"])
            runner = prepared_demo.start(MAKEREADY_DATABASE_URL=server.url)
            runner.wait_until(lambda: story.exists() and "keys" in story.read_text(), READY_SECONDS)
            runner.wait_until(
                lambda: len(prepared_demo.makeready("webhooks", "list", company)["subscriptions"]) == 3, READY_SECONDS
            )
            runner.kill()
            runner.wait()
            second = prepared_demo.started(MAKEREADY_DATABASE_URL=server.url).read("demo.json")
            assert "Left as it is" not in prepared_demo.terminal.read_text()
            assert not progress.exists()

            assert second["keys"] != first["keys"] and second["administrator"]["email"] != email
            for scope_key in second["keys"].values():
                named = prepared_demo.get("/whoami", scope_key)["company"]
                assert (named["id"], named["name"]) == (second["company_id"], "Makeready Demo")
            assert prepared_demo.get("/whoami", key)["company"]["id"] == lost != second["company_id"]
            tickets = prepared_demo.tickets(second["keys"]["read"])
            assert len(tickets) > 200  # each once
            assert len(tickets) == len({(ticket["title"], ticket["created_at"]) for ticket in tickets})
            assert len(prepared_demo.makeready("company", "list")["companies"]) == 2
            worked = work_of(prepared_demo, second)
            assert len(worked["webhooks"]["subscriptions"]) == 3
            subjects = [notice["subject"] for notice in worked["notices"]["notices"]]
            assert len(subjects) == 8 and len(subjects) == len(set(subjects))
            did = [(entry["action"], entry["subject_id"], str(entry["after"])) for entry in worked["audit"]["entries"]]
            assert len(did) == len(set(did)) > 60
            assert prepared_demo.stop() == 0
        finally:
            server.stop()
