"""Administrators of a live company in its sandboxes: who gets in, what their tokens say, and what never mixes."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from chassis.auth.identity import ADMINISTRATOR, Identity, TokenVerifier
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.identity.v1 import accounts_pb2, actors_pb2, administrators_pb2, staff_commands_pb2
from makeready.identity.v1 import identity_pb2 as pb
from testkit.gateways import Gateway, Operator

from .signing_in import BETTER, GOOD, App, Authenticator, Console, administrator

ORIGIN = "http://localhost:8081"


@pytest.fixture
def console(gateway: Gateway, identity_keys: Path) -> Console:
    return Console(gateway.grpc_target, identity_keys)


async def refused(call: Any) -> Refusal:
    with pytest.raises(Refusal) as raised:
        await call
    assert raised.value.message.endswith(".") and ". " not in raised.value.message
    return raised.value


async def execute(database: Database, sql: str, *arguments: Any) -> list[Any]:
    async with database.connection() as connection:
        rows: list[Any] = await connection.raw.fetch(sql, *arguments)
        return rows


async def sandbox(operator: Operator, company_id: int | None, name: str = "Trial") -> int:
    request = pb.CreateCompanyRequest(name=name, timezone="America/Denver", is_sandbox=True, sandbox_of=company_id)
    created_id: int = (await operator("CreateCompany", request)).company.id
    return created_id


async def test_an_administrator_is_the_same_person_in_a_sandbox(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    trial, email = await sandbox(operator, company_id), await administrator(operator, company_id)
    live = await console.sign_in(email)
    text = f"{live.text}.{trial}"
    session = await console.session(text)
    assert session is not None
    assert (session.company_id, session.company_name, session.timezone) == (trial, "Trial", "America/Denver")
    assert (session.is_sandbox, session.live_company_id, session.live_company_name) == (True, company_id, "Maple Homes")
    assert (session.session_id, session.person_id) == (live.session.session_id, live.session.person_id)
    assert not live.session.is_sandbox and not live.session.HasField("live_company_id")
    assert await console.session(live.text) == live.session, "the text of the live company goes on meaning it"

    assert not live.session.clock_offset.seconds and not session.clock_offset.seconds
    await execute(database, "UPDATE company SET clock_offset = interval '26 hours' WHERE id = $1", trial)
    ahead = await console.session(text)
    assert ahead is not None and ahead.clock_offset.seconds == 26 * 3600

    of_live, of_sandbox = await console.identity(live.text, "svc-tickets"), await console.identity(text, "svc-tickets")
    assert (of_live.company_id, of_live.is_sandbox) == (company_id, False)
    assert (of_sandbox.company_id, of_sandbox.is_sandbox) == (trial, True)
    for name in ("kind", "actor", "administrator_id", "session_id", "stepped_up_at"):
        assert getattr(of_live, name) == getattr(of_sandbox, name), name


async def test_nobody_gets_into_a_sandbox_that_is_not_theirs(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    trial, of_nobody = await sandbox(operator, company_id), await sandbox(operator, None)
    other_id = await operator.company()
    of_other = await sandbox(operator, other_id)
    ended, closed = await sandbox(operator, company_id), await sandbox(operator, company_id)
    await execute(database, "UPDATE company SET active = false, ended_at = now() WHERE id = $1", ended)
    await operator.set_active(closed, False)
    live = await console.sign_in(await administrator(operator, company_id))
    tests_alone = await console.sign_in(await administrator(operator, trial))
    assert (tests_alone.session.company_id, tests_alone.session.is_sandbox) == (trial, True)
    assert not tests_alone.session.HasField("live_company_id"), "it is not told of the live company"
    added = await operator(
        "AddStaff",
        staff_commands_pb2.AddStaffRequest(idempotency_key="s", name="Sam", email="sam@x.example"),
        company_id,
    )
    invited = await operator(
        "InviteStaff",
        staff_commands_pb2.InviteStaffRequest(idempotency_key="i", staff_id=added.staff.staff_id),
        company_id,
    )
    staff = (await console("UseLink", link=invited.link.url.rpartition("/")[2], password=GOOD)).session
    tries = [
        *(f"{live.text}.{company}" for company in (of_nobody, of_other, other_id, company_id, ended, closed, 900_000)),
        *(f"{tests_alone.text}.{company}" for company in (company_id, trial, of_nobody, ended)),
        *(f"{staff.text}.{company}" for company in (trial, company_id)),
        *(f"{live.text}{end}" for end in (".", ".0", f".0{trial}", f".-{trial}", f".{trial}.{trial}", f".{trial} ")),
        *(f"{live.text}{end}" for end in (f".{'9' * 18}", f".{'9' * 40}", ".\u0661", f"\n.{trial}")),
    ]
    for text in tries:
        assert await console.session(text) is None, text
        for rpc in ("IssueToken", "MakePermit"):
            values = {"audience": "svc-tickets"} if rpc == "IssueToken" else {}
            assert (await refused(console(rpc, session=text, **values))).code in ("no_session", "company_inactive")
    await operator.set_active(closed, True)
    assert await console.session(f"{live.text}.{closed}")
    assert await console.session(f"{live.text}.{trial}") and await console.session(live.text)


async def test_the_session_ends_for_both_at_once(operator: Operator, company_id: int, console: Console) -> None:
    trial, email = await sandbox(operator, company_id), await administrator(operator, company_id)
    await administrator(operator, company_id)

    async def gone(text: str) -> bool:
        assert (await refused(console("IssueToken", session=f"{text}.{trial}", audience="x"))).code == "no_session"
        return await console.session(text) is None and await console.session(f"{text}.{trial}") is None

    signed_out = await console.sign_in(email)
    await console("SignOut", session=f"{signed_out.text}.{trial}")
    assert await gone(signed_out.text)

    first, second = await console.sign_in(email), await console.sign_in(email)
    request = accounts_pb2.EndSessionRequest(others=True)
    answer = await console.account(f"{first.text}.{trial}", "EndSession", request)
    assert answer.sessions_ended == 1 and await gone(second.text)
    listed = await console.account(f"{first.text}.{trial}", "ListSessions", accounts_pb2.ListSessionsRequest())
    assert [(session.session_id, session.current) for session in listed.sessions] == [(first.session.session_id, True)]

    permit = (await console("MakePermit", session=f"{first.text}.{trial}")).permit
    deactivate = administrators_pb2.DeactivateAdministratorRequest(
        idempotency_key="d", administrator_id=first.session.person_id
    )
    await operator("DeactivateAdministrator", deactivate, company_id)
    assert await gone(first.text)
    assert (await refused(console("IssueToken", permit=permit, audience="x"))).code == "no_session"

    closing = await console.sign_in(await administrator(operator, company_id))
    await operator.set_active(company_id, False)
    assert await gone(closing.text), "a sandbox is open no longer than its live company"


async def test_a_permit_is_good_in_the_company_where_it_was_made(
    operator: Operator, company_id: int, console: Console, identity_keys: Path, database: Database
) -> None:
    trial, other = await sandbox(operator, company_id), await sandbox(operator, company_id, "Other")
    session = await console.sign_in(await administrator(operator, company_id))
    ring = TokenVerifier(identity_keys / "ring.jwks", "svc-catalog")

    async def company_of(permit: str) -> tuple[int, bool]:
        who = ring.verify((await console("IssueToken", permit=permit, audience="svc-catalog")).token)
        return who.company_id, who.is_sandbox

    of_live = (await console("MakePermit", session=session.text)).permit
    of_sandbox = (await console("MakePermit", session=f"{session.text}.{trial}")).permit
    assert await company_of(of_live) == (company_id, False)
    assert await company_of(of_sandbox) == (trial, True)
    await execute(database, "UPDATE company SET active = false, ended_at = now() WHERE id = $1", trial)
    assert (await refused(company_of(of_sandbox))).code == "company_inactive", "it does not go on in the live company"
    assert await company_of(of_live) == (company_id, False) and other


async def test_a_confirmation_stays_in_its_company(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    trial, email = await sandbox(operator, company_id), await administrator(operator, company_id)
    first = await console.sign_in(email)
    confirmed = (await console("StepUp", session=f"{first.text}.{trial}", password=GOOD)).session
    assert confirmed.text.endswith(f".{trial}") and confirmed.session.company_id == trial
    assert await console.session(first.text) is None and await console.session(f"{first.text}.{trial}") is None
    assert (await console.session(confirmed.text)) == confirmed.session

    authenticator = Authenticator(ORIGIN)
    started = await console.account(confirmed.text, "", accounts_pb2.StartAddingPasskeyRequest())
    finish = accounts_pb2.FinishAddingPasskeyRequest(
        ceremony=started.ceremony, credential_json=authenticator.create(started.options_json), name="Key"
    )
    await console.account(confirmed.text, "", finish)
    start = await console("StartPasskey", session=confirmed.text)
    credential = authenticator.get(start.options_json)
    again = await console("FinishPasskey", ceremony=start.ceremony, credential_json=credential, session=confirmed.text)
    assert again.session.text.endswith(f".{trial}") and again.session.session.company_id == trial
    assert again.session.session.session_id == first.session.session_id
    actions = await execute(
        database,
        "SELECT company_id FROM audit WHERE action ~ '^(session|account|passkey)' AND company_id IN ($1, $2)",
        company_id,
        trial,
    )
    assert {row["company_id"] for row in actions} == {company_id}, "how a person signs in stands in their own company"


async def test_an_own_account_is_changed_from_a_sandbox(operator: Operator, company_id: int, console: Console) -> None:
    trial, email = await sandbox(operator, company_id), await administrator(operator, company_id)
    stranger = await console.sign_in(await administrator(operator, await operator.company()))
    session = await console.sign_in(email)
    text = f"{session.text}.{trial}"
    account = (await console.account(text, "GetAccount", accounts_pb2.GetAccountRequest())).account
    assert (account.email, account.has_password) == (email, True)
    await console.account(text, "ChangePassword", accounts_pb2.ChangePasswordRequest(password=BETTER))
    assert (await console.sign_in(email, BETTER)).session.company_id == company_id
    # A token that says another company finds no account.
    forged = Identity(ADMINISTRATOR, "gateway", trial, administrator_id=stranger.session.person_id, is_sandbox=True)
    refusal = await refused(operator("GetAccount", accounts_pb2.GetAccountRequest(), who=forged))
    assert refusal.status == 404


async def test_a_second_factor_that_is_due_shuts_the_sandbox_too(
    operator: Operator, company_id: int, console: Console
) -> None:
    trial, email = await sandbox(operator, company_id), await administrator(operator, company_id)
    session = await console.sign_in(email)
    text = f"{session.text}.{trial}"
    await operator("UpdateCompany", pb.UpdateCompanyRequest(company_id=company_id, second_factor_required=True))
    due = await console.session(text)
    assert due is not None and due.second_factor_due
    assert (await console.identity(text)).only_service == "makeready.identity.v1.AccountsService"
    assert (await refused(console("MakePermit", session=text))).code == "no_session"
    enrolled = await console.account(text, "EnrolTotp", accounts_pb2.EnrolTotpRequest())
    assert App(enrolled.secret)


async def test_keys_in_a_sandbox_are_of_the_live_administrator(
    operator: Operator, company_id: int, console: Console
) -> None:
    trial, email = await sandbox(operator, company_id), await administrator(operator, company_id)
    colleague, taker = await administrator(operator, company_id), await administrator(operator, trial)
    who = await console.identity(f"{(await console.sign_in(email)).text}.{trial}")
    boss = await console.identity(f"{(await console.sign_in(colleague)).text}.{trial}")
    minted = await operator("MintKey", pb.MintKeyRequest(company_id=trial, scope=pb.SCOPE_WRITE), who=who)
    assert minted.key.startswith("mk_test_")
    key = (await operator("GetKey", pb.GetKeyRequest(key_id=minted.key_id), who=who)).key
    assert (key.company_id, key.administrator_email, key.administrator_name) == (trial, email, "Olga Petrov")
    rotated = await operator("RotateKey", pb.RotateKeyRequest(idempotency_key="r", key_id=key.id), who=boss)
    assert rotated.key.startswith("mk_test_") and rotated.new_key.administrator_email == colleague
    # Nothing of the live company opens from the sandbox, and the other way round.
    live_key = (await operator("MintKey", pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ))).key_id
    at_home = await console.identity((await console.sign_in(email)).text)
    for rpc, request, identity in (
        ("MintKey", pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ), who),
        ("MintKey", pb.MintKeyRequest(company_id=trial, scope=pb.SCOPE_READ), at_home),
        ("GetKey", pb.GetKeyRequest(key_id=live_key), who),
        ("GetKey", pb.GetKeyRequest(key_id=key.id), at_home),
        ("RevokeKey", pb.RevokeKeyRequest(key_id=live_key), who),
        ("RevokeKey", pb.RevokeKeyRequest(key_id=key.id), at_home),
        ("RotateKey", pb.RotateKeyRequest(idempotency_key="x", key_id=live_key), who),
        ("ListKeys", pb.ListKeysRequest(company_id=company_id), who),
        ("ListKeys", pb.ListKeysRequest(company_id=trial), at_home),
        ("GetCompany", pb.GetCompanyRequest(company_id=company_id), who),
        ("GetCompany", pb.GetCompanyRequest(company_id=trial), at_home),
        ("UpdateCompany", pb.UpdateCompanyRequest(company_id=company_id, name="Taken"), who),
        ("UpdateCompany", pb.UpdateCompanyRequest(company_id=trial, name="Taken"), at_home),
    ):
        assert (await refused(operator(rpc, request, who=identity))).status == 404, (rpc, identity.company_id)

    # One who was deactivated in the live company: colleagues in the sandbox take the keys over, or revoke them.
    deactivate = administrators_pb2.DeactivateAdministratorRequest(
        idempotency_key="d", administrator_id=boss.administrator_id or 0
    )
    await operator("DeactivateAdministrator", deactivate, company_id)
    (left_key,) = (await operator("ListKeys", pb.ListKeysRequest(company_id=trial, active_only=True), who=who)).keys
    assert (left_key.id, left_key.administrator_active) == (rotated.new_key.id, False)
    take = pb.TakeOverKeysRequest(idempotency_key="t", of_administrator_id=boss.administrator_id or 0)
    elsewhere = await console.identity(
        (await console.sign_in(await administrator(operator, await operator.company()))).text
    )
    assert (await refused(operator("TakeOverKeys", take, who=elsewhere))).status == 404
    assert (await operator("TakeOverKeys", take, who=at_home)).keys == [], (
        "those in the sandbox are no keys of the live one"
    )
    taken = await operator("TakeOverKeys", take, who=who)
    assert [(key.id, key.administrator_email) for key in taken.keys] == [(left_key.id, email)]
    # The operator names an administrator of the live company, or one of the sandbox itself.
    for name in (email, taker):
        request = pb.MintKeyRequest(company_id=trial, scope=pb.SCOPE_READ, administrator_email=name)
        assert (await operator("MintKey", request)).key.startswith("mk_test_")
    request = pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ, administrator_email=taker)
    assert (await refused(operator("MintKey", request))).status == 404, "one of the sandbox mints no live key"


async def test_the_audit_log_of_a_sandbox_names_the_live_administrator(
    operator: Operator, company_id: int, console: Console
) -> None:
    trial = await sandbox(operator, company_id)
    who = await console.identity(f"{(await console.sign_in(await administrator(operator, company_id))).text}.{trial}")
    await operator("UpdateCompany", pb.UpdateCompanyRequest(company_id=trial, name="Renamed"), who=who)
    entries = await operator.audit(trial, "company")
    assert entries[-1][:3] == (who.actor, "company.updated", trial)
    request = actors_pb2.BatchGetActorsRequest(actors=[who.actor])
    named = await operator("BatchGetActors", request, who=who)
    assert [(actor.actor, actor.name, actor.active) for actor in named.actors] == [(who.actor, "Olga Petrov", True)]
    # Those of the sandbox learn who acted there; the live company's do not learn of those of the sandbox alone.
    alone = await console.identity((await console.sign_in(await administrator(operator, trial))).text)
    at_home = Identity(ADMINISTRATOR, "gateway", company_id, administrator_id=who.administrator_id)
    request = actors_pb2.BatchGetActorsRequest(actors=[alone.actor])
    assert (await operator("BatchGetActors", request, who=at_home)).actors == []


async def test_an_administrator_makes_sandboxes_of_the_own_company_alone(
    operator: Operator, company_id: int, console: Console
) -> None:
    await operator("UpdateCompany", pb.UpdateCompanyRequest(company_id=company_id, timezone="America/Denver"))
    at_home = await console.identity((await console.sign_in(await administrator(operator, company_id))).text)
    other_id = await operator.company()

    def create(key: str, **fields: Any) -> pb.CreateCompanyRequest:
        return pb.CreateCompanyRequest(name="Trial", idempotency_key=key, **fields)

    created = (await operator("CreateCompany", create("one", is_sandbox=True), who=at_home)).company
    assert (created.is_sandbox, created.sandbox_of, created.timezone, created.name) == (
        True,
        company_id,
        "America/Denver",
        "Trial",
    )
    again = (await operator("CreateCompany", create("one", is_sandbox=True), who=at_home)).company
    assert again == created, "the same form sent twice"
    zoned = create("two", is_sandbox=True, sandbox_of=company_id, timezone="Asia/Tokyo")
    assert (await operator("CreateCompany", zoned, who=at_home)).company.timezone == "Asia/Tokyo"
    entries = [(entry[0], entry[1], entry[2]) for entry in await operator.audit(company_id, "company")]
    assert (at_home.actor, "sandbox.created", created.id) in entries
    assert [entry[:2] for entry in await operator.audit(created.id)] == [(at_home.actor, "company.created")]

    in_sandbox = Identity(
        ADMINISTRATOR, "gateway", created.id, administrator_id=at_home.administrator_id, is_sandbox=True
    )
    insider = await console.identity((await console.sign_in(await administrator(operator, created.id))).text)
    refusals: list[tuple[Identity, dict[str, Any], int]] = [
        (at_home, {}, 403),  # a live company
        (at_home, {"is_sandbox": True, "external_id": "mine"}, 403),
        (at_home, {"is_sandbox": True, "sandbox_of": other_id}, 404),
        (at_home, {"is_sandbox": True, "sandbox_of": created.id}, 404),
        (at_home, {"sandbox_of": company_id}, 422),
        (in_sandbox, {"is_sandbox": True}, 422),  # a sandbox of a sandbox
        (in_sandbox, {"is_sandbox": True, "sandbox_of": company_id}, 404),
        (insider, {"is_sandbox": True}, 422),
        (insider, {"is_sandbox": True, "sandbox_of": company_id}, 404),
    ]
    for number, (who, fields, status) in enumerate(refusals):
        assert (await refused(operator("CreateCompany", create(f"n{number}", **fields), who=who))).status == status
    assert (await refused(operator("CreateCompany", create("", is_sandbox=True), who=at_home))).status == 400

    results = await asyncio.gather(
        *(operator("CreateCompany", create(f"at-once-{number}", is_sandbox=True), who=at_home) for number in range(6)),
        return_exceptions=True,
    )
    assert sorted(isinstance(result, Refusal) for result in results) == [False] * 3 + [True] * 3
    assert {result.status for result in results if isinstance(result, Refusal)} == {422}

    listed = await operator("ListSandboxes", pb.ListSandboxesRequest(), who=at_home)
    assert (len(listed.sandboxes), listed.sandboxes_max) == (5, 5) and listed.sandboxes[0] == created
    assert await operator("ListSandboxes", pb.ListSandboxesRequest(), who=in_sandbox) == listed, "the same from inside"
    assert (await operator("ListSandboxes", pb.ListSandboxesRequest(), who=insider)).sandboxes == []


async def test_the_operator_acts_as_an_administrator_in_a_sandbox(
    operator: Operator, company_id: int, identity_keys: Path
) -> None:
    trial, email = await sandbox(operator, company_id), await administrator(operator, company_id)
    other = await sandbox(operator, await operator.company())
    ring = TokenVerifier(identity_keys / "ring.jwks", "svc-tickets")

    async def token(company: int, name: str = email) -> Identity:
        request = actors_pb2.IssueActorTokenRequest(
            audience="svc-tickets", company_id=company, administrator_email=name
        )
        return ring.verify((await operator("IssueActorToken", request)).token)

    assert [(who.company_id, who.is_sandbox) for who in (await token(0), await token(trial))] == [
        (company_id, False), (trial, True)
    ]  # fmt: skip
    assert (await refused(token(other))).status == 404
    assert (await refused(token(company_id, await administrator(operator, trial)))).status == 404


async def test_the_release_before_finds_no_session_of_a_sandbox(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    """It looks for the digest of the whole text, so nobody in a sandbox is in the live company for it."""
    trial = await sandbox(operator, company_id)
    session = await console.sign_in(await administrator(operator, company_id))
    text = f"{session.text}.{trial}"
    permit = (await console("MakePermit", session=text)).permit
    for table, secret in (("session", text), ("ceremony", permit)):
        digest = hashlib.sha256(secret.encode()).digest()
        assert await execute(database, f"SELECT 1 FROM {table} WHERE digest = $1", digest) == []
