"""What the command line does for people: a default company, suggestions, one line after an act, completion, CSV."""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import io
import json
import shutil
import string
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor

from makeready.tickets.v1 import ticket_commands_pb2
from makeready_cli.csv_text import csv_of
from makeready_cli.output import table
from makeready_cli.program import parser
from makeready_cli.rpc.command import RpcCommand
from makeready_cli.rpc.confirmations import SENTENCES, confirmation

from .conftest import Run
from .test_rpc_commands import LEAVES, named

SCHEMAS = Path(__file__).resolve().parents[2] / "proto" / "makeready"
TICKETS = ticket_commands_pb2.DESCRIPTOR.services_by_name["TicketCommandsService"].methods_by_name
# The record of each document that an act answers with, by the group of its command.
RECORDS = {
    "ticket": ("tickets", "Ticket"),
    "property": ("catalog", "Property"),
    "unit": ("catalog", "Unit"),
    "asset": ("catalog", "Asset"),
    "meter": ("catalog", "Meter"),
    "reading": ("catalog", "Reading"),
    "vendor": ("catalog", "Vendor"),
    "inspection": ("catalog", "Inspection"),
    "turn": ("occupancy", "Turn"),
}


@pytest.fixture(autouse=True)
def no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAKEREADY_COMPANY", raising=False)


@pytest.mark.parametrize(
    "words",
    [
        ("ticket", "assign", "41", "--assignee-id", "3"),
        ("ticket", "assign", "--assignee-id", "3", "41"),
        ("--json", "ticket", "assign", "41", "--assignee-id", "3"),
        ("ticket", "assign", "7", "41", "--assignee-id", "3"),
        ("ticket", "assign", "--assignee-id", "3", "7", "41"),
    ],
)
def test_a_company_that_is_not_named_is_the_default_one(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MAKEREADY_COMPANY", "7")
    arguments = parser().parse_args(words)
    assert (arguments.company_id, arguments.ticket_id, arguments.assignee_id) == (7, 41, 3)


def test_a_company_that_is_named_counts_whatever_the_default_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for default in ("9", "nonsense"):
        monkeypatch.setenv("MAKEREADY_COMPANY", default)
        assert parser().parse_args(["staff", "list", "7"]).company_id == 7
        assert parser().parse_args(["import", "7", "staff", "a.csv"]).company_id == 7
    monkeypatch.setenv("MAKEREADY_COMPANY", "9")
    assert parser().parse_args(["import", "staff", "a.csv"]).company_id == 9
    assert parser().parse_args(["company", "show"]).company_id == 9


@pytest.mark.parametrize(
    ("words", "default", "suggestion"),
    [
        (("tikcet", "list", "1"), "", "Did you mean ticket?"),
        (("ticket", "asign", "1", "41"), "", "Did you mean assign?"),
        (("ticket", "assign", "1", "41", "--asignee-id", "3"), "", "--asignee-id 3. Did you mean --assignee-id?"),
        (("ticket", "assign", "41", "--asignee-id=3"), "1", "Did you mean --assignee-id?"),
        (("ticket", "status", "1", "41", "--staus", "Open"), "", "Did you mean --status?"),
        (("ticket", "status", "1", "41", "--status", "Opne"), "", "Did you mean Open?"),
        (("staff", "list"), "", "are required: COMPANY_ID (MAKEREADY_COMPANY can name the company)"),
        (
            ("staff", "list"),
            "Northside",
            "MAKEREADY_COMPANY must be a company's id; `makeready company list` shows them",
        ),
        (("ticket", "comment", "41"), "1", "the following arguments are required: --body"),
        (("completion", "tcsh"), "", "invalid choice: 'tcsh' (choose from 'bash', 'zsh', 'fish')"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], default: str, suggestion: str
) -> None:
    if default:
        monkeypatch.setenv("MAKEREADY_COMPANY", default)
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert suggestion in " ".join(err.split()) and "usage:" in err


def test_nothing_is_suggested_for_a_word_that_is_like_no_other(run: Run) -> None:
    assert "Did you mean" not in run("xyzzy")[2] + run("ticket", "list", "1", "--xyzzy", "3")[2]


def test_the_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version") == (0, f"makeready {importlib.metadata.version('makeready-cli')}\n", "")


def test_a_shell_completes_commands_options_and_values(run: Run, tmp_path: Path) -> None:
    scripts = {}
    for shell in ("bash", "zsh", "fish"):
        status, scripts[shell], err = run("completion", shell)
        assert (status, err) == (0, "")
        assert all(word in scripts[shell] for word in ("ticket", "photograph", "assignee-id", "On Hold")), shell
    script = tmp_path / "makeready.bash"
    script.write_text(scripts["bash"])
    asks = {
        "makeready tic": {"ticket"},
        "makeready ticket ass": {"assign"},
        "makeready ticket assign 1 2 --assi": {"--assignee-id"},
    }
    for line, expected in asks.items():
        words = line.split()
        completion = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}"
        answer = f"_shtab_makeready makeready {words[-1]} {words[-2]}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        call = f"source {script}; {completion}; {answer}"
        bash = shutil.which("bash")
        assert bash
        done = subprocess.run([bash, "-c", call], capture_output=True, text=True, timeout=20, check=True)
        assert set(done.stdout.split()) == expected, (line, done)


def fields_of(command: argparse.ArgumentParser) -> set[str]:
    """The fields of what an act answers with, as `--json` prints it."""
    rpc_command: RpcCommand = command.get_default("rpc_command")
    output: Descriptor = rpc_command.rpc.output_type
    inner = [field.message_type for field in output.fields if field.message_type is not None]
    if len(output.fields) == 1 and inner:
        output = inner[0]
    if output.name != "Document":
        return set(output.fields_by_name)
    context, record = RECORDS[named(command).split()[0]]
    return set(schemas(context)[record]["properties"])


def schemas(context: str) -> dict[str, dict[str, dict[str, object]]]:
    schemas_by_file: dict[str, dict[str, dict[str, object]]] = json.loads(
        (SCHEMAS / context / "v1" / "records.json").read_text()
    )["$defs"]
    return schemas_by_file


def acts() -> Iterator[argparse.ArgumentParser]:
    for command in LEAVES:
        rpc_command: RpcCommand | None = command.get_default("rpc_command")
        # The answer of enrol-totp is a secret, which is shown only now.
        is_act = (
            rpc_command is not None
            and not (rpc_command.is_read or rpc_command.answer or rpc_command.run)
            and rpc_command.name != "enrol-totp"
        )
        if is_act:
            yield command


@pytest.mark.parametrize("command", list(acts()), ids=named)
def test_every_act_ends_with_one_line_of_what_its_answer_has(command: argparse.ArgumentParser) -> None:
    rpc = command.get_default("rpc_command").rpc
    if "recovery" in named(command) or ("totp" in named(command) and "remove" not in named(command)):
        return  # they answer with what is shown only now
    assert rpc.name in SENTENCES, f"write the line of {rpc.name} in cli/makeready_cli/rpc/confirmations.py"
    sentence = SENTENCES[rpc.name]
    if isinstance(sentence, str):
        used = {name.partition("[")[0] for _, name, _, _ in string.Formatter().parse(sentence) if name}
        assert used <= fields_of(command), rpc.name


def test_the_line_names_people_and_the_record() -> None:
    ticket = {
        "entity_id": 41,
        "title": "Tap \x1b[2Jdrips",
        "assignee": {"id": 3, "name": "Ana Ruiz"},
        "assigned_vendor": None,
    }
    assert confirmation(TICKETS["AssignTicket"], ticket) == "Ticket 41 is assigned to Ana Ruiz."
    both = {**ticket, "assigned_vendor": {"id": 6, "name": "Lakeside"}}
    assert confirmation(TICKETS["AssignTicket"], both) == "Ticket 41 is assigned to Ana Ruiz and Lakeside."
    neither = {**ticket, "assignee": None}
    assert confirmation(TICKETS["AssignTicket"], neither) == "Ticket 41 is assigned to nobody."
    assert confirmation(TICKETS["OpenTicket"], ticket) == 'Ticket 41, "Tap \\x1b[2Jdrips", is open.'


def test_csv_has_a_header_every_column_and_no_formula() -> None:
    rows = [
        {
            "unit_id": 7,
            "name": "=1+1",
            "property": {"id": 5, "name": 'Elm "Court"'},
            "units": [{"count": 2}],
            "ready": None,
        },
        {"unit_id": 8, "name": "a,b", "property": {"id": 0, "name": ""}, "units": [], "ready": True, "cost": -1.5},
    ]
    text = csv_of(["unit_id"], rows)
    assert list(csv.reader(io.StringIO(text))) == [
        ["unit_id", "name", "property_id", "property", "units", "ready", "cost"],
        ["7", "'=1+1", "5", 'Elm "Court"', '[{"count": 2}]', "", ""],
        ["8", "a,b", "", "", "[]", "true", "-1.5"],
    ]
    assert csv_of(["unit_id", "name"], []) == "unit_id,name"
    hostile = [{"name": "\uff1d1+1", "note": "Hello\n=cmd|' /C calc'!A0", "said": {"text": "-1"}}]
    (row,) = csv.DictReader(io.StringIO(csv_of([], hostile)))
    assert (row["name"], row["note"], row["said"]) == ("'\uff1d1+1", "Hello\n'=cmd|' /C calc'!A0", '{"text": "-1"}')


def test_columns_of_wide_signs_stand_side_by_side() -> None:
    lines = table(("NAME", "CITY"), [("桜コート", "Fort Lee"), ("é", "Paris")], "").splitlines()
    assert lines[1] == "桜コート  Fort Lee" and lines[2] == "é         Paris"


def test_a_list_is_either_csv_or_json(run: Run) -> None:
    status, _, err = run("ticket", "list", "1", "--csv", "--json")
    assert status == 2 and "give either --csv or --json" in err
