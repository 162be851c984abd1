"""Keys of administrators who are deactivated, in the browser."""

from __future__ import annotations

from typing import Any

import pytest

from chassis.refusals import Refusal
from makeready.common.v1 import audit_pb2
from makeready.identity.v1 import identity_pb2 as pb

from .browsing import Browser
from .samples import HOSTILE, keys
from .stubs import Stubs, ago

TAKE_OVER, REVOKE = "identity.KeysService/TakeOverKeys", "identity.KeysService/RevokeKeys"
LEAVER = "/settings/administrators/3"
EMAIL = f"{HOSTILE}@x.example"


def confirm_first(*_: Any) -> Any:
    raise Refusal(403, "step_up_required", "Confirm who you are first.")


async def test_keys_of_a_deactivated_administrator_say_so_where_keys_stand(administrator: Browser) -> None:
    page = await administrator.get("/keys")
    row = page.words[page.words.index("Meter readings") :]
    assert "deactivated" in row[: row.index("never")]
    assert "is deactivated, and 1 key they created still works. Take over or revoke" in page.words
    assert f'href="{LEAVER}#keys"' in page.text and HOSTILE not in page.text
    assert page.words.count("deactivated") == 2  # no other key's administrator is
    table = (await administrator.get("/keys?csv")).text.splitlines()
    assert table[0].endswith(",minter_deactivated")
    assert [line.rpartition(",")[2] for line in table[1:]] == ["no", "no", "no", "yes"]
    home = await administrator.get("/keys/home")
    assert "1 key of a deactivated administrator" in home.words
    key = await administrator.get("/keys/5")
    assert "who created it, is deactivated. The key still works." in key.words
    assert "/keys/5/take-over" in key.text
    assert "take-over" not in (await administrator.get("/keys/1")).text
    assert "take-over" not in (await administrator.get("/keys/3")).text  # nobody's


async def test_the_audit_log_says_whose_keys_they_are(administrator: Browser, stubs: Stubs) -> None:
    entries = [
        audit_pb2.AuditEntry(
            id=2, recorded_at=ago(hours=1), actor="caller:5", action="webhook_subscription.created",
            subject="webhook_subscription", subject_id=7, before=b"{}", after=b"{}"),
        audit_pb2.AuditEntry(
            id=1, recorded_at=ago(hours=2), actor="administrator:1", action="key.renamed", subject="key", subject_id=5,
            before=b"{}", after=b"{}"),
    ]  # fmt: skip
    hooks, keys_own = entries[:1], entries[1:]
    stubs.answers["svc-webhooks common.AuditService/ListAudit"] = audit_pb2.ListAuditResponse(entries=hooks)
    stubs.answers["gateway common.AuditService/ListAudit"] = audit_pb2.ListAuditResponse(entries=keys_own)
    page = await administrator.get("/audit")
    assert page.words.count(", who is deactivated") + page.words.count("(deactivated)") == 2
    panel = await administrator.get("/audit/panel?kind=webhook_subscription&id=7")
    assert panel.words.count("(deactivated)") == 1


async def test_a_key_is_taken_over_after_a_confirmation(administrator: Browser, stubs: Stubs) -> None:
    stubs.answers[TAKE_OVER] = confirm_first
    await administrator.get("/keys/5")
    confirmation = await administrator.send("/keys/5/take-over")
    assert confirmation.title == "Confirm your identity"
    stubs.answers[TAKE_OVER] = pb.TakeOverKeysResponse(keys=keys()[4:5])
    await administrator.get("/keys/5")
    done = await administrator.send("/keys/5/take-over")
    assert (done.status, done.headers["Location"]) == (303, "/keys/5")
    request = stubs.called(TAKE_OVER)[-1]
    assert (request.key_id, bool(request.idempotency_key), request.administrator_email) == (5, True, "")
    assert "You took over the key." in (await administrator.follow(done)).words

    def too_late(*_: Any) -> Any:
        raise Refusal(422, "invalid_request", "The key's administrator has not been deactivated.")

    stubs.answers[TAKE_OVER] = too_late
    await administrator.get("/keys/5")
    refused = await administrator.send("/keys/5/take-over")
    assert refused.status == 422 and "has not been deactivated." in refused.words


async def test_the_page_of_an_administrator_names_the_keys_that_stay(administrator: Browser, stubs: Stubs) -> None:
    active = await administrator.get("/settings/administrators/2")
    assert "1 API key they created keeps working : take over or revoke afterwards." in active.words
    assert "Leasing sync" in active.words and "take-over-keys" not in active.text and "revoke-keys" not in active.text
    gone = await administrator.get(LEAVER)
    assert "1 API key they created still works: take over or revoke" in gone.words
    assert "Meter readings" in gone.words
    pages = [keys()[4:5], keys()[3:4]]

    def paged(request: Any, _who: Any) -> Any:
        assert (request.administrator_id, request.active_only) == (3, True)
        answer = pb.ListKeysResponse(keys=pages[request.after_id])
        if not request.after_id:
            answer.next_after_id = 1
        return answer

    stubs.answers["identity.KeysService/ListKeys"] = paged
    both = await administrator.get(LEAVER)
    assert "2 API keys they created still work: take over or revoke" in both.words
    assert "Take over 2 keys" in both.words and "Revoke 2 keys" in both.words
    stubs.answers["identity.KeysService/ListKeys"] = pb.ListKeysResponse()
    none = await administrator.get("/settings/administrators/2")
    assert "They have no active API keys." in none.words and "#keys" not in none.text


@pytest.mark.parametrize(
    ("act", "rpc", "fields", "message"),
    [
        ("take-over-keys", TAKE_OVER, {}, "Keys taken over."),
        ("revoke-keys", REVOKE, {"email": f" {EMAIL} "}, "Keys revoked."),
    ],
)
async def test_all_keys_of_a_deactivated_administrator_are_one_act(
    administrator: Browser, stubs: Stubs, act: str, rpc: str, fields: dict[str, str], message: str
) -> None:
    path = f"{LEAVER}/{act}"
    if fields:
        await administrator.get(LEAVER)
        mistyped = await administrator.send(path, email="somebody@x.example")
        assert mistyped.status == 422 and "Type the e-mail exactly as shown" in mistyped.words
        assert not stubs.called(rpc)
    stubs.answers[rpc] = confirm_first
    await administrator.get(LEAVER)
    assert (await administrator.send(path, **fields)).title == "Confirm your identity"
    answer = pb.TakeOverKeysResponse if rpc == TAKE_OVER else pb.RevokeKeysResponse
    stubs.answers[rpc] = answer(keys=keys()[4:5])
    await administrator.get(LEAVER)
    done = await administrator.send(path, **fields)
    assert (done.status, done.headers["Location"]) == (303, LEAVER)
    request = stubs.called(rpc)[-1]
    assert request.of_administrator_id == 3 and request.idempotency_key
    assert message in (await administrator.follow(done)).words
