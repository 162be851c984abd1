"""Administrators and staff: issued tokens, an administrator's permissions, and the audit log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from chassis.auth.identity import ADMINISTRATOR, STAFF, Identity, IdentityError, TokenVerifier
from chassis.refusals import Refusal
from makeready.common.v1.documents_pb2 import IMPORT_OUTCOME_CHANGED, ImportRow
from makeready.identity.v1 import actors_pb2, administrators_pb2, staff_pb2
from makeready.identity.v1 import identity_pb2 as pb
from makeready.identity.v1 import staff_commands_pb2 as desk
from testkit.gateways import Operator

UNKNOWN = 2**62


async def refusal(call: Any) -> tuple[int, str, str]:
    with pytest.raises(Refusal) as refused:
        await call
    assert refused.value.message.endswith(".") and ". " not in refused.value.message
    return refused.value.status, refused.value.code, refused.value.message


async def member(operator: Operator, company_id: int) -> int:
    request = desk.AddStaffRequest(idempotency_key="m", name="Ada Byrne")
    staff_id: int = (await operator("AddStaff", request, company_id)).staff.staff_id
    return staff_id


# ActorsService.IssueActorToken


async def test_a_token_names_the_person_the_company_and_one_service(
    operator: Operator, company_id: int, identity_keys: Path
) -> None:
    email, staff_id = await operator.administrator(company_id), await member(operator, company_id)
    requests = {
        ADMINISTRATOR: actors_pb2.IssueActorTokenRequest(
            company_id=company_id, audience="svc-tickets", administrator_email=f" {email.upper()} "
        ),
        STAFF: actors_pb2.IssueActorTokenRequest(company_id=company_id, audience="svc-tickets", staff_id=staff_id),
    }
    for kind, request in requests.items():
        token = (await operator("IssueActorToken", request)).token
        who = TokenVerifier(identity_keys / "ring.jwks", "svc-tickets").verify(token)
        assert (who.kind, who.issuer, who.company_id) == (kind, "gateway", company_id)
        assert who.staff_id == (staff_id if kind == STAFF else None)
        assert (who.administrator_id is not None) == (kind == ADMINISTRATOR)
        assert who.actor == f"{kind}:{staff_id if kind == STAFF else who.administrator_id}"
        with pytest.raises(IdentityError):
            TokenVerifier(identity_keys / "ring.jwks", "svc-catalog").verify(token)


async def test_no_token_is_issued_for_a_person_of_another_company(operator: Operator, company_id: int) -> None:
    other_id = await operator.company()
    email, staff_id = await operator.administrator(other_id), await member(operator, other_id)
    for unknown, foreign in (
        ({"administrator_email": "nobody@example.com"}, {"administrator_email": email}),
        ({"administrator_email": "nobody\0@example.com"}, {"administrator_email": email}),
        ({"staff_id": UNKNOWN}, {"staff_id": staff_id}),
        ({"staff_id": -1}, {"staff_id": staff_id}),
    ):
        request = actors_pb2.IssueActorTokenRequest
        answers = {
            await refusal(operator("IssueActorToken", request(company_id=company_id, audience="svc-tickets", **person)))
            for person in (unknown, foreign)
        }
        assert len(answers) == 1 and answers.pop()[0] == 404
    assert (
        await refusal(
            operator("IssueActorToken", actors_pb2.IssueActorTokenRequest(company_id=company_id, audience="x"))
        )
    )[0] == 404


async def test_an_email_alone_names_an_administrator_and_the_company(
    operator: Operator, company_id: int, identity_keys: Path
) -> None:
    email = await operator.administrator(company_id)
    answer = await operator(
        "IssueActorToken", actors_pb2.IssueActorTokenRequest(audience="svc-webhooks", administrator_email=email)
    )
    assert TokenVerifier(identity_keys / "ring.jwks", "svc-webhooks").verify(answer.token).company_id == company_id
    unknown = actors_pb2.IssueActorTokenRequest(audience="svc-webhooks", staff_id=await member(operator, company_id))
    assert (await refusal(operator("IssueActorToken", unknown)))[0] == 404


# What an administrator may do


async def test_an_administrator_mints_lists_and_revokes_keys_of_the_own_company(
    operator: Operator, company_id: int
) -> None:
    who = await operator.administrators_identity(company_id)
    minted = await operator("MintKey", pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_WRITE), who=who)
    (key,) = (await operator("ListKeys", pb.ListKeysRequest(company_id=company_id), who=who)).keys
    assert (key.id, key.scope) == (minted.key_id, pb.SCOPE_WRITE)
    assert key.administrator_email, "a key is tied to its minting administrator"
    revoked = (await operator("RevokeKey", pb.RevokeKeyRequest(key_id=key.id), who=who)).key
    assert revoked.HasField("revoked_at")
    colleague = await operator.administrator(company_id)
    request = pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ, administrator_email=colleague)
    assert (await refusal(operator("MintKey", request, who=who)))[0] == 422


async def test_keys_and_settings_of_another_company_are_not_there(operator: Operator, company_id: int) -> None:
    who = await operator.administrators_identity(await operator.company())
    key_id, _ = await operator.minted(company_id)
    for rpc, request, unknown in (
        (
            "MintKey",
            pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ),
            pb.MintKeyRequest(company_id=UNKNOWN, scope=pb.SCOPE_READ),
        ),
        ("ListKeys", pb.ListKeysRequest(company_id=company_id), pb.ListKeysRequest(company_id=UNKNOWN)),
        ("RevokeKey", pb.RevokeKeyRequest(key_id=key_id), pb.RevokeKeyRequest(key_id=UNKNOWN)),
        (
            "UpdateCompany",
            pb.UpdateCompanyRequest(company_id=company_id, timezone="UTC"),
            pb.UpdateCompanyRequest(company_id=UNKNOWN, timezone="UTC"),
        ),
    ):
        answer = await refusal(operator(rpc, request, who=who))
        assert answer[0] == 404 and answer == await refusal(operator(rpc, unknown, who=who))
    (key,) = (await operator("ListKeys", pb.ListKeysRequest(company_id=company_id))).keys
    assert not key.HasField("revoked_at")


async def test_an_administrator_sets_the_timezone_and_the_operator_alone_closes_the_company(
    operator: Operator, company_id: int
) -> None:
    who = await operator.administrators_identity(company_id)
    request = pb.UpdateCompanyRequest(company_id=company_id, timezone="America/Denver")
    assert (await operator("UpdateCompany", request, who=who)).company.timezone == "America/Denver"
    for active in (True, False):
        request = pb.UpdateCompanyRequest(company_id=company_id, active=active)
        assert (await refusal(operator("UpdateCompany", request, who=who)))[0] == 403


# The audit log


async def test_what_happens_to_a_company_its_administrators_and_keys_is_on_record_before_and_after(
    operator: Operator, company_id: int
) -> None:
    who = await operator.administrators_identity(company_id)
    me = who.actor
    await operator.set_active(company_id, True)
    await operator.set_active(company_id, False)
    await operator("UpdateCompany", pb.UpdateCompanyRequest(company_id=company_id, timezone="America/Denver"), who=who)
    request = pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ, name="Sync")
    minted = await operator("MintKey", request, who=who)
    revoked = (await operator("RevokeKey", pb.RevokeKeyRequest(key_id=minted.key_id))).key
    await operator("RevokeKey", pb.RevokeKeyRequest(key_id=minted.key_id))
    entries = await operator.audit(company_id)
    (administrator,) = [entry for entry in entries if entry[1] == "administrator.created"]
    assert [entry for entry in entries if entry[1] not in ("administrator.created", "key.revoked")] == [
        ("operator", "company.created", company_id, {}, {"name": "Maple Homes", "timezone": "UTC"}),
        ("operator", "company.updated", company_id, {"active": True}, {"active": False}),
        (me, "company.updated", company_id, {"timezone": "UTC"}, {"timezone": "America/Denver"}),
        (
            me,
            "key.minted",
            minted.key_id,
            {},
            {"name": "Sync", "scope": "read", "administrator_id": who.administrator_id},
        ),
    ]
    assert administrator[:4] == ("operator", "administrator.created", who.administrator_id, {})
    assert set(administrator[4]) == {"email", "name"}
    (revocation,) = [entry for entry in entries if entry[1] == "key.revoked"]
    assert revocation[:4] == ("operator", "key.revoked", minted.key_id, {"revoked_at": None})
    assert revocation[4]["revoked_at"].startswith(revoked.revoked_at.ToDatetime().isoformat()[:19])
    assert minted.key not in str(entries)
    assert await operator.audit(await operator.company(), "key") == []


# Staff


async def test_staff_are_added_changed_listed_and_on_record(operator: Operator, company_id: int) -> None:
    who = await operator.administrators_identity(company_id)
    request = desk.AddStaffRequest(
        idempotency_key="a", name="Ada Byrne", email=" Ada@Example.com ", title="Superintendent", external_id="S1"
    )
    ada = (await operator("AddStaff", request, who=who)).staff
    assert (await operator("AddStaff", request, who=who)).staff == ada
    assert (ada.email, ada.title, ada.external_id, ada.source) == ("ada@example.com", "Superintendent", "S1", "staff")
    bo = (await operator("AddStaff", desk.AddStaffRequest(idempotency_key="b", name="Bo"), company_id)).staff
    assert not bo.HasField("email")
    change = desk.UpdateStaffRequest(idempotency_key="c", staff_id=ada.staff_id, name="Ada King", clear=["title"])
    changed = (await operator("UpdateStaff", change, company_id)).staff
    assert (changed.name, changed.HasField("title"), changed.email) == ("Ada King", False, "ada@example.com")
    same = desk.UpdateStaffRequest(idempotency_key="d", staff_id=ada.staff_id, name="Ada King")
    assert (await operator("UpdateStaff", same, company_id)).staff == changed

    listed = await operator("ListStaff", desk.ListStaffRequest(), who=who)
    assert list(listed.staff) == [changed, bo] and not listed.HasField("next_after_id")
    first = await operator("ListStaff", desk.ListStaffRequest(limit=1), company_id)
    assert list(first.staff) == [changed] and first.next_after_id == ada.staff_id
    second = await operator("ListStaff", desk.ListStaffRequest(limit=1, after_id=first.next_after_id), company_id)
    assert list(second.staff) == [bo] and not second.HasField("next_after_id")
    for words, active, names in (
        ("ADA king", None, ["Ada King"]), ("s1", None, ["Ada King"]), ("b", True, ["Bo"]), ("ada bo", None, []),
        ("%", None, []), ("_", None, []), ("\\", None, []), ("", True, ["Ada King", "Bo"]), ("", False, []),
    ):  # fmt: skip
        search = desk.ListStaffRequest(words=words, active=active)
        assert [member.name for member in (await operator("ListStaff", search, who=who)).staff] == names, words
    assert await operator.audit(company_id, "staff") == [
        (
            who.actor,
            "staff.added",
            ada.staff_id,
            {},
            {"name": "Ada Byrne", "email": "ada@example.com", "title": "Superintendent", "external_id": "S1"},
        ),
        ("operator", "staff.added", bo.staff_id, {}, {"name": "Bo"}),
        (
            "operator",
            "staff.updated",
            ada.staff_id,
            {"name": "Ada Byrne", "title": "Superintendent"},
            {"name": "Ada King", "title": None},
        ),
    ]


async def test_a_member_with_an_external_id_is_found_by_a_later_import(operator: Operator, company_id: int) -> None:
    request = desk.AddStaffRequest(idempotency_key="a", name="Ada Byrne", external_id="S1")
    ada = (await operator("AddStaff", request, company_id)).staff
    row = ImportRow(line=2, json=b'{"external_id": "S1", "name": "Ada King"}')
    answer = await operator("ImportStaff", staff_pb2.ImportStaffRequest(rows=[row]), company_id)
    assert [row_result.outcome for row_result in answer.results] == [IMPORT_OUTCOME_CHANGED]
    (staff,) = (await operator("ListStaff", desk.ListStaffRequest(), company_id)).staff
    assert (staff.staff_id, staff.name, staff.source) == (ada.staff_id, "Ada King", "staff")


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"name": ""}, 400),
        ({"name": "x" * 201}, 400),
        ({"name": "a\0b"}, 400),
        ({"email": "ada"}, 400),
        ({"email": ""}, 400),
        ({"email": "a@" + "b" * 150 + ".example"}, 400),
        ({"title": "x" * 201}, 400),
        ({"external_id": " "}, 400),
        ({"external_id": "x" * 201}, 400),
        ({"external_id": "TAKEN"}, 422),
    ],
)
async def test_a_bad_member_is_refused_and_leaves_nothing(
    operator: Operator, company_id: int, values: dict[str, str], status: int
) -> None:
    taken = desk.AddStaffRequest(idempotency_key="t", name="Taken", external_id="TAKEN")
    await operator("AddStaff", taken, company_id)
    added = desk.AddStaffRequest(**({"idempotency_key": "x", "name": "Ada"} | values))
    assert (await refusal(operator("AddStaff", added, company_id)))[0] == status
    bo = (await operator("AddStaff", desk.AddStaffRequest(idempotency_key="b", name="Bo"), company_id)).staff
    changed = desk.UpdateStaffRequest(**({"idempotency_key": "y"} | values), staff_id=bo.staff_id)
    assert (await refusal(operator("UpdateStaff", changed, company_id)))[0] == status
    assert [member.name for member in (await operator("ListStaff", desk.ListStaffRequest(), company_id)).staff] == [
        "Taken",
        "Bo",
    ]
    assert len(await operator.audit(company_id, "staff")) == 2


async def test_a_member_of_another_company_and_an_unknown_company_are_not_there(
    operator: Operator, company_id: int
) -> None:
    staff_id = await member(operator, company_id)
    other_id = await operator.company()
    for absent_id in (staff_id, UNKNOWN, 0):
        request = desk.UpdateStaffRequest(idempotency_key="u", staff_id=absent_id, name="x")
        assert await refusal(operator("UpdateStaff", request, other_id)) == (
            404,
            "not_found",
            "The company has no member of staff with that id; check the id.",
        )
    nowhere = desk.AddStaffRequest(idempotency_key="n", name="x")
    assert (await refusal(operator("AddStaff", nowhere, UNKNOWN)))[0] == 404
    invited = administrators_pb2.InviteAdministratorRequest(idempotency_key="n", email="ada@example.com", name="x")
    assert (await refusal(operator("InviteAdministrator", invited, UNKNOWN)))[0] == 404
    cleared = desk.UpdateStaffRequest(idempotency_key="v", staff_id=staff_id, clear=["name"])
    assert (await refusal(operator("UpdateStaff", cleared, company_id)))[0] == 400


async def test_members_added_at_once_with_one_key_are_one(operator: Operator, company_id: int) -> None:
    request = desk.AddStaffRequest(idempotency_key="once", name="Ada")
    answers = await asyncio.gather(
        *(operator("AddStaff", request, company_id) for _ in range(10)), return_exceptions=True
    )
    staff_ids = {answer.staff.staff_id for answer in answers if not isinstance(answer, BaseException)}
    assert len(staff_ids) == 1
    assert {answer.code for answer in answers if isinstance(answer, Refusal)} <= {"idempotency_in_progress"}
    assert len((await operator("ListStaff", desk.ListStaffRequest(), company_id)).staff) == 1


async def test_staff_may_not_keep_staff(operator: Operator, company_id: int) -> None:
    who = Identity(STAFF, "gateway", company_id, staff_id=await member(operator, company_id))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await operator("AddStaff", desk.AddStaffRequest(idempotency_key="s", name="Bo"), who=who)
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
