"""Keys that are minted once, expire, are rotated with an overlap, and are listed page by page."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from gateway.identity.keys import rules
from makeready.identity.v1 import identity_pb2 as pb
from testkit.gateways import Operator
from testkit.patience import PATIENCE_SECONDS
from testkit.raw_http import Api, Response

DAY = datetime.timedelta(days=1)


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def mint(company_id: int, **fields: Any) -> pb.MintKeyRequest:
    expires_at = fields.pop("expires_at", None)
    request = pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ, **fields)
    if expires_at is not None:
        request.expires_at.FromDatetime(expires_at)
    return request


async def refused(call: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as refusal:
        await call
    assert refusal.value.message.endswith(".") and ". " not in refusal.value.message
    return refusal.value.status, refusal.value.code


async def until(ask: Callable[[], Awaitable[Response]], is_it: Callable[[Response], bool]) -> Response:
    """The first answer that is as wanted."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            answer = await ask()
            if is_it(answer):
                return answer
            await asyncio.sleep(0.5)  # within the rate limit


async def rows(database: Database, sql: str, *values: object) -> list[Any]:
    async with database.connection() as connection:
        records: list[Any] = await connection.raw.fetch(sql, *values)
        return records


async def key_ids(operator: Operator, company_id: int, **fields: Any) -> list[int]:
    listed = await operator("ListKeys", pb.ListKeysRequest(company_id=company_id, **fields))
    return [key.id for key in listed.keys]


async def test_a_form_that_is_sent_twice_mints_one_key(operator: Operator, company_id: int) -> None:
    who = await operator.administrators_identity(company_id)
    request = mint(company_id, name="Sync", idempotency_key="act-1")
    first = await operator("MintKey", request, who=who)
    again = await operator("MintKey", request, who=who)
    assert first == again and first.key.startswith(rules.KEY_MARK)
    assert await key_ids(operator, company_id) == [first.key_id]
    other = mint(company_id, name="Other", idempotency_key="act-1")
    assert await refused(operator("MintKey", other, who=who)) == (409, "idempotency_mismatch")
    assert len([entry for entry in await operator.audit(company_id) if entry[1] == "key.minted"]) == 1


async def test_forms_that_are_sent_at_once_mint_one_key(operator: Operator, company_id: int) -> None:
    request = mint(company_id, idempotency_key="act-2")
    answers = await asyncio.gather(*(operator("MintKey", request) for _ in range(8)), return_exceptions=True)
    keys = {answer.key for answer in answers if not isinstance(answer, BaseException)}
    assert len(keys) == 1 and "" not in keys
    assert {answer.code for answer in answers if isinstance(answer, Refusal)} <= {"idempotency_in_progress"}
    assert len(await key_ids(operator, company_id)) == 1


async def test_requests_without_a_key_of_their_own_mint_a_key_each(operator: Operator, company_id: int) -> None:
    minted = [await operator("MintKey", mint(company_id)) for _ in range(2)]
    assert await key_ids(operator, company_id) == [response.key_id for response in minted]


async def test_the_database_holds_nothing_of_a_key_that_opens_anything(
    operator: Operator, company_id: int, database: Database
) -> None:
    minted = await operator("MintKey", mint(company_id, idempotency_key="act-3"))
    ((reply,),) = await rows(database, "SELECT reply FROM idempotency WHERE company_id = $1", company_id)
    stored = pb.MintKeyResponse.FromString(reply)
    secret = minted.key[len(rules.visible(minted.key)) :]
    assert stored.key and secret not in stored.key and secret.encode() not in reply
    ((digest,),) = await rows(database, "SELECT digest FROM api_key WHERE id = $1", minted.key_id)
    assert digest == hashlib.sha256(minted.key.encode()).digest()


async def test_after_a_day_a_form_sent_again_gets_no_key(
    operator: Operator, company_id: int, database: Database
) -> None:
    request = mint(company_id, idempotency_key="act-4")
    minted = await operator("MintKey", request)
    for age, key in ((86_000, minted.key), (86_400, "")):
        ((reply,),) = await rows(database, "SELECT reply FROM idempotency WHERE company_id = $1", company_id)
        stored = pb.MintKeyResponse.FromString(reply)
        stored.key = f"{int(time.time()) - age} {stored.key.partition(' ')[2]}"
        await rows(
            database,
            "UPDATE idempotency SET reply = $2 WHERE company_id = $1",
            company_id,
            stored.SerializeToString(),
        )
        assert await operator("MintKey", request) == pb.MintKeyResponse(key_id=minted.key_id, key=key)


@pytest.mark.parametrize("ahead", [-DAY, datetime.timedelta(0), 4000 * DAY])
async def test_a_key_ends_in_the_future_or_is_not_minted(
    operator: Operator, company_id: int, ahead: datetime.timedelta
) -> None:
    with pytest.raises(Refusal) as refusal:
        await operator("MintKey", mint(company_id, expires_at=now() + ahead))
    assert refusal.value.status == 422 and "expires_at" in refusal.value.message
    unheard = mint(company_id)
    unheard.expires_at.seconds = 2**60
    assert await refused(operator("MintKey", unheard)) == (400, "invalid_request")
    assert await key_ids(operator, company_id) == []


async def test_an_expired_key_is_refused_as_revoked_and_says_since_when(
    api: Api, operator: Operator, company_id: int
) -> None:
    for seconds in (3, 12, 48):  # on a busy machine an early end may pass before the key is used
        end = now() + datetime.timedelta(seconds=seconds)
        minted = await operator("MintKey", mint(company_id, expires_at=end))
        if (await api.get("/whoami", minted.key)).status == 200:  # from now on the key is cached
            break
        await operator("RevokeKey", pb.RevokeKeyRequest(key_id=minted.key_id))
    await until(lambda: api.get("/whoami", minted.key), lambda answer: answer.status != 200)
    assert now() >= end
    answer = await api.get("/whoami", minted.key)
    assert (answer.status, answer.code) == (401, "key_revoked")
    assert f"expired on {end:%Y-%m-%d at %H:%M:%S UTC}" in answer.json["error"]["message"]
    assert answer.header("WWW-Authenticate") == "Bearer"
    key = (await operator("GetKey", pb.GetKeyRequest(key_id=minted.key_id))).key
    assert key.expires_at.ToDatetime(datetime.UTC) == end and not key.HasField("revoked_at")
    assert await key_ids(operator, company_id, active_only=True) == []
    assert minted.key_id in await key_ids(operator, company_id)


# Rotation


async def test_a_rotation_makes_a_key_like_the_old_one_which_ends_after_the_overlap(
    api: Api, operator: Operator, company_id: int
) -> None:
    who = await operator.administrators_identity(company_id)
    minted = await operator("MintKey", mint(company_id, name="Sync"))
    old_id, old_key = minted.key_id, minted.key
    request = pb.RotateKeyRequest(idempotency_key="r", key_id=old_id, overlap_days=7)
    began = now()
    rotated = await operator("RotateKey", request, who=who)
    assert await operator("RotateKey", request, who=who) == rotated
    new, old = rotated.new_key, rotated.old_key
    assert (new.name, new.scope, new.replaces, new.HasField("expires_at")) == ("Sync", pb.SCOPE_READ, old_id, False)
    assert new.administrator_id == who.administrator_id and new.administrator_email
    assert (old.id, old.replaced_by, old.HasField("revoked_at")) == (old_id, new.id, False)
    assert began + 7 * DAY <= old.expires_at.ToDatetime(datetime.UTC) <= now() + 7 * DAY
    assert rotated.key != old_key
    for key in (old_key, rotated.key):
        assert (await api.get("/whoami", key)).status == 200
    assert await key_ids(operator, company_id) == [old_id, new.id]
    entries = {entry[1]: entry for entry in await operator.audit(company_id, "key") if entry[0] == who.actor}
    assert entries["key.rotated"][2] == old_id and entries["key.rotated"][4]["replaced_by"] == new.id
    assert entries["key.minted"][2] == new.id and entries["key.minted"][4]["replaces"] == old_id


async def test_without_an_overlap_the_old_key_is_revoked_at_once(api: Api, operator: Operator, company_id: int) -> None:
    old_id, old_key = await operator.minted(company_id, "read")
    assert (await api.get("/whoami", old_key)).status == 200
    rotated = await operator("RotateKey", pb.RotateKeyRequest(idempotency_key="r", key_id=old_id))
    assert rotated.old_key.HasField("revoked_at")
    answer = await until(lambda: api.get("/whoami", old_key), lambda answer: answer.status != 200)
    assert answer.code == "key_revoked"
    assert (await api.get("/whoami", rotated.key)).status == 200


async def test_an_overlap_lengthens_no_key_and_the_new_one_lives_as_long(operator: Operator, company_id: int) -> None:
    minted = await operator("MintKey", mint(company_id, expires_at=now() + 2 * DAY))
    request = pb.RotateKeyRequest(idempotency_key="r", key_id=minted.key_id, overlap_days=30)
    rotated = await operator("RotateKey", request)
    ends = [key.expires_at.ToDatetime(datetime.UTC) for key in (rotated.old_key, rotated.new_key)]
    assert datetime.timedelta(0) < ends[1] - ends[0] < datetime.timedelta(minutes=1)


async def test_a_key_that_has_ended_or_was_replaced_is_not_rotated(operator: Operator, company_id: int) -> None:
    revoked, _ = await operator.minted(company_id)
    await operator.revoke(revoked)
    replaced, _ = await operator.minted(company_id)
    await operator("RotateKey", pb.RotateKeyRequest(idempotency_key="a", key_id=replaced, overlap_days=1))
    for key_id in (revoked, replaced):
        request = pb.RotateKeyRequest(idempotency_key=f"b{key_id}", key_id=key_id, overlap_days=1)
        assert await refused(operator("RotateKey", request)) == (422, "invalid_request")
    live, _ = await operator.minted(company_id)
    for days in (-1, 31):
        request = pb.RotateKeyRequest(idempotency_key="c", key_id=live, overlap_days=days)
        assert await refused(operator("RotateKey", request)) == (422, "invalid_request")
    assert len(await key_ids(operator, company_id)) == 4


async def test_of_two_rotations_at_once_one_is_made(operator: Operator, company_id: int) -> None:
    key_id, _ = await operator.minted(company_id)
    requests = [pb.RotateKeyRequest(idempotency_key=f"r{n}", key_id=key_id, overlap_days=1) for n in range(6)]
    answers = await asyncio.gather(*(operator("RotateKey", request) for request in requests), return_exceptions=True)
    statuses = [answer.status if isinstance(answer, Refusal) else 0 for answer in answers]
    assert sorted(statuses) == [0, 422, 422, 422, 422, 422]
    assert len(await key_ids(operator, company_id)) == 2


# Lists


async def test_keys_are_listed_a_page_at_a_time(operator: Operator, company_id: int) -> None:
    minted = [(await operator.minted(company_id))[0] for _ in range(5)]
    await operator.revoke(minted[1])
    first = await operator("ListKeys", pb.ListKeysRequest(company_id=company_id, limit=3))
    assert [key.id for key in first.keys] == minted[:3] and first.next_after_id == minted[2]
    last = await operator("ListKeys", pb.ListKeysRequest(company_id=company_id, limit=3, after_id=minted[2]))
    assert [key.id for key in last.keys] == minted[3:] and not last.HasField("next_after_id")
    assert await key_ids(operator, company_id, active_only=True) == [minted[0], *minted[2:]]
    for limit in (0, 201, -1):
        bad = pb.ListKeysRequest(company_id=company_id, limit=limit)
        assert await refused(operator("ListKeys", bad)) == (400, "invalid_request")


async def test_another_companys_key_is_not_there(operator: Operator, company_id: int) -> None:
    who = await operator.administrators_identity(await operator.company())
    key_id, _ = await operator.minted(company_id)
    for absent_id in (key_id, 2**62, 0):
        get = operator("GetKey", pb.GetKeyRequest(key_id=absent_id), who=who)
        assert await refused(get) == (404, "not_found")
        rotate = pb.RotateKeyRequest(idempotency_key="x", key_id=absent_id, overlap_days=1)
        assert await refused(operator("RotateKey", rotate, who=who)) == (404, "not_found")
    assert await key_ids(operator, company_id) == [key_id]
    key = (await operator("GetKey", pb.GetKeyRequest(key_id=key_id))).key
    assert (key.id, key.company_id, key.HasField("administrator_id"), key.HasField("last_used_at")) == (
        key_id,
        company_id,
        False,
        False,
    )


# Company settings


async def test_a_company_is_renamed_by_its_administrator_and_every_context_hears_of_it(
    api: Api, operator: Operator, company_id: int
) -> None:
    who = await operator.administrators_identity(company_id)
    key = await operator.key(company_id, "read")
    assert (await api.get("/whoami", key)).json["company"]["name"] == "Maple Homes"
    request = pb.UpdateCompanyRequest(company_id=company_id, name="  Oak & Ash ")
    changed = (await operator("UpdateCompany", request, who=who)).company
    assert changed.name == "Oak & Ash"
    assert (await operator("GetCompany", pb.GetCompanyRequest(company_id=company_id), who=who)).company == changed
    await until(lambda: api.get("/whoami", key), lambda answer: answer.json["company"]["name"] == "Oak & Ash")
    assert (await operator.audit(company_id, "company"))[-1] == (
        who.actor,
        "company.updated",
        company_id,
        {"name": "Maple Homes"},
        {"name": "Oak & Ash"},
    )
    for name in ("", " ", "x" * 201, "a\nb"):
        bad = pb.UpdateCompanyRequest(company_id=company_id, name=name)
        assert await refused(operator("UpdateCompany", bad, who=who)) == (400, "invalid_request")


async def test_another_company_is_not_there(operator: Operator, company_id: int) -> None:
    who = await operator.administrators_identity(await operator.company())
    for absent_id in (company_id, 2**62, 0):
        get = operator("GetCompany", pb.GetCompanyRequest(company_id=absent_id), who=who)
        assert await refused(get) == (404, "not_found")
