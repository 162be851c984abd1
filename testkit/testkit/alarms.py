"""The alarms of deploy/k8s/components/monitoring, evaluated by promtool over what processes really serve at /metrics.

A test scrapes a process before and after it has brought it into a state. Then the state lasts: counters and ages go on
to rise as they did between the last two scrapes, other metrics keep their values. So no test waits for the minutes that
an alarm waits.
"""

from __future__ import annotations

import functools
import math
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from testkit.requirements import lacks

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/k8s/components/monitoring/rules.yaml"
ALONE = "rules-alone.yaml"
"""The rules as Prometheus reads them: the `spec` of the manifest."""
METRIC = re.compile(r"\b(?:makeready|process)_[a-z_]+[a-z]\b|\bup\b")
_GROWING = ("makeready_changes_lag_seconds", "makeready_webhooks_oldest_due_seconds")
_QUESTION = 'count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[1d]))'
_FIRED = re.compile(r'\{alertname=\\*"Makeready(\w+?)\\*"\}')


class Scrape(NamedTuple):
    """What a process served, and when, in seconds since 1970. text: "" if it did not answer."""

    text: str
    at: float


def promtool() -> str:
    """The program. Skips the test if there is none."""
    return shutil.which("promtool") or lacks("promtool", "no program `promtool`")


def rules() -> list[dict[str, Any]]:
    """The alarms, as in the manifest."""
    groups = yaml.safe_load(RULES.read_text())["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def write_rules(folder: Path) -> Path:
    """Writes the rules for promtool."""
    path = folder / ALONE
    path.write_text(yaml.safe_dump(yaml.safe_load(RULES.read_text())["spec"]))
    return path


def scraped(address: str) -> Scrape:
    """What the process at HOST:PORT serves now."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as response:
            return Scrape(response.read().decode(), time.time())
    except (OSError, urllib.error.URLError):
        return Scrape("", time.time())


def own() -> Scrape:
    """What this process would serve."""
    return Scrape(generate_latest(REGISTRY).decode(), time.time())


def firing(scrapes: Mapping[str, Sequence[Scrape]], minutes: int = 180) -> set[str]:
    """The alarms that fire for these processes within that time, without "Makeready". scrapes: two or more of each
    process, by the name of its service."""
    tool = promtool()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_rules(folder)
        test = {
            "interval": "1m",
            "input_series": [
                series
                for name, service_scrapes in scrapes.items()
                for series in _series(name, service_scrapes, minutes)
            ],
            # Nothing is expected, so promtool reports all that it finds.
            "promql_expr_test": [{"expr": _QUESTION, "eval_time": f"{minutes}m", "exp_samples": []}],
        }
        file = folder / "test.yaml"
        file.write_text(yaml.safe_dump({"rule_files": [ALONE], "evaluation_interval": "1m", "tests": [test]}))
        done = subprocess.run([tool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    fired = set(_FIRED.findall(done.stdout + done.stderr))
    assert fired or done.returncode == 0, done.stdout + done.stderr
    return fired


def _series(service: str, scrapes: Sequence[Scrape], minutes: int) -> Iterator[dict[str, str]]:
    """The series of a process that alarms ask for: the scrapes a minute apart, and how it goes on."""
    labels = {"namespace": "makeready", "service": service, "part_of": "makeready", "pod": f"{service}-0"}
    up = [float(bool(scrape.text)) for scrape in scrapes]
    yield _one("up", labels, up, 0.0, minutes)
    read = [_samples(scrape, scrapes[0].at) for scrape in scrapes]
    a_minute = 60 / max(scrapes[-1].at - scrapes[-2].at, 0.001)
    for name, own_labels in sorted({key for samples in read for key in samples}):
        values = [samples.get((name, own_labels)) for samples in read]
        is_counter = name.endswith(("_total", "_bucket", "_count", "_sum"))
        if is_counter and read[-2] and values[-2] is None:
            values[-2] = 0.0  # its first one came between the two
        rise = 0.0
        if (is_counter or name in _GROWING) and values[-1] is not None and values[-2] is not None:
            rise = max(values[-1] - values[-2], 0.0) * a_minute
        yield _one(name, labels | dict(own_labels), values, rise, minutes)


def _samples(scrape: Scrape, begun: float) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The samples that alarms ask for, by name and labels. Instants count from the first scrape, as promtool's clock
    does."""
    samples = {}
    # The others are many, and reading them takes a second.
    lines = (line for line in scrape.text.splitlines() if re.split("[{ ]", line, maxsplit=1)[0] in _asked())
    for family in text_string_to_metric_families("\n".join([*lines, ""])):
        for sample in family.samples:
            value = sample.value
            if sample.name.endswith(("_timestamp_seconds", "_start_time_seconds")) and value > 0:
                value = max(value - begun + 1, 0.001)
            samples[sample.name, tuple(sorted(sample.labels.items()))] = value
    return samples


@functools.cache
def _asked() -> frozenset[str]:
    """The metrics that the rules name."""
    return frozenset(METRIC.findall(RULES.read_text()))


def _one(
    name: str, labels: Mapping[str, str], values: Sequence[float | None], rise: float, minutes: int
) -> dict[str, str]:
    label_texts = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
    last = values[-1]
    if last is None or not math.isfinite(last):
        tail = " ".join([_printed(last)] * minutes)
    else:
        tail = f"{_printed(last + rise)}+{_printed(rise)}x{minutes}"
    return {"series": f"{name}{{{label_texts}}}", "values": " ".join([*map(_printed, values), tail])}


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _printed(value: float | None) -> str:
    if value is None:
        return "_"
    if math.isnan(value):
        return "NaN"
    return f"{'+' if value > 0 else '-'}Inf" if math.isinf(value) else f"{value:.6f}"


def check_fires(*alarms: str, before: Mapping[str, Scrape], after: Mapping[str, Scrape]) -> None:
    """Checks that all these alarms fire, and nothing did before. before, after: by the name of the service."""
    well = firing({name: [scrape, scrape._replace(at=scrape.at + 60)] for name, scrape in before.items()}, minutes=60)
    assert not well & set(alarms), well
    fired = firing({name: [scrape, after[name]] for name, scrape in before.items()})
    assert set(alarms) <= fired, fired
