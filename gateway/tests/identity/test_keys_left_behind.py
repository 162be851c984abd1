"""Keys of administrators who are deactivated: they go on, and others take them over or revoke them all."""

from __future__ import annotations

import asyncio
import datetime
import time
from dataclasses import replace
from typing import Any

import pytest

from chassis.auth.identity import Identity
from chassis.refusals import Refusal
from makeready.identity.v1 import actors_pb2
from makeready.identity.v1 import identity_pb2 as pb
from makeready.identity.v1.administrators_pb2 import (
    DeactivateAdministratorRequest,
    ReactivateAdministratorRequest,
)
from testkit.gateways import Operator
from testkit.patience import eventually
from testkit.raw_http import Api
from testkit.stub_contexts import Contexts

LAST_USE = ("last_used_at", "last_used_address", "last_used_for")


async def refused(call: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as refusal:
        await call
    assert refusal.value.message.endswith(".") and ". " not in refusal.value.message
    return refusal.value.status, refusal.value.code


async def left_behind(operator: Operator, company_id: int, keys: int) -> tuple[Identity, str, list[tuple[int, str]]]:
    """An administrator who is deactivated, their e-mail, and the ids and secrets of `write` keys that they minted."""
    who = await operator.administrators_identity(company_id)
    request = pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_WRITE)
    minted = [await operator("MintKey", request, who=who) for _ in range(keys)]
    email = (await listed(operator, company_id))[minted[0].key_id].administrator_email
    await deactivate(operator, who)
    return who, email, [(response.key_id, response.key) for response in minted]


def id_of(who: Identity) -> int:
    assert who.administrator_id is not None
    return who.administrator_id


async def deactivate(operator: Operator, who: Identity) -> None:
    request = DeactivateAdministratorRequest(idempotency_key=f"d{who.administrator_id}", administrator_id=id_of(who))
    await operator("DeactivateAdministrator", request, who.company_id)


async def listed(operator: Operator, company_id: int, **fields: Any) -> dict[int, pb.Key]:
    keys = (await operator("ListKeys", pb.ListKeysRequest(company_id=company_id, **fields))).keys
    return {key.id: key for key in keys}


async def minter_of_a_write(api: Api, contexts: Contexts, key: str) -> int | None:
    """The administrator that a context is told when the key writes."""
    response = await api.request("POST", "/tickets", key, b"{}", Idempotency_Key=str(time.monotonic_ns()))
    assert response.status == 201
    return contexts.seen[-1].identity.administrator_id


async def test_keys_go_on_and_say_that_their_administrator_is_deactivated(
    api: Api, operator: Operator, company_id: int, contexts: Contexts
) -> None:
    colleague = await operator.administrators_identity(company_id)
    colleagues = await operator("MintKey", pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ), who=colleague)
    nobodys, _ = await operator.minted(company_id)
    who, _, ((key_id, key), *_) = await left_behind(operator, company_id, 2)
    keys = await listed(operator, company_id)
    says = [keys[number].HasField("administrator_active") for number in (colleagues.key_id, nobodys, key_id)]
    assert says == [True, False, True]
    assert keys[colleagues.key_id].administrator_active and not keys[key_id].administrator_active
    assert set(await listed(operator, company_id, administrator_id=colleague.administrator_id)) == {colleagues.key_id}
    named = await operator(
        "BatchGetActors",
        actors_pb2.BatchGetActorsRequest(
            actors=[f"caller:{key_id}", f"api_key:{colleagues.key_id}", f"caller:{nobodys}", who.actor]
        ),
        who=colleague,
    )
    left_behind_key, kept, without, person = named.actors
    assert left_behind_key.administrator_name == person.name and left_behind_key.HasField("administrator_active")
    assert not left_behind_key.administrator_active and kept.administrator_active
    assert not without.HasField("administrator_active") and not person.HasField("administrator_active")
    assert await minter_of_a_write(api, contexts, key) == who.administrator_id


async def test_an_administrator_takes_over_one_key_whose_secret_and_rights_stay(
    api: Api, operator: Operator, company_id: int, contexts: Contexts
) -> None:
    who, _, ((key_id, key), (other_id, _)) = await left_behind(operator, company_id, 2)
    before = await listed(operator, company_id)
    assert await minter_of_a_write(api, contexts, key) == who.administrator_id
    taker = await operator.administrators_identity(company_id)
    request = pb.TakeOverKeysRequest(idempotency_key="t", key_id=key_id)
    (taken,) = (await operator("TakeOverKeys", request, who=taker)).keys
    assert (taken.administrator_id, taken.administrator_active) == (taker.administrator_id, True)
    after = await listed(operator, company_id)
    assert after[key_id] == taken and after[other_id] == before[other_id]
    # What a use of the key changes is not of the act.
    for name in ("administrator_id", "administrator_email", "administrator_name", "administrator_active", *LAST_USE):
        for compared in (before[key_id], taken):
            compared.ClearField(name)  # type: ignore[arg-type]
    assert taken == before[key_id]

    async def names_the_taker() -> bool:
        return await minter_of_a_write(api, contexts, key) == taker.administrator_id

    await eventually(names_the_taker)
    entries = [entry for entry in await operator.audit(company_id, "key") if entry[1] == "key.taken_over"]
    old, new = {"administrator_id": who.administrator_id}, {"administrator_id": taker.administrator_id}
    assert entries == [(taker.actor, "key.taken_over", key_id, old, new)]
    # Sent again it is the same act; another one finds that its administrator works here.
    assert len((await operator("TakeOverKeys", request, who=taker)).keys) == 1
    request.idempotency_key = "another"
    assert await refused(operator("TakeOverKeys", request, who=taker)) == (422, "invalid_request")
    assert [entry for entry in await operator.audit(company_id, "key") if entry[1] == "key.taken_over"] == entries


async def test_all_working_keys_are_taken_over_in_one_act_and_each_is_on_record(
    operator: Operator, company_id: int
) -> None:
    who, email, minted = await left_behind(operator, company_id, 4)
    ids = [key_id for key_id, _ in minted]
    await operator.revoke(ids[1])
    taker = await operator.administrators_identity(company_id)
    taker_email = await operator.administrator(company_id)
    # The operator names who takes them over; a person who acts is that one.
    for requested in (
        pb.TakeOverKeysRequest(idempotency_key="o", of_email=email.upper()),
        pb.TakeOverKeysRequest(idempotency_key="o", of_email=email, administrator_email="a b"),
    ):
        assert (await refused(operator("TakeOverKeys", requested)))[0] == 400
    strange = pb.TakeOverKeysRequest(idempotency_key="o", of_email=email, administrator_email=taker_email)
    assert (await refused(operator("TakeOverKeys", strange, who=taker)))[0] == 422
    request = pb.TakeOverKeysRequest(idempotency_key="t", of_administrator_id=id_of(who))
    taken = (await operator("TakeOverKeys", request, who=taker)).keys
    assert [key.id for key in taken] == [ids[0], *ids[2:]]
    assert {key.administrator_id for key in taken} == {taker.administrator_id}
    assert (await listed(operator, company_id))[ids[1]].administrator_id == who.administrator_id
    entries = [entry for entry in await operator.audit(company_id, "key") if entry[1] == "key.taken_over"]
    assert [entry[2] for entry in entries] == [ids[0], *ids[2:]]
    # Whoever comes back finds them with their new administrator.
    back = ReactivateAdministratorRequest(idempotency_key="b", administrator_id=id_of(who))
    await operator("ReactivateAdministrator", back, company_id)
    assert await listed(operator, company_id, administrator_id=who.administrator_id, active_only=True) == {}
    await deactivate(operator, taker)
    named = pb.TakeOverKeysRequest(idempotency_key="n", of_administrator_id=id_of(taker))
    named.administrator_email = taker_email
    assert {key.administrator_email for key in (await operator("TakeOverKeys", named)).keys} == {taker_email}


async def test_what_may_not_be_taken_over(operator: Operator, company_id: int) -> None:
    taker = await operator.administrators_identity(company_id)
    who, email, ((revoked, _), (living, _)) = await left_behind(operator, company_id, 2)
    await operator.revoke(revoked)
    nobodys, _ = await operator.minted(company_id)
    working = await operator.administrators_identity(company_id)
    working_key = await operator("MintKey", pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ), who=working)
    for number, key_id in enumerate((revoked, nobodys, working_key.key_id)):
        request = pb.TakeOverKeysRequest(idempotency_key=f"k{number}", key_id=key_id)
        assert await refused(operator("TakeOverKeys", request, who=taker)) == (422, "invalid_request")
    request = pb.TakeOverKeysRequest(idempotency_key="w", of_administrator_id=id_of(working))
    assert await refused(operator("TakeOverKeys", request, who=taker)) == (422, "invalid_request")
    # Nor by one who is deactivated.
    request = pb.TakeOverKeysRequest(idempotency_key="d", key_id=living, administrator_email=email)
    assert await refused(operator("TakeOverKeys", request)) == (422, "invalid_request")
    before = await listed(operator, company_id)
    stranger = await operator.administrators_identity(await operator.company())
    for number, request in enumerate(
        (
            pb.TakeOverKeysRequest(key_id=living),
            pb.TakeOverKeysRequest(of_email=email),
            pb.TakeOverKeysRequest(of_administrator_id=id_of(who)),
            pb.TakeOverKeysRequest(of_administrator_id=2**62),
        )
    ):
        request.idempotency_key = f"s{number}"
        assert await refused(operator("TakeOverKeys", request, who=stranger)) == (404, "not_found")
    assert await refused(operator("TakeOverKeys", pb.TakeOverKeysRequest(idempotency_key="n"), who=taker)) == (
        400,
        "invalid_request",
    )
    assert await listed(operator, company_id) == before
    assert {entry[1] for entry in await operator.audit(company_id, "key")} == {"key.minted", "key.revoked"}


async def test_all_keys_of_an_administrator_are_revoked_in_one_act(
    api: Api, operator: Operator, company_id: int
) -> None:
    colleague = await operator.administrators_identity(company_id)
    kept = await operator("MintKey", pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ), who=colleague)
    who, email, minted = await left_behind(operator, company_id, 3)
    for _, key in minted:
        assert (await api.get("/whoami", key)).status == 200  # from now on it is cached
    stranger = await operator.administrators_identity(await operator.company())
    for request in (
        pb.RevokeKeysRequest(idempotency_key="s", of_email=email),
        pb.RevokeKeysRequest(idempotency_key="s", of_administrator_id=id_of(who)),
        pb.RevokeKeysRequest(idempotency_key="s", key_id=minted[0][0]),
    ):
        assert await refused(operator("RevokeKeys", request, who=stranger)) == (404, "not_found")
    request = pb.RevokeKeysRequest(idempotency_key="r", of_email=email)
    revoked = (await operator("RevokeKeys", request, who=colleague)).keys
    assert [key.id for key in revoked] == [key_id for key_id, _ in minted]
    assert all(key.HasField("revoked_at") for key in revoked)
    for _, key in minted:

        async def is_refused(key: str = key) -> bool:
            answer = await api.get("/whoami", key)
            return answer.status == 401 and answer.code == "key_revoked"

        await eventually(is_refused)
    assert (await api.get("/whoami", kept.key)).status == 200
    entries = [entry for entry in await operator.audit(company_id, "key") if entry[1] == "key.revoked"]
    assert [(entry[0], entry[2]) for entry in entries] == [(colleague.actor, key_id) for key_id, _ in minted]
    assert (await operator("RevokeKeys", request, who=colleague)).keys == revoked
    request.idempotency_key = "again"
    assert not (await operator("RevokeKeys", request, who=colleague)).keys
    # One that was revoked before is as it was.
    single = pb.RevokeKeysRequest(idempotency_key="one", key_id=minted[0][0])
    assert (await operator("RevokeKeys", single)).keys == [revoked[0]]
    assert len([entry for entry in await operator.audit(company_id, "key") if entry[1] == "key.revoked"]) == 3


async def test_of_two_who_take_over_at_once_one_does(operator: Operator, company_id: int) -> None:
    who, _, minted = await left_behind(operator, company_id, 5)
    takers = [await operator.administrators_identity(company_id) for _ in range(4)]
    request = pb.TakeOverKeysRequest(idempotency_key="t", of_administrator_id=id_of(who))
    answers = await asyncio.gather(*(operator("TakeOverKeys", request, who=taker) for taker in takers))
    assert sorted(len(answer.keys) for answer in answers) == [0, 0, 0, 5]
    (taker_id,) = {key.administrator_id for key in (await listed(operator, company_id)).values()}
    (taken,) = [answer.keys for answer in answers if answer.keys]
    assert taken[0].administrator_id == taker_id
    entries = [entry for entry in await operator.audit(company_id, "key") if entry[1] == "key.taken_over"]
    assert sorted(entry[2] for entry in entries) == sorted(key_id for key_id, _ in minted)


async def test_both_acts_ask_for_a_confirmation(operator: Operator, company_id: int) -> None:
    who, _, ((key_id, _),) = await left_behind(operator, company_id, 1)
    colleague = await operator.administrators_identity(company_id)
    long_ago = replace(
        colleague, stepped_up_at=int((datetime.datetime.now() - datetime.timedelta(hours=1)).timestamp())
    )
    for rpc, request in (
        ("TakeOverKeys", pb.TakeOverKeysRequest(idempotency_key="t", key_id=key_id)),
        ("RevokeKeys", pb.RevokeKeysRequest(idempotency_key="r", of_administrator_id=id_of(who))),
    ):
        assert await refused(operator(rpc, request, who=long_ago)) == (403, "step_up_required")
    (key,) = (await listed(operator, company_id)).values()
    assert key.administrator_id == who.administrator_id and not key.HasField("revoked_at")
