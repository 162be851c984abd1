"""The names in deploy/README.md exist: files, Secrets and their keys, metrics."""

import re
from pathlib import Path

from .manifests import Bundle

ROOT = Path(__file__).parents[3]
HANDBOOK = (ROOT / "deploy/README.md").read_text()
SOURCES = ("chassis", "gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")


def test_every_metric_of_the_handbook_is_in_the_code() -> None:
    code = {
        name
        for project in SOURCES
        for path in (ROOT / project).rglob("*.py")
        if "tests" not in path.parts
        for name in re.findall(r'"(makeready_[a-z_]+)"', path.read_text())
    }
    named = set(re.findall(r"\bmakeready_[a-z_]+", HANDBOOK))
    assert named
    assert named - code == set()


def test_the_table_of_secrets_is_what_the_example_makes(as_read: Bundle) -> None:
    rows = re.findall(r"^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \| (.+) \|$", HANDBOOK.split("## The ingress")[0], re.MULTILINE)
    environment = {
        name: set(re.findall(r"`([a-z.-]+)`", keys.split(";")[0]))
        for names, keys in rows
        for name in re.findall(r"`([a-z-]+)`", names)
        if name not in ("base", "base/bootstrap", "base/migrations", "base/operator")
    }
    made = {
        manifest["metadata"]["name"]: set(as_read.values("Secret", manifest["metadata"]["name"]))
        for manifest in as_read.of("Secret")
    }
    (ingress,) = as_read.of("Ingress")
    given = {entry["secretName"]: {"tls.crt", "tls.key"} for entry in ingress["spec"]["tls"]}
    assert environment == made | given


def test_files_of_the_handbook_exist() -> None:
    example = ROOT / "deploy/k8s/overlays/example"
    for name in re.findall(r"-k ([a-z./]+)", HANDBOOK):
        assert (example / name.rstrip(".") / "kustomization.yaml").exists(), name
    assert (example / "../../make_secrets.py").exists()
