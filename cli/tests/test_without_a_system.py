"""The command line without a running system, and with arguments that contradict each other."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from chassis.auth.identity import make_keys
from makeready_cli.system import is_alive
from testkit.processes import free_port

from .conftest import Run, Write

SERVICES = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")


@pytest.fixture
def dead_system(tmp_path: Path) -> Path:
    """The runtime.json of a system whose processes have all ended."""
    state = tmp_path / "state"
    make_keys(state / "identity", ["operator"])
    address = f"127.0.0.1:{free_port()}"
    gone = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(gone, 0)
    runtime = {
        "base_url": "http://127.0.0.1:1/api/v1",
        "admin_url": "http://127.0.0.1:2",
        "pid": gone,
        "state_dir": str(state),
        "operator_key_file": str(state / "identity" / "operator.jwk"),
        "processes": {
            "postgres": {"pid": gone, "port": 5432},
            **{name: {"pid": gone, "grpc": address, "metrics": address} for name in SERVICES},
        },
    }
    path = state / "runtime.json"
    path.write_text(json.dumps(runtime))
    return path


def test_where_nothing_runs_one_line_says_so(run: Run) -> None:
    for words in (("company", "list"), ("--json", "status"), ("sweep", "retention"), ("wait", "--timeout", "1")):
        status, out, err = run(*words)
        assert (status, out) == (1, "")
        assert err.startswith("makeready: Makeready is not running")
        assert err.count("\n") == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": "x"}', "\xff"])
def test_a_damaged_runtime_file_is_reported(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "runtime.json").write_text(text, encoding="latin-1")
    status, out, err = run("company", "list")
    assert (status, out) == (1, "")
    assert "is damaged" in err


@pytest.mark.usefixtures("dead_system")
def test_a_service_that_is_down_is_named(run: Run) -> None:
    status, out, err = run("company", "list")
    assert (status, out) == (1, "")
    assert err == "makeready: gateway does not answer; `makeready status` lists the running services.\n"
    status, _, err = run("webhooks", "deliveries", "1")
    assert status == 1
    assert "svc-webhooks does not answer" in err


@pytest.mark.usefixtures("dead_system")
def test_waiting_ends_in_time_and_says_what_is_behind(run: Run) -> None:
    status, out, err = run("--json", "wait", "--timeout", "0.3")
    assert (status, out) == (1, "")
    # A call to a service that is away is repeated, here until its time is over.
    assert all(f"{service} did not answer in time" in err for service in SERVICES)
    assert err.count("\n") == 1


@pytest.mark.usefixtures("dead_system")
@pytest.mark.parametrize("sweep", ["retention", "stale"])
def test_a_sweep_of_all_services_names_each_that_is_away(run: Run, sweep: str) -> None:
    status, out, err = run("--json", "sweep", sweep)
    assert (status, out) == (1, "")
    assert all(f"{service} does not answer" in err for service in SERVICES)
    assert err.count("\n") == 1 and err.endswith(".\n")


@pytest.mark.usefixtures("dead_system")
@pytest.mark.parametrize("sweep", ["retention", "stale"])
def test_a_sweep_ahead_of_the_clock_says_what_it_would_do_and_calls_nothing(run: Run, sweep: str) -> None:
    status, out, err = run("sweep", sweep, "--now", "2980-03-11T10:00:00+01:00")
    assert (status, out) == (1, "")
    assert "makeready: 2980-03-11T09:00:00.000000Z is " in err and " days ahead of the clock: the sweep " in err
    assert "in every company, and nothing undoes it" in err and "--yes-for-all-companies" in err
    assert "does not answer" not in err and err.count("\n") == 1
    status, out, err = run("sweep", sweep, "--now", "2980-03-11T10:00:00+01:00", "--yes-for-all-companies")
    assert status == 1 and "does not answer" in err


@pytest.mark.usefixtures("dead_system")
def test_status_shows_what_does_not_run(run: Run) -> None:
    status, out, _ = run("status", "--json")
    answer = json.loads(out)
    assert (status, answer["alive"], answer["serving"]) == (1, False, False)
    assert "svc-tickets does not run" in answer["faults"]
    assert answer["processes"]["postgres"]["alive"] is False
    assert answer["processes"]["gateway"]["health"] == "UNREACHABLE"
    status, out, _ = run("status")
    assert status == 1
    assert "NOT RUNNING" in out and "FAULT: svc-tickets does not run" in out


def test_a_missing_operator_key_is_reported(run: Run, dead_system: Path) -> None:
    (dead_system.parent / "identity" / "operator.jwk").unlink()
    status, _, err = run("company", "list")
    assert status == 1
    assert "holds no operator's key" in err


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("companies",),
        ("company",),
        ("company", "create"),
        ("company", "create", " "),
        ("company", "update", "0", "--active"),
        ("company", "update", "1", "--active", "--inactive"),
        ("company", "update", "1", "--ticket-stale-after-hours", "0"),
        ("company", "update", "9223372036854775808", "--active"),
        ("key", "mint", "1"),
        ("key", "mint", "1", "--scope", "admin"),
        ("key", "revoke", "٣"),
        ("import", "1", "leases", "a.csv"),
        ("import", "1", "tickets"),
        ("sweep", "webhooks", "--now", "2026-01-31"),
        ("sweep", "webhooks", "--now", "2026-01-31T12:00:00"),
        ("sweep", "retention", "--now", "2026-01-31"),
        ("sweep", "stale", "--now", "2026-01-31"),
        ("pm", "add", "1"),
        ("pm", "add", "1", "--property-id", "x", "--task-name", "Belts", "--due-date", "2026-01-31"),
        ("pm", "complete", "1"),
        ("pm", "complete", "1", "0"),
        ("pm", "list"),
        ("webhooks", "pause"),
        ("webhooks", "deliveries", "1", "--state", "lost"),
        ("webhooks", "deliveries", "1", "--limit", "0"),
        ("webhooks", "expiring", "1", "--within", "0"),
        ("webhooks", "event"),
        ("webhooks", "retry", "1"),
        ("webhooks", "retry", "x:0"),
        ("webhooks", "retry", "--all-parked", "x"),
        ("wait", "--timeout", "nan"),
        ("wait", "--time", "1"),
    ],
)
def test_arguments_that_make_no_sense_end_with_2(run: Run, words: tuple[str, ...]) -> None:
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert "usage:" in err


@pytest.mark.usefixtures("dead_system")
def test_an_update_of_nothing_is_a_misuse(run: Run) -> None:
    status, _, err = run("company", "update", "1")
    assert status == 2
    assert "at least one setting" in err


@pytest.mark.usefixtures("dead_system")
def test_a_retry_is_of_some_deliveries_or_of_all_that_are_parked(run: Run) -> None:
    for words in ((), ("x:1", "--all-parked", "1")):
        status, _, err = run("webhooks", "retry", *words)
        assert status == 2
        assert "either deliveries as EVENT_ID:SUB_ID or --all-parked" in err


@pytest.mark.usefixtures("dead_system")
def test_a_wrong_file_or_mapping_is_reported_before_anything_is_sent(run: Run, write: Write) -> None:
    good = str(write("a.csv", "external_id,name,address\n"))
    for words, complaint in (
        (("properties", "none.csv"), "none.csv can't be read: No such file or directory."),
        (("properties", str(write("b.csv", "external_id,name\n"))), 'b.csv lacks the column "address"'),
        (("properties", str(write("c.csv", ""))), "c.csv is empty"),
        (("properties", str(write("d.txt", "x"))), "must be named .csv or .jsonl"),
        (("properties", good, "--mapping", "none.toml"), "none.toml can't be read"),
        (("properties", good, "--rejects", good), "can't be the file that is imported"),
        (("properties", good), "gateway does not answer"),
    ):
        status, out, err = run("import", "1", *words)
        assert (status, out) == (1, "")
        assert complaint in err
        assert err.count("\n") == 1


@pytest.mark.usefixtures("dead_system")
def test_a_missing_password_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        status, _, err = run("administrator", "create", "1", "a@b.example", "--password-stdin")
    assert status == 1
    assert "no password on standard input" in err


@pytest.mark.parametrize(
    "words",
    [
        "",
        "company create",
        "company update",
        "company list",
        "company show",
        "company stale-tickets",
        "administrator create",
        "key mint",
        "key revoke",
        "key take-over",
        "key list",
        "key rotate",
        "key show",
        "key usage",
        "key requests",
        "audit list",
        "import",
        "webhooks list",
        "webhooks deliveries",
        "webhooks event",
        "webhooks pause",
        "webhooks resume",
        "webhooks rotate-secret",
        "webhooks parked",
        "webhooks expiring",
        "webhooks retry",
        "sweep webhooks",
        "sweep retention",
        "sweep stale",
        "pm add",
        "pm update",
        "pm complete",
        "pm cancel",
        "pm list",
        "wait",
        "status",
    ],
)
def test_every_command_explains_itself(run: Run, words: str) -> None:
    status, out, err = run(*words.split(), "--help")
    assert (status, err) == (0, "")
    assert out.startswith(f"usage: makeready {words}".rstrip())


def test_numbers_of_any_length_are_refused_in_a_phrase(run: Run) -> None:
    for words in (("key", "list", "9" * 5000), ("company", "update", "1", "--ticket-stale-after-hours", "9" * 5000)):
        status, _out, err = run(*words)
        assert status == 2
        assert err.splitlines()[-1].partition(": ")[2].endswith(("positive whole number", "from 1 to 8760"))


def test_a_folder_below_an_unknown_home_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEREADY_STATE_DIR", "~nobody-of-that-name/state")
    status, _out, err = run("status")
    assert (status, err.count("\n")) == (1, 1)
    assert "MAKEREADY_STATE_DIR" in err


def test_a_zombie_process_is_not_alive() -> None:
    ended = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
    try:
        assert not is_alive(ended)
        assert is_alive(os.getpid())
    finally:
        os.waitpid(ended, 0)
