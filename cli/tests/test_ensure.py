"""`makeready company ensure` over a real gateway: what it makes, what it leaves, and how it goes on after a kill."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from makeready.identity.v1 import administrators_pb2
from makeready.identity.v1 import identity_pb2 as pb
from makeready_cli import calls, program
from makeready_cli.errors import CommandError
from makeready_cli.output import Answer
from testkit.clocks import today
from testkit.gateways import Gateway, Operator
from testkit.raw_http import Api

Ensure = Callable[..., Awaitable[Answer]]

HOUSE = """
companies:
  - external_id: {name}
    name: Northside Homes
    timezone: America/Chicago
    second_factor_required: false
    administrators:
      - email: Ana@{name}.example
        name: Ana Ruiz
      - email: bo@{name}.example
    keys:
      - name: sync
        scope: write
        administrator: ana@{name}.example
      - name: dashboard.v2
        scope: read
        expires_at: {expires_at}
"""


def house(name: str) -> str:
    """The file of a company. A key ends in five years: one may end in ten at most."""
    return HOUSE.format(name=name, expires_at=f"{today().year + 5}-01-01T00:00:00+01:00")


@pytest.fixture
def api(gateway: Gateway) -> Api:
    return Api(gateway.api_port)


class KilledError(BaseException):
    """The process ends here."""


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """An external id of the test's own."""
    return re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[-40:].strip("-")


@pytest.fixture
def ensure(tmp_path: Path, gateway: Gateway, identity_keys: Path, monkeypatch: pytest.MonkeyPatch) -> Ensure:
    """Runs the command with a file of this text."""
    system = {
        "base_url": "http://127.0.0.1:1/api/v1",
        "admin_url": "http://127.0.0.1:2",
        "pid": os.getpid(),
        "operator_key_file": str(identity_keys / "operator.jwk"),
        "processes": {"gateway": {"grpc": gateway.grpc_target}},
    }
    (tmp_path / "runtime.json").write_text(json.dumps(system))
    monkeypatch.setenv("MAKEREADY_STATE_DIR", str(tmp_path))
    tree = program.parser()

    async def run(text: str, *words: str, keys: bool = True) -> Answer:
        path = tmp_path / "companies.yaml"
        path.write_text(text)
        to = ["--keys-to", str(tmp_path / "keys.yaml")] if keys else []
        return await program.answer(tree.parse_args(["company", "ensure", "-f", str(path), *to, *words]))

    return run


def stored(folder: Path) -> dict[str, str]:
    """The keys of the file, which must be a Secret and private."""
    path = folder / "keys.yaml"
    assert path.stat().st_mode & 0o777 == 0o600
    key_file = yaml.safe_load(path.read_text())
    assert (key_file["apiVersion"], key_file["kind"], key_file["type"]) == ("v1", "Secret", "Opaque")
    assert "annotations" not in key_file["metadata"], "no mint is under way"
    keys: dict[str, str] = key_file["stringData"]
    return keys


async def state(operator: Operator, name: str) -> dict[str, Any]:
    """What the gateway has of the company."""
    listed = (await operator("ListCompanies", pb.ListCompaniesRequest())).companies
    (company,) = [listed_company for listed_company in listed if listed_company.external_id == name]
    request = administrators_pb2.ListAdministratorsRequest()
    administrators = (await operator("ListAdministrators", request, company.id)).administrators
    keys = (await operator("ListKeys", pb.ListKeysRequest(company_id=company.id))).keys
    return {
        "company": (company.name, company.timezone, company.active, company.second_factor_required),
        "administrators": [(administrator.email, administrator.name) for administrator in administrators],
        "keys": [(key.name, pb.Scope.Name(key.scope), key.administrator_email) for key in keys],
    }


def expected(name: str) -> dict[str, Any]:
    return {
        "company": ("Northside Homes", "America/Chicago", True, False),
        "administrators": [(f"ana@{name}.example", "Ana Ruiz"), (f"bo@{name}.example", "bo")],
        "keys": [("sync", "SCOPE_WRITE", f"ana@{name}.example"), ("dashboard.v2", "SCOPE_READ", "")],
    }


def kinds(answer: Answer) -> list[tuple[str, str, str]]:
    return [(step["what"], step["name"], step["action"]) for step in answer.value["steps"]]


async def test_a_file_makes_a_sandbox_and_makes_no_sandbox_of_a_company(
    ensure: Ensure, operator: Operator, name: str
) -> None:
    text = f"companies: [{{external_id: {name}, name: Trial, sandbox: true}}]"
    assert kinds(await ensure(text, keys=False)) == [("company", name, "create")]
    assert kinds(await ensure(text, keys=False)) == []
    listed = (await operator("ListCompanies", pb.ListCompaniesRequest())).companies
    assert [company.is_sandbox for company in listed if company.external_id == name] == [True]
    with pytest.raises(CommandError, match=r"is a sandbox, and stays what it was created as"):
        await ensure(text.replace("true", "false"), keys=False)


async def test_a_file_says_what_a_sandbox_starts_with(ensure: Ensure, operator: Operator, name: str) -> None:
    text = f"companies: [{{external_id: {name}, name: Tour, sandbox: true, content: demo}}]"
    with pytest.raises(CommandError, match="only a sandbox starts with any"):
        await ensure(text.replace("true", "false"), keys=False)
    assert kinds(await ensure(text, keys=False)) == [("company", name, "create")]
    assert kinds(await ensure(text, keys=False)) == []
    assert kinds(await ensure(text.replace(", content: demo", ""), keys=False)) == []
    listed = (await operator("ListCompanies", pb.ListCompaniesRequest())).companies
    contents = [company.content for company in listed if company.external_id == name]
    assert contents == [pb.SANDBOX_CONTENT_DEMO]
    with pytest.raises(CommandError, match="started with the content demo"):
        await ensure(text.replace("content: demo", "content: empty"), keys=False)


async def test_a_file_makes_a_company_once_and_a_check_says_what_differs(
    ensure: Ensure, operator: Operator, api: Api, name: str, tmp_path: Path
) -> None:
    text = house(name)
    checked = await ensure(text, "--check")
    assert (checked.status, checked.value["differs"]) == (3, True)
    assert not (tmp_path / "keys.yaml").exists()
    created = await ensure(text)
    assert created.status == 0
    assert (
        kinds(created)
        == kinds(checked)
        == [
            ("company", name, "create"),
            ("administrator", f"ana@{name}.example", "create"),
            ("administrator", f"bo@{name}.example", "create"),
            ("key", "sync", "create"),
            ("key", "dashboard.v2", "create"),
        ]
    )
    keys = stored(tmp_path)
    assert not any(key in created.as_json() + created.text for key in keys.values())
    assert await state(operator, name) == expected(name)
    for key in keys.values():
        assert (await api.get("/whoami", key)).json["company"]["name"] == "Northside Homes"
    assert list(keys) == [f"{name}.sync", f"{name}.dashboard.v2"]
    for words in ((), ("--check",)):
        again = await ensure(text, *words)
        assert (again.status, again.value["steps"], again.text) == (0, [], "1 company is as declared.")
    assert stored(tmp_path) == keys


async def test_what_differs_is_changed_and_what_the_file_does_not_name_stays(
    ensure: Ensure, operator: Operator, name: str, tmp_path: Path
) -> None:
    await ensure(house(name))
    keys = stored(tmp_path)
    changed = f"""
companies:
  - {{external_id: {name}, name: North & Co, active: false,
      administrators: [{{email: ana@{name}.example, name: Ana R.}}]}}
"""
    answer = await ensure(changed, keys=False)
    assert [(step["what"], step["values"]) for step in answer.value["steps"]] == [
        ("company", {"name": "North & Co", "active": False}),
        ("administrator", {"name": "Ana R."}),
    ]
    before = await state(operator, name)
    assert before["company"] == ("North & Co", "America/Chicago", False, False)
    assert before["administrators"][0][1] == "Ana R." and len(before["administrators"]) == 2
    assert len(before["keys"]) == 2 and stored(tmp_path) == keys


async def test_a_run_that_is_killed_anywhere_is_run_again_and_ends_the_same(
    ensure: Ensure, operator: Operator, api: Api, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends at the n-th call of an RPC before it is sent and after it was answered, and before and after each change of
    the file, until a run gets through."""
    original_ask, replaced = calls.Operator.ask, Path.replace
    ends_in = 0  # never

    def here() -> None:
        nonlocal ends_in
        ends_in -= 1
        if ends_in == 0:
            raise KilledError

    async def ask(self: calls.Operator, *words: Any, **more: Any) -> Any:
        here()
        answer = await original_ask(self, *words, **more)
        here()
        return answer

    def replace(self: Path, target: Path) -> Path:
        here()
        moved = replaced(self, target)
        here()
        return moved

    monkeypatch.setattr(calls.Operator, "ask", ask)
    monkeypatch.setattr(Path, "replace", replace)
    before: dict[str, str] = {}
    for point in itertools.count(1):
        own_house = f"house-{point}"
        ends_in = point
        try:
            await ensure(house(own_house))
            break
        except KilledError:
            ends_in = 0
        await ensure(house(own_house))
        assert await state(operator, own_house) == expected(own_house)
        keys = stored(tmp_path)
        assert before.items() <= keys.items() and f"{own_house}.sync" in keys
        assert (await api.get("/whoami", keys[f"{own_house}.sync"])).status == 200
        assert (await ensure(house(own_house), "--check")).status == 0
        before = keys
    # Each of 6 calls before and after; of 2 keys 2 changes of the file, before and after.
    assert point == 21


async def test_keys_of_elsewhere_and_keys_that_differ_are_refused_before_anything_is_changed(
    ensure: Ensure, operator: Operator, name: str, tmp_path: Path
) -> None:
    company_id = (await operator("CreateCompany", pb.CreateCompanyRequest(name="Elm", external_id=name))).company.id
    request = pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ, name="sync")
    minted = await operator("MintKey", request)
    text = f"companies: [{{external_id: {name}, name: Oak, keys: [{{name: sync, scope: SCOPE}}]}}]"
    with pytest.raises(CommandError, match=f"Key {minted.key_id} .* exists, and its secret is not in"):
        await ensure(text.replace("SCOPE", "read"))
    with pytest.raises(CommandError, match=f"Key {minted.key_id} .* has another scope"):
        await ensure(text.replace("SCOPE", "write"))
    assert (await state(operator, name))["company"][0] == "Elm"
    secret = {"kind": "Secret", "metadata": {"name": "mine"}, "stringData": {f"{name}.sync": minted.key, "other": "x"}}
    (tmp_path / "keys.yaml").write_text(json.dumps(secret))
    assert kinds(await ensure(text.replace("SCOPE", "read"))) == [("company", name, "change")]
    await operator("RevokeKey", pb.RevokeKeyRequest(key_id=minted.key_id))
    assert kinds(await ensure(text.replace("SCOPE", "read"))) == [("key", "sync", "create")]
    key_file = yaml.safe_load((tmp_path / "keys.yaml").read_text())
    assert key_file["metadata"] == {"name": "mine"} and key_file["stringData"]["other"] == "x"
    assert key_file["stringData"][f"{name}.sync"] not in ("", minted.key)


async def test_a_company_that_exists_gets_an_external_id_once(operator: Operator, company_id: int, name: str) -> None:
    change = pb.UpdateCompanyRequest(company_id=company_id, external_id=name)
    assert (await operator("UpdateCompany", change)).company.external_id == name
    other = (await operator("CreateCompany", pb.CreateCompanyRequest(name="Other", external_id=name))).company
    assert (other.id, other.name) == (company_id, "Maple Homes"), "the company that has it"
    from chassis.refusals import Refusal

    for request, words in (
        (pb.UpdateCompanyRequest(company_id=company_id, external_id=f"{name}-2"), "keeps that one"),
        (pb.UpdateCompanyRequest(company_id=await operator.company(), external_id=name), "Another company has"),
        (pb.UpdateCompanyRequest(company_id=company_id, external_id="North Side"), "must be 1 to 60"),
    ):
        with pytest.raises(Refusal, match=words):
            await operator("UpdateCompany", request)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("companies: [{external_id: a, name: No}]", "name: Expected `str`, got `bool`; a text that YAML"),
        ("companies: [{external_id: a, name: A, colour: red}]", "unknown field `colour`"),
        ("companies: [{external_id: A b, name: A}]", "external_id: Expected `str` matching"),
        ("companies: [{external_id: a, name: A}, {external_id: a, name: B}]", 'two companies have .* "a"'),
        ("companies: [{external_id: a, name: A, name: B}]", "line 1: name stands twice"),
        ("companies:\n  - {external_id: a", "is no YAML: line"),
        ("companies: [{external_id: a, name: A, keys: [{name: k, scope: all}]}]", "scope: Invalid enum value 'all'"),
        ("companies: [{external_id: a, name: A, keys: [{name: k, scope: read, expires_at: 2031-01-01}]}]", "datetime"),
        ("companies: [&a {external_id: a, name: A, administrators: [*a]}]", "unknown field|no YAML|missing"),
        ("!!python/object/apply:os.getcwd []", "is no YAML"),
        ("- 1", "Expected `object`"),
    ],
)
async def test_a_faulty_file_is_one_line(ensure: Ensure, text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words) as refused:
        await ensure(text)
    assert "\n" not in str(refused.value) and str(refused.value).endswith(".")


async def test_a_file_of_keys_that_is_something_else_stays(ensure: Ensure, name: str, tmp_path: Path) -> None:
    (tmp_path / "keys.yaml").write_text("companies: []\n")
    with pytest.raises(CommandError, match="holds something else than a Secret"):
        await ensure(house(name))
    assert (tmp_path / "keys.yaml").read_text() == "companies: []\n"
