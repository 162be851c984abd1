"""Commands of the back office: each is its RPC, field by field; an actor who may not call it is refused before a
request is sent."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor

import makeready
from makeready.catalog.v1 import meter_commands_pb2, place_commands_pb2, places_pb2
from makeready.common.v1 import options_pb2
from makeready.common.v1.audit_pb2 import ListAuditRequest
from makeready.common.v1.documents_pb2 import Document
from makeready.identity.v1 import staff_commands_pb2
from makeready.occupancy.v1 import residency_commands_pb2
from makeready_cli.errors import CommandError, UsageError
from makeready_cli.output import labels
from makeready_cli.program import parser
from makeready_cli.rpc.actor import actor_of
from makeready_cli.rpc.arguments import CLEAR, COMPANY, IDEMPOTENCY_KEY, request_of
from makeready_cli.rpc.command import RpcCommand
from makeready_cli.rpc.rendering import record_of, text_of
from testkit.gateways import Gateway, Operator
from testkit.processes import free_port

from .conftest import Run

PLACES = place_commands_pb2.DESCRIPTOR.services_by_name["PlaceCommandsService"].methods_by_name
METERS = meter_commands_pb2.DESCRIPTOR.services_by_name["MeterCommandsService"].methods_by_name


def leaves(tree: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in tree._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action.choices.values():
                yield from leaves(choice)
    if tree.get_default("run") is not None:
        yield tree


def is_derived(command: argparse.ArgumentParser) -> bool:
    """Whether every field of its RPC's request is an argument, exactly as the contract declares it."""
    rpc_command: RpcCommand | None = command.get_default("rpc_command")
    return rpc_command is not None and not (
        rpc_command.settings or rpc_command.hidden or rpc_command.next_fields or rpc_command.run
    )


TREE = parser()  # a tree takes 40 ms to build
LEAVES = list(leaves(TREE))
DERIVED = [command for command in LEAVES if is_derived(command)]
ACTING = [command for command in LEAVES if command.get_default("rpc") is not None]


def named(command: argparse.ArgumentParser) -> str:
    return command.prog.removeprefix("makeready ")


def given(field: FieldDescriptor) -> str:
    """A valid value for the field's argument."""
    if field.enum_type is not None:
        return next(iter(labels(field.enum_type).values()))
    if field.message_type is not None:
        return "2026-01-31T12:00:00Z"
    return "7" if field.cpp_type != FieldDescriptor.CPPTYPE_STRING else "some words"


def words_of(command: argparse.ArgumentParser, whole: bool) -> list[str]:
    """Arguments of the command: all of them, or the required ones."""
    fields = command.get_default("rpc_command").rpc.input_type.fields_by_name
    words = []
    for action in command._actions:
        if isinstance(action, argparse._HelpAction | argparse._StoreTrueAction) or action.dest == CLEAR:
            continue
        if action.dest == "on_behalf_of" and not action.required:
            continue
        if not (whole or action.required):
            continue
        if action.dest == "on_behalf_of":
            value = "ada@example.com"
        else:
            value = "7" if action.dest == COMPANY else given(fields[action.dest])
        if not action.option_strings:
            words.append(value)
        elif isinstance(action, argparse.BooleanOptionalAction):
            words.append(action.option_strings[0])
        else:
            words += [action.option_strings[0], value]
    return words


@pytest.mark.parametrize("command", DERIVED, ids=named)
def test_each_field_of_the_request_is_an_argument_and_what_it_always_has_is_required(
    command: argparse.ArgumentParser,
) -> None:
    rpc: MethodDescriptor = command.get_default("rpc_command").rpc
    fields = dict(rpc.input_type.fields_by_name)
    arguments = {action.dest: action for action in command._actions}
    assert fields.keys() <= arguments.keys()
    for name, field in fields.items():
        may_lack = (
            field.has_presence
            or field.is_repeated
            or field.cpp_type == FieldDescriptor.CPPTYPE_BOOL
            or name == IDEMPOTENCY_KEY
        )
        assert arguments[name].required == (not may_lack), name
    whole = command.parse_args(words_of(command, whole=True))
    request = request_of(rpc, whole)
    set_fields = {field.name for field, _ in request.ListFields()}
    zero = {name for name, field in fields.items() if field.enum_type is not None}
    assert set_fields | zero | {CLEAR} >= fields.keys()
    command.parse_args(words_of(command, whole=False))


@pytest.mark.parametrize("command", ACTING, ids=named)
def test_help_names_the_company_every_place_and_who_may_act(
    command: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.parse_args(["--help"])
    help_text = " ".join(capsys.readouterr().out.split())
    allowed = set(command.get_default("rpc").GetOptions().Extensions[options_pb2.allowed])
    assert ("or staff:ID" in help_text) == (options_pb2.KIND_STAFF in allowed)
    assert ("(default: the operator)" in help_text) == (options_pb2.KIND_OPERATOR in allowed)
    assert help_text.count("_UNSPECIFIED") == 0


def parsed(*words: str) -> argparse.Namespace:
    return TREE.parse_args(words)


def test_a_refused_actor_sees_which_kinds_are_allowed() -> None:
    with pytest.raises(CommandError) as refused:
        actor_of(parsed("property", "add", "1", "--name", "n", "--address", "a", "--as", "staff:3"))
    assert str(refused.value) == "A member of staff may not do this; the operator and administrators may."
    record = ("reading", "record", "1", "2", "--period-start", "x", "--period-end", "y", "--consumption", "-1")
    assert actor_of(parsed(*record, "--as", "staff:3")) == ("", 3)
    assert actor_of(parsed(*record, "--as", "ada@example.com")) == ("ada@example.com", 0)
    assert actor_of(parsed(*record)) is None
    assert actor_of(parsed("company", "list")) is None
    # A filter by actor is not the actor.
    filtered = parsed("audit", "list", "1", "--actor", "administrator:7", "--as", "staff:3")
    assert (actor_of(filtered), filtered.actor) == (("", 3), "administrator:7")
    assert actor_of(parsed("audit", "list", "1", "--actor", "administrator:7")) is None


def test_what_a_contract_says_about_a_field_is_the_help_of_its_argument() -> None:
    """No phrase of a contract is read by nobody, and none is said otherwise than where a command has a reason."""
    used: set[str] = set()
    for command in LEAVES:
        rpc_command: RpcCommand | None = command.get_default("rpc_command")
        arguments = {action.dest: action for action in command._actions}
        if rpc_command is None:  # more than one RPC: it takes some of their fields
            texts = {(action.dest, action.help) for action in command._actions}
            used |= {field.full_name for field in every_field() if (field.name, described(field)[0]) in texts}
            continue
        for name, field in rpc_command.fields.items():
            phrase, is_positional = described(field)
            if name in arguments and (phrase or is_positional):
                used.add(field.full_name)
                assert str(arguments[name].help).startswith(phrase) or "help" in rpc_command.settings[name]
                assert is_positional == (not arguments[name].option_strings)
    assert {field.full_name for field in every_field() if any(described(field))} == used


def described(field: FieldDescriptor) -> tuple[str, bool]:
    options = field.GetOptions().Extensions
    return options[options_pb2.help], options[options_pb2.positional]


def every_field() -> Iterator[FieldDescriptor]:
    """The fields of all messages of the contracts."""
    for folder in (folder for root in makeready.__path__ for folder in Path(root).glob("*/v1")):
        for file in folder.glob("*_pb2.py"):
            module = importlib.import_module(f"makeready.{folder.parent.name}.v1.{file.stem}")
            for message in module.DESCRIPTOR.message_types_by_name.values():
                yield from message.fields


@pytest.mark.parametrize("who", ["", "ada", "staff:", "staff:0", "staff:x", "staff:-1", "administrator:1"])
def test_who_acts_is_an_email_or_a_member_of_staff(who: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed("staff", "list", "1", "--as", who)
    assert ended.value.code == 2
    assert "--as: must be" in capsys.readouterr().err


def test_values_reach_the_request_typed() -> None:
    words = ["--location", "Roof", "--location-type", "exterior", "--status", "Needs Service", "--year", "1999"]
    arguments = parsed("asset", "update", "1", "2", *words, "--clear", "serial-number", "--clear", "asset_tag")
    request = request_of(PLACES["UpdateAsset"], arguments)
    assert len(request.idempotency_key) == 32, "one of its own"
    request.ClearField(IDEMPOTENCY_KEY)
    assert request == place_commands_pb2.UpdateAssetRequest(
        asset_id=2,
        location="Roof",
        location_type=place_commands_pb2.LOCATION_TYPE_EXTERIOR,
        status=places_pb2.ASSET_STATUS_NEEDS_SERVICE,
        year=1999,
        clear=["serial_number", "asset_tag"],
    )
    arguments = parsed("meter", "update", "1", "2", "--no-is-active", "--idempotency-key", "mine")
    assert request_of(METERS["UpdateMeter"], arguments) == meter_commands_pb2.UpdateMeterRequest(
        idempotency_key="mine", meter_id=2, is_active=False
    )


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["property", "add", "1", "--name", "n"], "--address"),
        (["property", "add", "x", "--name", "n", "--address", "a"], "COMPANY_ID: must be a positive whole number"),
        (["unit", "add", "1", "--property-id", "0", "--name", "n"], "--property-id: must be a positive whole number"),
        (["unit", "update", "1", "2", "--bedrooms", "two"], "--bedrooms: must be a whole number"),
        (["unit", "update", "1", "2", "--bedrooms", "2147483648"], "--bedrooms: must be a whole number"),
        (["unit", "update", "1", "2", "--bathrooms", "nan"], "--bathrooms: must be a number"),
        (["unit", "update", "1", "2", "--clear", "nonsense"], "--clear: invalid choice: 'nonsense' (choose from"),
        (["asset", "update", "1", "2", "--status", "Broken"], "invalid choice: 'Broken' (choose from 'Active'"),
        (["unit", "update", "1", "2", "--unit-status", "Down"], "unrecognized arguments"),
    ],
)
def test_bad_arguments_are_named(run: Run, words: list[str], fault: str) -> None:
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert fault in " ".join(err.split())


def test_a_change_of_nothing_is_misuse() -> None:
    with pytest.raises(UsageError):
        request_of(PLACES["UpdateUnit"], parsed("unit", "update", "1", "2"))


def test_a_record_that_is_all_of_a_response_stands_for_itself() -> None:
    document = Document(json=b'{"entity_id": 3, "name": "x"}', entity_id=3)
    assert record_of(place_commands_pb2.AddUnitResponse(document=document)) == {"entity_id": 3, "name": "x"}
    member = staff_commands_pb2.Staff(staff_id=4, name="Ada", source="staff")
    member.created_at.FromJsonString("2026-01-31T12:00:00Z")
    alone = record_of(staff_commands_pb2.AddStaffResponse(staff=member))
    assert alone == {
        "staff_id": 4,
        "name": "Ada",
        "email": None,
        "title": None,
        "external_id": None,
        "created_at": "2026-01-31T12:00:00.000000Z",
        "source": "staff",
        "active": False,
        "invited": False,
        "last_sign_in_at": None,
    }
    listed = record_of(staff_commands_pb2.ListStaffResponse(staff=[member], next_after_id=4))
    assert listed == {"staff": [alone], "next_after_id": 4}
    text = text_of(listed)
    assert text.splitlines()[0].split() == [name.upper() for name in alone]
    assert text.endswith("\nMore with --after-id 4.")
    assert text_of({"staff": [], "next_after_id": None}) == "No staff."


def test_a_table_shows_no_escapes_and_cuts_what_is_long() -> None:
    text = text_of({"name": "a\x1b[31mb", "note": "x" * 100, "is_active": True, "unit": {"name": "204"}, "area": None})
    assert "\x1b" not in text and "x" * 59 + "…" in text
    assert [line.split()[-1] for line in text.splitlines()[3:]] == ["yes", "204", "-"]


# Over a real gateway


class Shell:
    """Runs commands as a program does, all in one process: each start of one takes 0.6 s of CPU."""

    def __init__(self, folder: Path, gateway: Gateway, keys: Path) -> None:
        nobody = f"127.0.0.1:{free_port()}"
        system = {
            "base_url": "http://127.0.0.1:1/api/v1",
            "admin_url": "http://127.0.0.1:2",
            "pid": os.getpid(),
            "operator_key_file": str(keys / "operator.jwk"),
            "processes": {"gateway": {"grpc": gateway.grpc_target}, "svc-catalog": {"grpc": nobody}},
        }
        (folder / "runtime.json").write_text(json.dumps(system))
        command = [sys.executable, "-P", "-m", "makeready_local.demo_data.console"]
        environment = os.environ | {"MAKEREADY_STATE_DIR": str(folder)}
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    async def __call__(self, *words: str, stdin: bytes = b"") -> tuple[int, Any, str]:
        """Returns the exit status, the output of `--json`, and the line on standard error."""
        assert self.process.stdin is not None and self.process.stdout is not None
        request = json.dumps({"words": words, "input": stdin.decode()}).encode() + b"\n"
        self.process.stdin.write(request)
        self.process.stdin.flush()
        answer = json.loads(await asyncio.wait_for(asyncio.to_thread(self.process.stdout.readline), 60))
        out, err = answer["out"], answer["err"]
        assert "Traceback" not in err
        return answer["status"], json.loads(out) if out else None, err


@pytest.fixture
def shell(tmp_path: Path, gateway: Gateway, identity_keys: Path) -> Iterator[Shell]:
    running = Shell(tmp_path, gateway, identity_keys)
    with running.process:
        yield running
        running.process.kill()


async def test_an_administrator_keeps_the_staff_from_the_command_line(
    shell: Shell, operator: Operator, company_id: int
) -> None:
    email, company = await operator.administrator(company_id), str(company_id)
    add = ("staff", "add", company, "--name", "Ada", "--as", email, "--idempotency-key", "once")
    status, ada, err = await shell(*add)
    assert (status, err, ada["name"], ada["source"]) == (0, "", "Ada", "staff")
    assert await shell(*add) == (0, ada, ""), "once, however often it is sent"
    status, _, err = await shell("staff", "add", company, "--name", "Bo", "--as", email, "--idempotency-key", "once")
    assert status == 1 and "already used with a different request" in err
    status, changed, _ = await shell("staff", "update", company, str(ada["staff_id"]), "--title", "Super")
    assert changed == ada | {"title": "Super"}
    assert (await shell("staff", "list", company))[1] == {"staff": [changed], "next_after_id": None}
    assert [entry[:3] for entry in await operator_entries(operator, company_id)] == [
        ("staff.added", ada["staff_id"], True),
        ("staff.updated", ada["staff_id"], False),
    ]


async def operator_entries(operator: Operator, company_id: int) -> list[tuple[str, int, bool]]:
    """For each entry about staff: the action, the member's id, and whether an administrator did it."""
    answer = await operator("ListAudit", ListAuditRequest(subject="staff", limit=200), company_id)
    assert all(len(entry.request_id) == 24 for entry in answer.entries), "a command's own request id"
    return [(entry.action, entry.subject_id, entry.actor != "operator") for entry in reversed(answer.entries)]


async def test_links_and_accounts_from_the_command_line(shell: Shell, operator: Operator, company_id: int) -> None:
    boss, company = await operator.administrator(company_id), str(company_id)
    status, link, err = await shell("administrator", "link", boss)
    assert (status, err, link["purpose"], link["email"]) == (0, "", "invitation", boss)
    assert "/invitations/" in link["url"]
    new = f"new-{company_id}@example.com"
    status, invitation, _ = await shell("administrator", "invite", company, new, "--name", "Nia Cole", "--as", boss)
    assert invitation["administrator"]["email"] == new and "/invitations/" in invitation["link"]["url"]
    who = str(invitation["administrator"]["administrator_id"])
    assert (await shell("administrator", "update", company, who, "--name", "Nia King"))[1]["name"] == "Nia King"
    assert not (await shell("administrator", "deactivate", company, who))[1]["active"]
    assert (await shell("administrator", "link", new))[0] == 1
    assert (await shell("administrator", "reactivate", company, who))[1]["active"]
    listed = (await shell("administrator", "list", company))[1]["administrators"]
    assert [listed_administrator["email"] for listed_administrator in listed] == [boss, new]

    _, ada, _ = await shell("staff", "add", company, "--name", "Ada", "--email", f"ada-{company_id}@example.com")
    ada_id = str(ada["staff_id"])
    assert (await shell("staff", "link", ada["email"]))[0] == 1, "not invited yet"
    _, invitation, _ = await shell("staff", "invite", company, ada_id, "--as", boss)
    assert invitation["staff"]["invited"] and invitation["link"]["purpose"] == "invitation"
    assert (await shell("staff", "link", ada["email"]))[1]["url"] != invitation["link"]["url"]

    words = b"three purple otters juggle\n"
    changed = await shell("account", "change-password", company, "--as", f"staff:{ada_id}", stdin=words)
    assert changed == (0, {"sessions_ended": 0}, "")
    assert (await shell("account", "show", company, "--as", f"staff:{ada_id}"))[1]["has_password"]
    assert (await shell("staff", "link", ada["email"]))[1]["purpose"] == "reset"
    assert (await shell("account", "sessions", company, "--as", boss))[1] == {"sessions": []}
    assert (await shell("account", "end-session", company, "--all", "--as", boss))[1] == {"sessions_ended": 0}
    assert (await shell("account", "enrol-totp", company, "--as", boss))[1]["uri"].startswith("otpauth://totp/")
    status, _, err = await shell("account", "confirm-totp", company, "000000", "--as", boss)
    assert status == 1 and "not the app's code" in err
    assert not (await shell("staff", "end", company, ada_id))[1]["active"]
    assert (await shell("staff", "reinstate", company, ada_id))[1]["active"]
    named = (await shell("audit", "actors", company, "--actor", f"staff:{ada_id}", "--actor", "operator"))[1]
    (actor,) = named["actors"]
    assert actor["actor"] == f"staff:{ada_id}" and actor["name"] == "Ada" and actor["active"] is True
    required = (await shell("company", "update", company, "--second-factor-required"))[1]
    assert required["second_factor_required"] is True


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("staff", "list", "COMPANY", "--as", "nobody@example.com"), "No administrator of that company has that email"),
        (("staff", "list", "999999999"), "No company has that id; `makeready company list` shows them."),
        (("staff", "update", "COMPANY", "999999999", "--name", "x"), "The company has no member of staff with that id"),
        (("reading", "record", "COMPANY", "1", "--period-start", "2026-01-01", "--period-end", "2026-02-01",
          "--consumption", "-1", "--as", "staff:999999999"), "No member of that company's staff has that id."),
    ],
)  # fmt: skip
async def test_what_is_not_there_is_one_line(
    shell: Shell, company_id: int, words: tuple[str, ...], sentence: str
) -> None:
    status, out, err = await shell(*(str(company_id) if word == "COMPANY" else word for word in words))
    assert (status, out) == (1, None)
    assert err.startswith(f"makeready: {sentence}") and err.count("\n") == 1


async def test_without_an_answer_it_says_how_to_do_it_once_all_the_same(shell: Shell, company_id: int) -> None:
    words = ("property", "add", str(company_id), "--name", "n", "--address", "a")
    status, _, err = await shell(*words, "--idempotency-key", "mine")
    assert status == 1
    assert err == (
        "makeready: svc-catalog does not answer; `makeready status` lists the running services."
        " To do it once all the same, repeat it with --idempotency-key mine.\n"
    )
    assert "--idempotency-key mine" not in (await shell(*words))[2]


def test_a_part_of_a_request_is_a_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    rpc = residency_commands_pb2.DESCRIPTOR.services_by_name["ResidencyCommandsService"].methods_by_name["AddMoveIn"]
    words = ["turn", "move-in", "2", "17", "--move-in-date", "2026-01-01", "--lease-start-date", "2026-01-01"]
    parties = ['{"first_name": "Ana", "last_name": "Ortiz", "role": "leaseholder"}', '{"first_name": "Ben"}']
    arguments = TREE.parse_args([*words, *(word for party in parties for word in ("--party", party))])
    request = request_of(rpc, arguments)
    assert [(party.first_name, party.role) for party in request.parties] == [("Ana", "leaseholder"), ("Ben", "")]
    for wrong in ("Ana", '{"name": "Ana"}', '{"first_name": 7}', "[]"):
        with pytest.raises(SystemExit):
            TREE.parse_args([*words, "--party", wrong])
        assert "a JSON object with texts, and these keys only: first_name" in capsys.readouterr().err
