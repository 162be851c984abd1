"""Changes that the last release can't live with turn a build red: each is made in a copy. The tree itself passes.

`test_migrations.py` and `test_expansion.py` have the rules for schemas, `make lint` runs the other two gates.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testkit import access_gate, settings_gate
from testkit.expansion import breakages
from testkit.plugin import PostgresServer
from testkit.schemas import listed, load, read, unexplained

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("chassis", "gateway", "console", "importing", "cli", "deploy/local", "svc-*")
# A receiver that the console shows to people; its setting is none of ours.
SHOWN = ROOT / "console/console/areas/webhooks/receiver.py"
NO_CACHES = shutil.ignore_patterns("__pycache__", "gen")
MIGRATION = """
from alembic import op

revision = "9999_bad"
down_revision = "{head}"
branch_labels = depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE ticket RENAME COLUMN room TO area")
    op.execute("ALTER TABLE ticket ADD wing text NOT NULL")
"""


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A program whose packages in `folder` come first."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-P", *words], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_tree_passes_and_every_exception_has_a_reason() -> None:
    assert settings_gate.problems(settings_gate.current()) == []
    assert access_gate.problems(access_gate.built(access_gate.PROTOS)) == []


async def test_a_migration_that_drops_what_the_release_reads_is_red(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "svc-tickets" / "svc_tickets", tmp_path / "svc_tickets", ignore=NO_CACHES)
    versions = tmp_path / "svc_tickets" / "migrations" / "versions"
    head = max(path.stem for path in versions.glob("0*.py"))
    (versions / "9999_bad.py").write_text(MIGRATION.format(head=head))
    url, released = (postgres_server.create_database(name) for name in ("bad", "released_tickets"))
    program = "from chassis.db import migrations; from svc_tickets.tables import metadata; import sys; "
    program += "migrations.migrate(sys.argv[1], 'svc_tickets', metadata)"
    done = await asyncio.to_thread(python, tmp_path, "-c", program, url)
    assert done.returncode == 0, done.stderr
    await load(released, (ROOT / "svc-tickets" / "schema" / "released.sql").read_text())
    sentences = breakages(await read(released), await read(url))
    allowed = listed("svc-tickets", "allowed")
    gone, new = "column ticket.room is gone", "column ticket.wing is new, takes no null and has no default"
    assert unexplained(sentences, allowed, {}) == [gone, new]
    assert unexplained(sentences, {**allowed, gone: "trust me"}, {})[0] == gone, "the release names it"
    assert unexplained(sentences, allowed, {gone: "unused since 0.2.0"}) == [new]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"MAKEREADY_CONNECTIONS_MAX", CONNECTIONS_MAX, 1,', '"MAKEREADY_CONNECTIONS_MAX", CONNECTIONS_MAX, 2000,', ""),
        ("=console_url(environment)", '=environment.url("MAKEREADY_LINKS_URL", ("https",))',
         "gateway: MAKEREADY_LINKS_URL becomes required"),
        ('_ring(environment, "MAKEREADY_TOTP_KEYS")', '_ring(environment, "MAKEREADY_OTHER_KEYS")',
         "gateway: MAKEREADY_OTHER_KEYS is new and required"),
        ('environment.integer("MAKEREADY_GATEWAY_PROCESSES", 1, 1, 1000)', "1",
         "gateway: MAKEREADY_GATEWAY_PROCESSES is not read any more"),
    ],
)  # fmt: skip
def test_a_setting_that_an_installation_lacks_is_red(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    shutil.copytree(ROOT / "gateway" / "gateway", tmp_path / "gateway", ignore=NO_CACHES)
    config = tmp_path / "gateway" / "config.py"
    assert config.read_text().count(old) == 1
    config.write_text(config.read_text().replace(old, new))
    done = python(tmp_path, "-m", "testkit.settings_gate")
    # The release has no such setting in the first case.
    assert done.returncode == (1 if sentence else 0), done.stderr
    assert sentence in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "sentences"),
    [
        ({"maximum": 10}, {"maximum": 9}, ["p: A accepts fewer values"]),
        ({"minimum": 0}, {"minimum": 1}, ["p: A accepts fewer values"]),
        ({"minimum": 1, "maximum": 5}, {"minimum": 0, "maximum": 6}, []),
        ({"schemes": ["nats", "tls"]}, {"schemes": ["tls"]}, ["p: A accepts no nats any more"]),
        ({"default": "a"}, {"default": "b"}, ["p: A has another default"]),
        ({"required": True}, {"default": "b"}, ["p: A has another default"]),
        ({}, None, ["p: A is not read any more"]),
    ],
)
def test_each_rule_of_settings(old: Mapping[str, Any], new: Mapping[str, Any] | None, sentences: list[str]) -> None:
    setting = {"kind": "text", "required": False}
    released = {"p": {"A": {**setting, **old}}}
    assert settings_gate.breakages(released, {"p": {} if new is None else {"A": {**setting, **new}}}, {}) == sentences
    assert settings_gate.breakages(released, {"p": {}}, {"A": "use B"}) == [], "the release said that it goes"
    assert settings_gate.breakages({}, {"new process": {"A": {**setting, "required": True}}}, {}) == []


RPCS = "makeready/identity/v1/identity.proto"
LIST_COMPANIES = "  rpc ListCompanies(ListCompaniesRequest) returns (ListCompaniesResponse) {\n"
READS = "    option idempotency_level = NO_SIDE_EFFECTS;\n"
OPERATOR = "    option (makeready.common.v1.allowed) = KIND_OPERATOR;\n"
STEP_UP = "    option (makeready.common.v1.step_up) = true;\n"
STAFF = OPERATOR.replace("OPERATOR", "STAFF")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (READS + OPERATOR, READS + STAFF, "does not allow KIND_OPERATOR any more"),
        (READS + OPERATOR, READS + OPERATOR + STEP_UP, "asks for a confirmation (step_up)"),
        (READS + OPERATOR, OPERATOR, "is not idempotent any more"),
        ("rpc ListCompanies(", "rpc ListAllCompanies(", "is gone"),
    ],
)
def test_an_rpc_that_refuses_callers_of_the_release_is_red(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    protos = tmp_path / "proto"
    shutil.copytree(access_gate.PROTOS, protos, ignore=NO_CACHES)
    file = protos / RPCS
    before, mark, after = file.read_text().partition(
        LIST_COMPANIES if old.startswith(" ") else "  // Lists all companies"
    )
    assert mark and old in after
    file.write_text(before + mark + after.replace(old, new, 1))
    sentences = access_gate.problems(access_gate.built(protos))
    assert sentences == [f"makeready.identity.v1.CompaniesService.ListCompanies {sentence}"]


def test_a_field_that_goes_is_red(tmp_path: Path) -> None:
    protos = tmp_path / "proto"
    shutil.copytree(access_gate.PROTOS, protos, ignore=NO_CACHES)
    file = protos / RPCS
    text, count = re.subn(r"(?m)^  string timezone = 2\b[^;]*;\n", "", file.read_text(), count=1)
    assert count == 1
    file.write_text(text)
    buf = Path(sys.executable).with_name("buf")
    words = [str(word) for word in (buf, "breaking", protos, "--against", access_gate.PROTOS / "released.binpb")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "timezone" in done.stdout


def test_every_setting_is_in_the_handbook_and_no_other() -> None:
    name = r"(?:MAKEREADY|WEBHOOKS)_[A-Z_]*[A-Z]"
    read = {name for settings in settings_gate.current().values() for name in settings}
    quoted = {
        match
        for project in PRODUCT
        for path in ROOT.glob(f"{project}/*/**/*.py")
        if "tests" not in path.parts and path != SHOWN
        for match in re.findall(f'"({name})"', path.read_text())
    }
    # Such as MAKEREADY_TLS, before _CERT_FILE and _KEY_FILE.
    prefixes = {short for short in quoted if any(whole.startswith(f"{short}_") for whole in read)}
    handbook = set(re.findall(name, (ROOT / "docs/operations.md").read_text().split("\n## Settings\n")[1]))
    assert handbook == (quoted - prefixes) | read
