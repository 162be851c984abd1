"""The table of connections in deploy/README.md is what the example's pods may open."""

import importlib
import re
from collections.abc import Mapping
from pathlib import Path

from chassis.runtime.settings import Environment
from console.imports.worker import CONNECTIONS as CONNECTIONS_OF_AN_IMPORT

from .manifests import K8S, Bundle, kustomization, process

ROOT = K8S.parents[1]
# The sessions that a service holds in addition to those of the pool, each at most one at a time: what its code has that
# opens one.
SESSIONS = {
    "gateway": {"database.session(", "DayTables("},
    "svc-webhooks": {"DayTables("},
}


def table() -> Mapping[str, list[int]]:
    """By pods, or "together": the numbers of each row, those of the second column added up."""
    part = (ROOT / "deploy/README.md").read_text().split("### Connections to PostgreSQL")[1].split("###")[0]
    rows = re.findall(r"^\| `?([a-z-]+)`? \|(.*?)\| (\d+) \| (\d+) \|$", part, re.MULTILINE)
    return {
        name: [sum(map(int, re.findall(r"\d+", numbers))), int(two), int(more)] for name, numbers, two, more in rows
    }


def test_the_table_is_what_the_pods_may_open(as_read: Bundle, tmp_path: Path) -> None:
    replicas = {entry["name"]: entry["count"] for entry in kustomization(K8S / "overlays/example").get("replicas", [])}
    opened = {}
    for workload in as_read.workloads("Deployment"):
        if workload.component not in ("server", "web"):
            continue
        environment = Environment(process(as_read, workload, tmp_path / workload.name))
        settings = importlib.import_module(f"{workload.name.replace('-', '_')}.config").read(environment)
        pool = getattr(settings, "service", settings).database.connections
        more = CONNECTIONS_OF_AN_IMPORT * getattr(settings, "import_tasks", 0)
        of_a_pod = pool + more + len(SESSIONS.get(workload.name, ()))
        surge = workload.manifest["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
        count = replicas[workload.name]
        opened[workload.name] = [of_a_pod, of_a_pod * count, of_a_pod * (count + surge)]
    together = [sum(column) for column in zip(*opened.values(), strict=True)][1:]
    documented = dict(table())
    assert documented.pop("together")[1:] == together
    assert documented == opened


def test_no_other_pod_holds_a_session_outside_its_pool() -> None:
    opened: dict[str, set[str]] = {}
    for path in ROOT.glob("*/*/**/*.py"):
        if {"tests", ".venv", "build", "chassis", "migrations"} & {*path.parts}:
            continue
        for opening in re.findall(r"database\.session\(|\bDayTables\(", path.read_text()):
            opened.setdefault(path.relative_to(ROOT).parts[0], set()).add(opening)
    assert opened == SESSIONS
