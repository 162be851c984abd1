"""Second factors, passkeys, links, and the accounts of staff."""

from __future__ import annotations

import asyncio
import base64
import datetime
import hashlib
import json
import string
import time
from pathlib import Path
from typing import Any

import pytest

from chassis.auth.identity import STAFF
from chassis.db.database import Database
from gateway.identity.accounts.rules import TOTP_SECONDS
from gateway.identity.accounts.sessions.queries import purge
from gateway.identity.accounts.signed_texts import SignedTexts
from gateway.identity.accounts.totp import TotpFault, TotpSecrets
from makeready.common.v1 import options_pb2
from makeready.identity.v1 import accounts_pb2, actors_pb2, administrators_pb2, identity_pb2
from makeready.identity.v1 import sessions_pb2 as pb
from makeready.identity.v1 import staff_commands_pb2 as desk
from testkit.gateways import Gateway, Operator

from .signing_in import BETTER, GOOD, App, Authenticator, Console, administrator
from .test_sessions import age, execute, refused


@pytest.fixture
def console(gateway: Gateway, identity_keys: Path) -> Console:
    return Console(gateway.grpc_target, identity_keys)


@pytest.fixture
def origin(gateway: Gateway) -> str:
    return gateway.environment["MAKEREADY_CONSOLE_URL"]


async def with_totp(console: Console, text: str) -> tuple[App, list[str]]:
    """Adds an authenticator app to a session's account, by the code of the step before: later ones are unused."""
    enrolment = await console.account(text, "EnrolTotp", accounts_pb2.EnrolTotpRequest())
    assert enrolment.uri.startswith("otpauth://totp/Makeready:") and f"secret={enrolment.secret}" in enrolment.uri
    app = App(enrolment.secret)
    if (seconds_left := TOTP_SECONDS - time.time() % TOTP_SECONDS) < 10:  # the code is good until this step ends
        await asyncio.sleep(seconds_left)
    request = accounts_pb2.ConfirmTotpRequest(code=app.code(time.time() - TOTP_SECONDS))
    return app, list((await console.account(text, "ConfirmTotp", request)).recovery_codes)


async def step_of(console: Console, email: str, password: str = GOOD) -> str:
    answer = await console("SignIn", email=email, password=password)
    assert answer.WhichOneof("outcome") == "step"
    step: str = answer.step
    return step


# Authenticator apps and recovery codes


async def test_a_code_signs_in_once_even_at_once(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email = await administrator(operator, company_id)
    text = (await console.sign_in(email)).text
    app, codes = await with_totp(console, text)
    assert len(codes) == len(set(codes)) == 10
    code = app.code(time.time())
    steps = [await step_of(console, email) for _ in range(3)]
    answers = await asyncio.gather(
        *(console("SecondFactor", step=step, code=f" {code[:3]} {code[3:]} ") for step in steps), return_exceptions=True
    )
    (signed_in,) = [answer for answer in answers if isinstance(answer, pb.SecondFactorResponse)]
    assert signed_in.session.session.has_totp and not signed_in.HasField("recovery_codes_left")
    assert (await refused(console("SecondFactor", step=await step_of(console, email), code=code))).status == 401
    stored = await execute(
        database,
        "SELECT totp_sealed::text, (SELECT string_agg(digest::text, ',') FROM recovery_code) AS codes "
        "FROM account WHERE email = $1",
        email,
    )
    assert not any(recovery_code.replace("-", "").encode().hex() in str(stored) for recovery_code in codes)


async def test_a_step_needs_its_password_and_a_wrong_code_delays(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email = await administrator(operator, company_id)
    await with_totp(console, (await console.sign_in(email)).text)
    step = await step_of(console, email)
    for wrong in ("000000", "", "ABCD-EFGH-2345-6777", "x" * 1000, "12\x003456"):
        assert (await refused(console("SecondFactor", step=step, code=wrong))).status == 401
    digest = hashlib.sha256(email.encode()).digest()
    await execute(database, "UPDATE sign_in_delay SET next_at = next_at + '40 s' WHERE email_digest = $1", digest)
    assert (await refused(console("SecondFactor", step=step, code="000000"))).code == "sign_in_delayed"
    assert (await refused(console("SignIn", email=email, password=GOOD))).code == "sign_in_delayed", (
        "one count for both"
    )
    for bad in ("", "x", step[:-1]):
        assert (await refused(console("SecondFactor", step=bad, code="000000"))).code == "sign_in_failed"


async def test_a_recovery_code_signs_in_once_and_new_ones_replace_it(
    operator: Operator, company_id: int, console: Console
) -> None:
    email = await administrator(operator, company_id)
    _, codes = await with_totp(console, (await console.sign_in(email)).text)
    signed_in = await console("SecondFactor", step=await step_of(console, email), code=codes[0].lower())
    assert signed_in.recovery_codes_left == 9
    assert (await refused(console("SecondFactor", step=await step_of(console, email), code=codes[0]))).status == 401
    text = signed_in.session.text
    new = (await console.account(text, "MakeRecoveryCodes", accounts_pb2.MakeRecoveryCodesRequest())).recovery_codes
    assert len(new) == 10 and not set(new) & set(codes)
    assert (await refused(console("SecondFactor", step=await step_of(console, email), code=codes[1]))).status == 401
    assert await console("SecondFactor", step=await step_of(console, email), code=new[0])
    account = (await console.account(text, "GetAccount", accounts_pb2.GetAccountRequest())).account
    assert account.recovery_codes_left == 9 and account.HasField("totp_since")


async def test_with_a_second_factor_a_password_may_be_shorter_and_the_factor_then_stays(
    operator: Operator, company_id: int, console: Console
) -> None:
    email = await administrator(operator, company_id)
    text = (await console.sign_in(email)).text
    app, _ = await with_totp(console, text)
    account = (await console.account(text, "GetAccount", accounts_pb2.GetAccountRequest())).account
    assert account.password_characters_min == 10
    short = "x7Kp-2mQv9w"
    await console.account(text, "ChangePassword", accounts_pb2.ChangePasswordRequest(password=short))
    refusal = await refused(console.account(text, "RemoveTotp", accounts_pb2.RemoveTotpRequest()))
    assert refusal.status == 422 and "15 characters" in refusal.message
    await console.account(text, "ChangePassword", accounts_pb2.ChangePasswordRequest(password=BETTER))
    step = await step_of(console, email, BETTER)
    await console.account(text, "RemoveTotp", accounts_pb2.RemoveTotpRequest())
    assert (await refused(console("SecondFactor", step=step, code=app.code(time.time())))).status == 401
    assert await console.sign_in(email, BETTER)


async def test_a_confirmation_asks_for_the_code_too(operator: Operator, company_id: int, console: Console) -> None:
    email = await administrator(operator, company_id)
    text = (await console.sign_in(email)).text
    app, _ = await with_totp(console, text)
    assert (await refused(console("StepUp", session=text, password=GOOD))).code == "sign_in_failed"
    code = app.code(time.time())
    assert (await refused(console("StepUp", session=text, password="wrong", code=code))).code == "sign_in_failed"
    confirmed = await console("StepUp", session=text, password=GOOD, code=code)
    again = console("StepUp", session=confirmed.session.text, password=GOOD, code=code)
    assert (await refused(again)).code == "sign_in_failed", "each code once"


def test_secrets_are_sealed_for_one_account_and_open_with_an_older_key() -> None:
    old = TotpSecrets({"1": b"a" * 32})
    both = TotpSecrets({"2": b"b" * 32, "1": b"a" * 32})
    sealed = old.seal(7, "SECRET")
    assert b"SECRET" not in sealed and sealed != old.seal(7, "SECRET")
    assert both.open(7, sealed) == "SECRET" and both.open(7, both.seal(7, "SECRET")) == "SECRET"
    for secrets, account_id, bad in (
        (both, 8, sealed),
        (both, 7, sealed[:-1]),
        (both, 7, b""),
        (TotpSecrets({"2": b"b" * 32}), 7, sealed),
        (TotpSecrets({"1": b"b" * 32}), 7, sealed),
    ):
        with pytest.raises(TotpFault):
            secrets.open(account_id, bad)


async def test_an_account_adds_factors_only_after_a_confirmation(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    text = (await console.sign_in(await administrator(operator, company_id))).text
    await age(database, text, minutes=10)
    for rpc in (
        "ChangePassword",
        "StartAddingPasskey",
        "FinishAddingPasskey",
        "RemovePasskey",
        "EnrolTotp",
        "ConfirmTotp",
        "RemoveTotp",
        "MakeRecoveryCodes",
    ):
        request = getattr(accounts_pb2, f"{rpc}Request")()
        assert (await refused(console.account(text, rpc, request))).code == "step_up_required"
    assert await console.account(text, "GetAccount", accounts_pb2.GetAccountRequest())


# Passkeys


async def with_passkey(console: Console, text: str, origin: str, *, counts: bool = True) -> Authenticator:
    started = await console.account(text, "StartAddingPasskey", accounts_pb2.StartAddingPasskeyRequest())
    assert json.loads(started.options_json)["rp"] == {"id": "localhost", "name": "Makeready"}
    authenticator = Authenticator(origin, counts=counts)
    request = accounts_pb2.FinishAddingPasskeyRequest(
        ceremony=started.ceremony, credential_json=authenticator.create(started.options_json), name="Phone"
    )
    passkey = (await console.account(text, "FinishAddingPasskey", request)).passkey
    assert passkey.name == "Phone" and not passkey.HasField("last_used_at")
    return authenticator


async def test_a_passkey_signs_in_in_one_step_and_confirms(
    operator: Operator, company_id: int, console: Console, origin: str, database: Database
) -> None:
    email = await administrator(operator, company_id)
    first = await console.sign_in(email)
    await with_totp(console, first.text)
    key = await with_passkey(console, first.text, origin)
    started = await console("StartPasskey")
    assert "allowCredentials" not in started.options_json or not json.loads(started.options_json)["allowCredentials"]
    credential = key.get(started.options_json)
    signed_in = await console("FinishPasskey", ceremony=started.ceremony, credential_json=credential)
    assert signed_in.session.session.email == email and signed_in.session.session.has_passkey
    replayed = console("FinishPasskey", ceremony=started.ceremony, credential_json=credential)
    assert (await refused(replayed)).code == "sign_in_failed"

    text = signed_in.session.text
    await age(database, text, minutes=11)
    started = await console("StartPasskey", session=text)
    assert len(json.loads(started.options_json)["allowCredentials"]) == 1
    confirmed = await console("FinishPasskey", ceremony=started.ceremony, credential_json=key.get(started.options_json))
    assert confirmed.session.session.session_id == signed_in.session.session.session_id
    assert confirmed.session.session.HasField("step_up_until") and confirmed.session.text != text
    (passkey,) = (await console.account(first.text, "GetAccount", accounts_pb2.GetAccountRequest())).account.passkeys
    assert passkey.HasField("last_used_at")
    gone = accounts_pb2.RemovePasskeyRequest(passkey_id=passkey.passkey_id)
    await console.account(first.text, "RemovePasskey", gone)
    assert (await refused(console.account(first.text, "RemovePasskey", gone))).status == 404
    started = await console("StartPasskey")
    removed = console("FinishPasskey", ceremony=started.ceremony, credential_json=key.get(started.options_json))
    assert (await refused(removed)).code == "sign_in_failed"


async def test_a_passkey_without_verification_of_another_origin_or_counted_back_is_refused(
    operator: Operator, company_id: int, console: Console, origin: str
) -> None:
    email = await administrator(operator, company_id)
    text = (await console.sign_in(email)).text
    for other, verified in ((origin, False), ("http://localhost:1", True), ("https://evil.example", True)):
        started = await console.account(text, "StartAddingPasskey", accounts_pb2.StartAddingPasskeyRequest())
        request = accounts_pb2.FinishAddingPasskeyRequest(
            ceremony=started.ceremony,
            credential_json=Authenticator(other).create(started.options_json, verified=verified),
        )
        assert (await refused(console.account(text, "FinishAddingPasskey", request))).field == "credential_json"
    key = await with_passkey(console, text, origin)

    async def attempt(**how: Any) -> str:
        started = await console("StartPasskey")
        credential = key.get(started.options_json, **how)
        return (await refused(console("FinishPasskey", ceremony=started.ceremony, credential_json=credential))).code

    assert await attempt(verified=False) == "sign_in_failed"
    started = await console("StartPasskey")
    assert await console("FinishPasskey", ceremony=started.ceremony, credential_json=key.get(started.options_json))
    assert await attempt(counted=False) == "sign_in_failed", "a copy of the authenticator"
    key.handle = b"another account."
    assert await attempt() == "sign_in_failed"
    started = await console("StartPasskey")
    for bad in ("", "{}", "[]", "null", '{"rawId": 7}', "[" * 5000, '{"rawId": "AAAA", "id": "AAAA"}', "x" * 30_000):
        refusal = await refused(console("FinishPasskey", ceremony=started.ceremony, credential_json=bad))
        assert refusal.code == "sign_in_failed"


async def test_a_challenge_is_used_once_however_its_text_is_written(
    operator: Operator, company_id: int, console: Console, origin: str
) -> None:
    text = (await console.sign_in(await administrator(operator, company_id))).text
    key = await with_passkey(console, text, origin, counts=False)
    started = await console("StartPasskey")
    credential = key.get(started.options_json)
    assert await console("FinishPasskey", ceremony=started.ceremony, credential_json=credential)
    letters = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
    # The last character has bits that no byte of the content has.
    neighbours = [started.ceremony[:-1] + letters[letters.index(started.ceremony[-1]) ^ bits] for bits in range(16)]
    plain = started.ceremony.replace("-", "+").replace("_", "/")
    for again in (*neighbours, plain, *(started.ceremony + "=" * padding for padding in range(5))):
        replayed = console("FinishPasskey", ceremony=again, credential_json=credential)
        assert (await refused(replayed)).code == "sign_in_failed", again


async def test_an_answer_is_good_for_its_own_challenge_alone(
    operator: Operator, company_id: int, console: Console, origin: str
) -> None:
    email = await administrator(operator, company_id)
    text = (await console.sign_in(email)).text
    key = await with_passkey(console, text, origin, counts=False)
    entering, confirming = await console("StartPasskey"), await console("StartPasskey", session=text)
    adding = await console.account(text, "StartAddingPasskey", accounts_pb2.StartAddingPasskeyRequest())
    challenge_of_adding = json.dumps(
        json.loads(entering.options_json) | {"challenge": json.loads(adding.options_json)["challenge"]}
    )
    foreign = json.dumps(json.loads(entering.options_json) | {"rpId": "evil.example"})
    for ceremony, options in (
        (entering.ceremony, confirming.options_json),
        (confirming.ceremony, entering.options_json),
        (adding.ceremony, challenge_of_adding),
        (entering.ceremony, challenge_of_adding),
        (entering.ceremony, foreign),
    ):
        answer = console("FinishPasskey", ceremony=ceremony, credential_json=key.get(options))
        assert (await refused(answer)).code == "sign_in_failed"
    for ceremony in (entering.ceremony, confirming.ceremony):
        request = accounts_pb2.FinishAddingPasskeyRequest(
            ceremony=ceremony, credential_json=Authenticator(origin).create(adding.options_json)
        )
        assert (await refused(console.account(text, "FinishAddingPasskey", request))).field == "ceremony"
    await console("SignOut", session=text)
    answer = console("FinishPasskey", ceremony=confirming.ceremony, credential_json=key.get(confirming.options_json))
    assert (await refused(answer)).code == "sign_in_failed", "the session that it was to confirm is over"
    answers = await asyncio.gather(
        *(
            console("FinishPasskey", ceremony=entering.ceremony, credential_json=key.get(entering.options_json))
            for _ in range(8)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(answer, pb.FinishPasskeyResponse) for answer in answers) == 1


@pytest.mark.parametrize("confirms", [False, True])
async def test_a_challenge_is_good_for_ten_minutes_whatever_clock_made_it(
    operator: Operator, company_id: int, console: Console, origin: str, gateway: Gateway, confirms: bool
) -> None:
    text = (await console.sign_in(await administrator(operator, company_id))).text
    key = await with_passkey(console, text, origin, counts=False)
    started = await console("StartPasskey", session=text if confirms else "")
    name, _, material = gateway.environment["MAKEREADY_TOTP_KEYS"].partition(":")
    texts = SignedTexts({name: base64.b64decode(material)})
    content = texts.content("passkey", started.ceremony)
    assert content is not None
    credential = key.get(started.options_json)
    # The last two are those of gateways whose clock is ahead: a challenge is stored nowhere, so they go on making some.
    for seconds in (-86_400, -1, 3600 + 600, 86_400 + 600):
        ends_at = int(time.time()) + seconds
        ceremony = texts.sign("passkey", ends_at.to_bytes(8, "big") + content[8:])
        answer = console("FinishPasskey", ceremony=ceremony, credential_json=credential)
        assert (await refused(answer)).code == "sign_in_failed", seconds
    assert await console("FinishPasskey", ceremony=started.ceremony, credential_json=credential)


async def test_a_challenge_opens_nothing_of_an_account_that_was_deactivated_meanwhile(
    operator: Operator, company_id: int, console: Console, origin: str
) -> None:
    session = await console.sign_in(await administrator(operator, company_id))
    key = await with_passkey(console, session.text, origin, counts=False)
    challenges = [await console("StartPasskey"), await console("StartPasskey", session=session.text)]
    request = administrators_pb2.DeactivateAdministratorRequest(
        idempotency_key="deactivate", administrator_id=session.session.person_id
    )
    await operator("DeactivateAdministrator", request, company_id)
    for started in challenges:
        answer = console("FinishPasskey", ceremony=started.ceremony, credential_json=key.get(started.options_json))
        assert (await refused(answer)).code == "sign_in_failed"


async def test_a_challenge_stays_used_for_gateways_whose_clock_is_behind(
    operator: Operator, company_id: int, console: Console, origin: str, database: Database
) -> None:
    text = (await console.sign_in(await administrator(operator, company_id))).text
    key = await with_passkey(console, text, origin, counts=False)
    started = await console("StartPasskey")
    await console("FinishPasskey", ceremony=started.ceremony, credential_json=key.get(started.options_json))
    digest = hashlib.sha256(started.ceremony.encode()).digest()
    now = datetime.datetime.now(datetime.UTC)
    await execute(database, "UPDATE ceremony SET expires_at = $2 WHERE digest = $1", digest, now)
    for minutes, is_kept in ((4, True), (6, False)):
        await purge(database, now + datetime.timedelta(minutes=minutes))
        assert bool(await execute(database, "SELECT FROM ceremony WHERE digest = $1", digest)) is is_kept


async def test_a_recovery_code_of_many_requests_at_once_signs_in_one(
    operator: Operator, company_id: int, console: Console
) -> None:
    email = await administrator(operator, company_id)
    text = (await console.sign_in(email)).text
    _, codes = await with_totp(console, text)
    steps = [await step_of(console, email) for _ in range(3)]
    answers = await asyncio.gather(
        *(console("SecondFactor", step=step, code=codes[0]) for step in steps), return_exceptions=True
    )
    assert sum(isinstance(answer, pb.SecondFactorResponse) for answer in answers) == 1
    step = await step_of(console, email)
    await console.account(text, "ChangePassword", accounts_pb2.ChangePasswordRequest(password=BETTER))
    assert (await refused(console("SecondFactor", step=step, code=codes[1]))).code == "sign_in_failed", "its password"
    signed_in = await console("SecondFactor", step=await step_of(console, email, BETTER), code=codes[1])
    assert signed_in.recovery_codes_left == 8


async def test_someone_elses_passkey_confirms_no_session(
    operator: Operator, company_id: int, console: Console, origin: str
) -> None:
    mine, theirs = [(await console.sign_in(await administrator(operator, company_id))).text for _ in range(2)]
    await with_passkey(console, mine, origin)
    key = await with_passkey(console, theirs, origin)
    started = await console("StartPasskey", session=mine)
    answer = console("FinishPasskey", ceremony=started.ceremony, credential_json=key.get(started.options_json))
    assert (await refused(answer)).code == "sign_in_failed"
    assert await console.session(mine)


# What a company requires


async def test_a_company_that_requires_a_second_factor_lets_administrators_only_add_one(
    operator: Operator, company_id: int, console: Console, origin: str
) -> None:
    email = await administrator(operator, company_id)
    await operator(
        "UpdateCompany", identity_pb2.UpdateCompanyRequest(company_id=company_id, second_factor_required=True)
    )
    session = await console.sign_in(email)
    assert session.session.second_factor_due
    listed = identity_pb2.ListKeysRequest(company_id=company_id)
    refusal = await refused(operator("ListKeys", listed, who=await console.identity(session.text)))
    assert (refusal.status, refusal.code) == (403, "second_factor_required")
    await with_passkey(console, session.text, origin)
    assert await operator("ListKeys", listed, who=await console.identity(session.text)) is not None
    refusal = await refused(console("SignIn", email=email, password=GOOD))
    assert (refusal.status, refusal.code) == (403, "second_factor_required"), "the passkey is the second factor"


# Links


async def test_an_invitation_sets_a_password_once_and_signs_in(
    operator: Operator, company_id: int, console: Console, origin: str, database: Database
) -> None:
    who = await operator.administrators_identity(company_id)
    request = administrators_pb2.InviteAdministratorRequest(
        idempotency_key="i", email=f"New{company_id}@Example.com", name="Nia Cole"
    )
    first = await operator("InviteAdministrator", request, who=who)
    second = await operator("InviteAdministrator", request, who=who)
    assert first.administrator == second.administrator and not first.administrator.has_password
    assert first.link.purpose == pb.LINK_PURPOSE_INVITATION
    assert first.link.url.startswith(f"{origin}/invitations/") and first.link.url != second.link.url
    lives = second.link.expires_at.ToSeconds() - time.time()
    assert 6.9 * 86400 < lives <= 7 * 86400
    old, link = (invitation.link.url.rpartition("/")[2] for invitation in (first, second))
    assert (await refused(console("UseLink", link=old))).code == "link_not_valid"
    for _ in range(2):
        seen = await console("UseLink", link=link)
        assert (seen.name, seen.email, seen.company_name) == ("Nia Cole", first.administrator.email, "Maple Homes")
        assert seen.WhichOneof("outcome") is None and seen.password_characters_min == 15
    assert (await refused(console("UseLink", link=link, password="nia cole nia cole"))).status == 422
    used = await console("UseLink", link=link, password=GOOD)
    assert used.session.session.email == seen.email
    assert (await refused(console("UseLink", link=link, password=BETTER))).code == "link_not_valid"
    assert await console.sign_in(seen.email)
    for table in ("link", "idempotency", "audit"):
        rows = await execute(database, f"SELECT {table}::text FROM {table}")
        assert not any(secret in str(rows) or secret.encode().hex() in str(rows) for secret in (old, link))
    taken = administrators_pb2.InviteAdministratorRequest(idempotency_key="j", email=seen.email, name="Other")
    assert (await refused(operator("InviteAdministrator", taken, who=who))).status == 422


async def test_a_reset_lives_half_an_hour_ends_sessions_and_delays_and_may_remove_factors(
    operator: Operator, company_id: int, console: Console, origin: str, database: Database
) -> None:
    email = await administrator(operator, company_id)
    text = (await console.sign_in(email)).text
    await with_totp(console, text)
    await with_passkey(console, text, origin)
    for _ in range(5):
        await refused(console("SignIn", email=email, password="wrong"))
    reset = (await operator("MakeLink", administrators_pb2.MakeLinkRequest(email=email))).link
    assert reset.purpose == pb.LINK_PURPOSE_RESET and reset.url.startswith(f"{origin}/reset/")
    assert 1700 < reset.expires_at.ToSeconds() - time.time() <= 1800
    used = await console("UseLink", link=reset.url.rpartition("/")[2], password=BETTER)
    assert used.WhichOneof("outcome") == "step", "the second factor stays"
    assert await console.session(text) is None
    assert await step_of(console, email, BETTER)
    lost = administrators_pb2.MakeLinkRequest(email=email, remove_second_factor=True)
    link = (await operator("MakeLink", lost)).link.url.rpartition("/")[2]
    used = await console("UseLink", link=link, password=GOOD)
    assert (used.session.session.has_totp, used.session.session.has_passkey) == (False, False)
    assert await console.sign_in(email)
    late = (await operator("MakeLink", lost)).link.url.rpartition("/")[2]
    await execute(
        database,
        "UPDATE link SET expires_at = clock_timestamp() FROM account WHERE account_id = account.id AND email = $1",
        email,
    )
    assert (await refused(console("UseLink", link=late, password=GOOD))).code == "link_not_valid"
    for bad in ("", "x", "\0", "x" * 1000):
        assert (await refused(console("UseLink", link=bad))).code == "link_not_valid"


async def test_a_link_used_at_once_sets_one_password(operator: Operator, company_id: int, console: Console) -> None:
    email = await operator.administrator(company_id)
    link = (await operator("MakeLink", administrators_pb2.MakeLinkRequest(email=email))).link.url.rpartition("/")[2]
    answers = await asyncio.gather(
        *(console("UseLink", link=link, password=f"{GOOD} {number}") for number in range(3)), return_exceptions=True
    )
    assert len([answer for answer in answers if isinstance(answer, pb.UseLinkResponse)]) == 1


async def test_links_are_for_people_of_the_own_company(operator: Operator, company_id: int) -> None:
    who = await operator.administrators_identity(company_id)
    other = await operator.company()
    email = await operator.administrator(other)
    for request in (
        administrators_pb2.MakeLinkRequest(email=email),
        administrators_pb2.MakeLinkRequest(email="nobody@example.com"),
        administrators_pb2.MakeLinkRequest(administrator_id=2**62),
        administrators_pb2.MakeLinkRequest(staff_id=2**62),
    ):
        refusal = await refused(operator("MakeLink", request, who=who))
        assert (refusal.status, refusal.code) == (404, "no_account")
    assert (await refused(operator("MakeLink", administrators_pb2.MakeLinkRequest(), who=who))).status == 400


# Staff


async def test_staff_are_invited_sign_in_and_end(operator: Operator, company_id: int, console: Console) -> None:
    who = await operator.administrators_identity(company_id)
    added = desk.AddStaffRequest(idempotency_key="a", name="Ada Byrne", email=f"ada{company_id}@staff.example")
    ada = (await operator("AddStaff", added, who=who)).staff
    assert ada.active and not ada.invited
    assert (
        await refused(operator("MakeLink", administrators_pb2.MakeLinkRequest(staff_id=ada.staff_id), who=who))
    ).code
    invite = desk.InviteStaffRequest(idempotency_key="i", staff_id=ada.staff_id)
    invited = await operator("InviteStaff", invite, who=who)
    assert invited.staff.invited and invited.link.purpose == pb.LINK_PURPOSE_INVITATION
    used = await console("UseLink", link=invited.link.url.rpartition("/")[2], password=GOOD)
    session = used.session.session
    assert (session.kind, session.actor) == (options_pb2.KIND_STAFF, f"staff:{ada.staff_id}")
    assert session.ends_at.ToSeconds() - session.started_at.ToSeconds() == 30 * 86400
    assert session.idle_ends_at.ToSeconds() - session.started_at.ToSeconds() == 7 * 86400
    me = await console.identity(used.session.text)
    assert (me.kind, me.staff_id, me.company_id) == (STAFF, ada.staff_id, company_id)
    assert [member.staff_id for member in (await operator("ListStaff", desk.ListStaffRequest(), who=me)).staff]
    got = (await operator("GetStaff", desk.GetStaffRequest(staff_id=ada.staff_id), who=me)).staff
    assert got.HasField("last_sign_in_at")

    change = desk.UpdateStaffRequest(
        idempotency_key="c", staff_id=ada.staff_id, email=f"king{company_id}@staff.example"
    )
    await operator("UpdateStaff", change, who=who)
    assert (await refused(console("SignIn", email=added.email, password=GOOD))).code == "sign_in_failed"
    assert await console.sign_in(change.email)

    end = desk.EndStaffRequest(idempotency_key="e", staff_id=ada.staff_id)
    assert not (await operator("EndStaff", end, who=who)).staff.active
    assert await console.session(used.session.text) is None
    assert (await refused(console("SignIn", email=change.email, password=GOOD))).code == "sign_in_failed"
    assert (
        await refused(
            operator("InviteStaff", desk.InviteStaffRequest(idempotency_key="k", staff_id=ada.staff_id), who=who)
        )
    ).status == 422
    token = actors_pb2.IssueActorTokenRequest(company_id=company_id, audience="x", staff_id=ada.staff_id)
    assert (await refused(operator("IssueActorToken", token))).status == 404
    back = desk.ReinstateStaffRequest(idempotency_key="r", staff_id=ada.staff_id)
    assert (await operator("ReinstateStaff", back, who=who)).staff.active
    text = (await console.sign_in(change.email)).text
    clear = desk.UpdateStaffRequest(idempotency_key="d", staff_id=ada.staff_id, clear=["email"])
    assert not (await operator("UpdateStaff", clear, who=who)).staff.invited
    assert await console.session(text) is None, "staff without an e-mail cannot sign in"
    again = desk.InviteStaffRequest(idempotency_key="n", staff_id=ada.staff_id)
    assert (await refused(operator("InviteStaff", again, who=who))).status == 422
    actions = [
        entry[1] for entry in await operator.audit(company_id, "staff") if entry[1].startswith(("staff", "account."))
    ]
    assert actions == [
        "staff.added",
        "staff.invited",
        "account.password_set",
        "staff.updated",
        "staff.ended",
        "staff.reinstated",
        "account.removed",
        "staff.updated",
    ]


async def test_an_email_is_one_person(operator: Operator, company_id: int) -> None:
    email = await operator.administrator(company_id)
    added = desk.AddStaffRequest(idempotency_key="a", name="Ada Byrne", email=email)
    ada = (await operator("AddStaff", added, company_id)).staff
    invite = desk.InviteStaffRequest(idempotency_key="i", staff_id=ada.staff_id)
    assert (await refused(operator("InviteStaff", invite, company_id))).status == 422


async def test_actors_have_names_within_their_company(operator: Operator, company_id: int) -> None:
    who = await operator.administrators_identity(company_id)
    ada = (await operator("AddStaff", desk.AddStaffRequest(idempotency_key="a", name="Ada"), who=who)).staff.staff_id
    key_id, _ = await operator.minted(company_id)
    await operator.revoke(key_id)
    actors = [who.actor, f"staff:{ada}", f"caller:{key_id}", f"api_key:{key_id}"]
    strange = [
        "operator",
        "caller:",
        "caller:x",
        "caller:-1",
        f"staff:{2**62}",
        "caller:99999999999999999999",
        "svc-tickets",
        "",
    ]
    named = (
        await operator("BatchGetActors", actors_pb2.BatchGetActorsRequest(actors=actors + strange), who=who)
    ).actors
    assert [(actor.actor, actor.active) for actor in named] == [
        (actors[0], True),
        (actors[1], True),
        (actors[2], False),
        (actors[3], False),
    ]
    assert [actor.name for actor in named] == [f"adm{named[0].name[3:]}", "Ada", "write", "write"]
    other = await operator.administrators_identity(await operator.company())
    assert not (await operator("BatchGetActors", actors_pb2.BatchGetActorsRequest(actors=actors), who=other)).actors
    many = actors_pb2.BatchGetActorsRequest(actors=["staff:1"] * 501)
    assert (await refused(operator("BatchGetActors", many, who=who))).status == 400


async def test_the_console_learns_which_people_are_active(
    operator: Operator, company_id: int, console: Console
) -> None:
    who = await operator.administrators_identity(company_id)
    ada, bo = [
        (await operator("AddStaff", desk.AddStaffRequest(idempotency_key=name, name=name), who=who)).staff.staff_id
        for name in ("Ada", "Bo")
    ]
    await operator("EndStaff", desk.EndStaffRequest(idempotency_key="e", staff_id=bo), who=who)
    actors = [who.actor, f"staff:{bo}", f"staff:{ada}", f"staff:{2**60}", "caller:1", "operator"]
    request = actors_pb2.ListActivePeopleRequest(company_id=company_id, actors=actors)
    assert (await console.as_itself(request)).actors == [who.actor, f"staff:{ada}"]
    request.company_id = await operator.company()
    assert not (await console.as_itself(request)).actors
