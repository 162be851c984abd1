"""Services of the release before beside this one's, both ways round, as during a rollout. `make platform` runs it.

Their code comes from git; `deploy/settings/released.json` names the commit. They run with today's dependencies.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from testkit.prepared import prepare_state
from testkit.requirements import ALL, lacks, required

from .receiver import Receiver
from .system import System

ROOT = Path(__file__).parents[2]
BEHIND = "svc-catalog,svc-tickets,svc-occupancy,svc-webhooks"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the release before."""
    if not required() & {"release-before", ALL}:
        lacks("release-before", "`make platform` runs it, for a minute")
    commit = json.loads((ROOT / "deploy/settings/released.json").read_text())["commit"]
    done = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        lacks("release-before", f"git has no commit {commit} here")
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        packed.extractall(folder)
    return folder


@pytest.fixture(params=[BEHIND, "gateway", "svc-webhooks", "svc-tickets"])
def mixed(request: pytest.FixtureRequest, tree: Path, states: Path, receiver: Receiver) -> Iterator[System]:
    """A system in which these services are of the release before."""
    made = System(
        states / f"beside {request.param[:12]}",
        MAKEREADY_DEMO="0",
        WEBHOOKS_EGRESS_HOSTS=f"receiver.test=127.0.0.1:{receiver.port}",
        WEBHOOKS_EGRESS_CA_FILE=str(receiver.authority_file),
    )
    made.run_as([sys.executable, "-P", "-m", "testkit.beside_runner", request.param, str(tree)])
    prepare_state(made.state)
    try:
        made.launch()
        made.wait_until(made._answers)
        made.wait_until(made._has_written_runtime)
        for name in request.param.split(","):
            pid = made.runtime["processes"][name]["pid"]
            assert str(tree).encode() in Path(f"/proc/{pid}/environ").read_bytes(), name
        yield made
    finally:
        made.stop()


def test_a_ticket_and_its_event_cross_both_releases(mixed: System, receiver: Receiver) -> None:
    """No contract is checked: the release's answers lack what was added since."""
    company = mixed.company("Beside")
    for kind, row in (
        ("properties", {"external_id": "P", "name": "Elm", "address": "1 Elm St"}),
        ("units", {"external_id": "U", "property": "P", "name": "1"}),
    ):
        assert company.import_rows(kind, [row])["created"] == 1
    (unit,) = mixed.get("/units", company.keys["read"]).json["data"]
    path = f"/beside-{company.company_id}-{len(receiver.deliveries)}"
    hook = {"destination_url": f"https://receiver.test{path}", "events": ["ticket.created", "ticket.status_changed"]}
    subscribed = mixed.post("/webhooks", company.keys["write"], hook, "hook")
    assert subscribed.status == 201, subscribed
    made = company.create_ticket(unit["entity_id"], "Leak", "one")
    assert made.status == 201, made
    replayed = company.create_ticket(unit["entity_id"], "Leak", "one")
    assert (replayed.json["entity_id"], replayed.headers["X-Idempotent-Replay"]) == (made.json["entity_id"], "1")
    ticket = f"/tickets/{made.json['entity_id']}"
    move = {"status": "In Progress"}
    moved = mixed.call("PATCH", ticket, company.keys["write"], move, {"Idempotency-Key": "two"})
    assert (moved.status, moved.json["status"]) == (200, "In Progress")
    leaves = {"move_out_date": "2026-12-31", "provider": "entrata"}
    refused = mixed.post(f"/units/{unit['entity_id']}/notice", company.keys["write"], leaves, "three")
    assert (refused.status, refused.code) == (422, "invalid_request"), "nobody lives there"
    swept = mixed.makeready("sweep", "webhooks")
    assert swept["succeeded"] == 2, swept
    arrived = receiver.at(path)
    assert sorted(one.json["event"] for one in arrived) == ["ticket.created", "ticket.status_changed"]
    assert all(one.is_signed_with(subscribed.json["secret"]) for one in arrived)
    assert arrived[-1].json["data"]["entity_id"] == made.json["entity_id"]
    assert mixed.get(ticket, company.keys["read"]).json["status"] == "In Progress"
