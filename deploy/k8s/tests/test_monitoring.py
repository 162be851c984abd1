"""The component `monitoring`: alarms that fire and stay silent, dashboards of the same names, a page for each alarm."""

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from testkit.alarms import METRIC, promtool, rules, write_rules

from .manifests import K8S, Bundle, build, documents, render, renderer, selects
from .test_network import Peer, admits

ROOT = Path(__file__).parents[3]
FOLDER = K8S / "components/monitoring"
ALARMS = [rule["alert"] for rule in rules()]
TESTS = yaml.safe_load((Path(__file__).parent / "alarms.yaml").read_text())["tests"]
PAGES = (ROOT / "docs/alarms.md").read_text()
CATALOGUE = set(re.findall(r"^\| `(makeready_\w+)` \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE))
PROJECTS = ("chassis", "cli", "console", "gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
DRILLS = (
    "tests/chaos/test_alarms.py",
    "gateway/tests/http/test_alarms_of_budgets.py",
    "chassis/tests/db/test_clocks.py",
    "console/tests/test_readiness.py",
)
LABELS = {"request_id", "trace_id", "key_id", "namespace"}
# Kinds of the Prometheus operator: their schemas are in no package, so their fields are checked here.
POD_MONITOR = {"selector", "podMetricsEndpoints"}
ENDPOINT = {"port", "path", "interval", "scrapeTimeout", "relabelings", "metricRelabelings"}
RULE = {"alert", "expr", "for", "labels", "annotations"}


def metrics_of(text: str) -> set[str]:
    """The metrics of ours that a query names, without the endings of a histogram's series."""
    names = {name for name in METRIC.findall(text) if name.startswith("makeready_")}
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


def dashboards() -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text()) for path in (FOLDER / "dashboards").glob("*.json")}


def queries() -> list[str]:
    return [
        target["expr"] for board in dashboards().values() for panel in board["panels"] for target in panel["targets"]
    ]


def run(*words: str | Path) -> None:
    done = subprocess.run([promtool(), *map(str, words)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# Alarms


def test_every_alarm_fires_and_stays_silent(tmp_path: Path) -> None:
    run("check", "rules", write_rules(tmp_path))
    shutil.copy(Path(__file__).parent / "alarms.yaml", tmp_path)
    run("test", "rules", tmp_path / "alarms.yaml")


def test_every_alarm_has_a_test_in_which_it_is_silent_at_first_and_then_fires_for_what_is_sick() -> None:
    tested: dict[str, set[int]] = {}
    for test in TESTS:
        for expectation in test["promql_expr_test"]:
            assert f'alertname="{test["name"]}"' in expectation["expr"]
            tested.setdefault(test["name"], set()).add(len(expectation["exp_samples"]))
        assert len(test["input_series"]) > 1 or tested[test["name"]] > {0}, "what is well has a series, too"
    assert tested.keys() == set(ALARMS)
    assert all(0 in counts and max(counts) > 0 for counts in tested.values()), tested


def test_every_alarm_has_its_section_and_every_section_its_alarm() -> None:
    sections = dict(re.findall(r"^### (Makeready\w+)\n(.*?)(?=^##|\Z)", PAGES, re.MULTILINE | re.DOTALL))
    assert list(sections) == ALARMS, "in the same order"
    for rule in rules():
        text = sections[rule["alert"]]
        assert re.findall(r"\*\*(.+?)\*\*", text)[:3] == ["Means.", "Look at", "Do"], rule["alert"]
        assert text.strip().startswith(f"`{rule['labels']['severity']}`")
        assert rule["annotations"]["runbook_url"].endswith(f"/alarms.md#{rule['alert'].lower()}")


def test_the_sections_name_what_there_is() -> None:
    """Log events, commands of the operator, panels."""
    code = "\n".join(
        path.read_text() for project in PROJECTS for path in (ROOT / project).rglob("*.py") if "tests" not in path.parts
    )
    for name in set(re.findall(r"`([a-z]+_[a-z_]+)`", PAGES)) - LABELS:
        assert name.startswith("pg_") or f'"{name}"' in code, name
    for command in set(re.findall(r"`makeready ([a-z]+ ?[a-z-]*)", PAGES)):
        assert all(f'"{word}"' in code for word in command.split()), command
    titles = {panel["title"] for board in dashboards().values() for panel in board["panels"]}
    assert set(re.findall(r"`([A-Z][a-z]+ [a-zA-Z', -]+)`", PAGES)) - {"Authorization Violation"} <= titles


def test_every_alarm_has_fired_for_real() -> None:
    """In `make alarms`, which runs these."""
    text = "".join((ROOT / name).read_text() for name in DRILLS)
    assert [name for name in ALARMS if f'"{name.removeprefix("Makeready")}"' not in text] == []


def test_runbooks_lead_out_of_rules_of_a_known_form() -> None:
    for rule in rules():
        assert rule.keys() <= RULE
        assert rule["labels"].keys() == {"severity"} and rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "runbook_url"}


# Names


def test_rules_and_dashboards_name_metrics_of_the_catalogue_and_the_dashboards_all_of_them() -> None:
    assert metrics_of(json.dumps(rules())) <= CATALOGUE
    assert metrics_of("\n".join(queries())) == CATALOGUE


def test_the_handbook_names_metrics_of_the_catalogue() -> None:
    for page in ("deploy/README.md", "docs/alarms.md", "docs/reliability.md"):
        assert metrics_of((ROOT / page).read_text()) <= CATALOGUE, page


def made() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_dashboards", K8S / "make_dashboards.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_dashboards_are_as_the_program_writes_them() -> None:
    module = made()
    assert module.DASHBOARDS.keys() == dashboards().keys()
    for name in module.DASHBOARDS:
        assert (FOLDER / f"dashboards/{name}.json").read_text() == module.text(name), "run make_dashboards.py"


def test_queries_of_the_dashboards_are_valid(tmp_path: Path) -> None:
    records = [
        {"record": f"panel:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries())
    ]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": records}]}))
    run("check", "rules", path)


# Manifests


def overlay(k8s: Path, name: str, base: str, *components: str) -> Path:
    """An overlay with these components."""
    folder = k8s / "overlays" / name
    folder.mkdir(exist_ok=True)
    settings = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "makeready",
        "resources": [f"../{base}"],
        "components": [f"../../components/{component}" for component in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(settings))
    return folder


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory, k8s_ha: Path) -> list[Bundle]:
    """The example with this component alone, and with all others; as built here, and as rendered if possible."""
    k8s = tmp_path_factory.mktemp("monitored") / "k8s"
    shutil.copytree(k8s_ha, k8s)
    alone = overlay(k8s, "monitored", "example", "monitoring")
    together = overlay(k8s, "monitored-ha", "example-ha", "autoscaling", "gateway-api", "nats-tls", "monitoring")
    command = renderer()
    rendered = [render(command, folder) for folder in (alone, together)] if command else []
    return [build(alone), build(together), *rendered]


def test_every_process_with_metrics_is_scraped_once(monitored: list[Bundle]) -> None:
    for bundle in monitored:
        serving = [
            workload
            for workload in bundle.workloads()
            if any(port["name"] == "metrics" for port in workload.container.get("ports", []))
        ]
        assert len(serving) == 6
        for monitor in bundle.of("PodMonitor"):
            assert monitor["spec"].keys() == POD_MONITOR
            (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
            assert endpoint.keys() <= ENDPOINT and endpoint["port"] == "metrics"
            labels = {relabeling["targetLabel"]: relabeling["replacement"] for relabeling in endpoint["relabelings"]}
            assert labels == {"service": monitor["metadata"]["name"], "part_of": "makeready"}
        for workload in bundle.workloads():
            monitors = [
                monitor for monitor in bundle.of("PodMonitor") if selects(monitor["spec"]["selector"], workload.labels)
            ]
            assert [monitor["metadata"]["name"] for monitor in monitors] == (
                [workload.name] if workload in serving else []
            )
        for workload in serving:
            assert admits(bundle, "Ingress", Peer(labels=workload.labels), Peer(namespace="monitoring"), 9091)


def test_grafana_finds_three_dashboards_and_the_operator_all_rules(monitored: list[Bundle]) -> None:
    for bundle in monitored:
        for name in ("calls", "events", "processes"):
            models = bundle.values("ConfigMap", f"makeready-dashboard-{name}")
            assert json.loads(models[f"{name}.json"])["uid"] == f"makeready-{name}"
            labels = bundle.one("ConfigMap", f"makeready-dashboard-{name}")["metadata"].get("labels")
            assert labels is None or labels["grafana_dashboard"] == "1"  # generators of `build` have none
        assert bundle.one("PrometheusRule", "makeready")["spec"] == documents(FOLDER / "rules.yaml")[0]["spec"]
