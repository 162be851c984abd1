"""What every process serves at /metrics is what docs/metrics.md says."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from .system import System

PAGE = Path(__file__).parents[2] / "docs/metrics.md"
ROW = re.compile(r"\| `(makeready_\w+)` \| (\w+) \| ([^|]*)\| ([^|]+) \|")
PROCESSES = {"console", "gateway", "svc-catalog", "svc-occupancy", "svc-tickets", "svc-webhooks"}


class Metric(NamedTuple):
    """A row of the page."""

    type: str
    labels: set[str]
    meaning: str


def catalogue() -> dict[str, dict[str, Metric]]:
    """The metrics by process."""
    metrics: dict[str, dict[str, Metric]] = {name: {} for name in PROCESSES}
    for title, section in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        for name, kind, labels, meaning in ROW.findall(section):
            for process in PROCESSES if title == "Every process" else re.findall(r"`([\w-]+)`", title):
                metrics[process][name] = Metric(kind, set(re.findall(r"`(\w+)`", labels)), meaning)
    return metrics


@pytest.fixture(scope="module")
def served(system: System) -> dict[str, str]:
    """The text that each process serves."""
    by_process = {}
    for name, process in system.runtime["processes"].items():
        if "metrics" not in process:  # it keeps the streams of NATS
            continue
        with urllib.request.urlopen(f"http://{process['metrics']}/metrics", timeout=30) as response:
            by_process[name] = response.read().decode()
    assert by_process.keys() == PROCESSES
    return by_process


@pytest.mark.parametrize("process", sorted(PROCESSES))
def test_the_catalogue_has_exactly_what_the_process_serves(served: dict[str, str], process: str) -> None:
    rows = catalogue()[process]
    served_metrics = {}
    for family in text_string_to_metric_families(served[process]):
        name = family.name + ("_total" if family.type == "counter" else "")
        if not name.startswith("makeready_") or name.endswith("_created"):
            continue
        served_metrics[name] = family
        assert name in rows, f"{name} is not in docs/metrics.md"
        row = rows[name]
        assert (family.type, family.documentation) == (row.type, row.meaning), name
        for sample in family.samples:
            assert sample.labels.keys() - {"le"} == row.labels, sample
    assert served_metrics.keys() == rows.keys()


def test_every_process_says_which_build_it_is(served: dict[str, str], system: System) -> None:
    (version,) = {
        process["version"] for process in system.makeready("status")["processes"].values() if "version" in process
    }
    for process, text in served.items():
        (sample,) = [
            sample
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "makeready_build_info"
        ]
        assert (sample.labels, sample.value) == ({"version": version, "revision": "unknown"}, 1), process
