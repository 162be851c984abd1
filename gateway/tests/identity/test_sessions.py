"""Signing in over the console's RPCs: one answer to all failures, delays, sessions as rows, step-up, tokens."""

from __future__ import annotations

import asyncio
import base64
import datetime
import hashlib
import os
import secrets
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from chassis.auth.identity import ADMINISTRATOR, SERVICE, Identity, TokenSigner, TokenVerifier
from chassis.db.database import Database
from chassis.refusals import Refusal
from gateway.identity.accounts import rules
from gateway.identity.accounts.attempts import Attempts
from makeready.common.v1 import options_pb2
from makeready.identity.v1 import accounts_pb2, administrators_pb2, identity_pb2, sessions_pb2
from testkit.gateways import Gateway, GatewayHarness, Operator
from testkit.patience import eventually

from .signing_in import BETTER, GOOD, Console, administrator


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


async def age(database: Database, text: str, **by: float) -> None:
    """Makes the session look as if it had begun and been used that much earlier."""
    digest, before = hashlib.sha256(text.encode()).digest(), datetime.timedelta(**by)
    await execute(
        database,
        "UPDATE session SET started_at = started_at - $2::interval, last_seen_at = last_seen_at - $2::interval, "
        "stepped_up_at = stepped_up_at - $2::interval, ends_at = ends_at - $2::interval WHERE digest = $1",
        digest,
        before,
    )


async def test_an_administrator_signs_in_is_named_and_signs_out(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email = await administrator(operator, company_id)
    signed_in = await console.sign_in(f" {email.upper()} ")
    session = signed_in.session
    assert (session.kind, session.name, session.email) == (options_pb2.KIND_ADMINISTRATOR, "Olga Petrov", email)
    assert (session.company_id, session.company_name, session.timezone) == (company_id, "Maple Homes", "UTC")
    assert session.actor == f"administrator:{session.person_id}"
    assert (session.has_password, session.has_totp, session.has_passkey) == (True, False, False)
    length = session.ends_at.ToDatetime() - session.started_at.ToDatetime()
    idle = session.idle_ends_at.ToDatetime() - session.started_at.ToDatetime()
    assert (length, idle) == (datetime.timedelta(hours=24), datetime.timedelta(hours=8))
    assert await console.session(signed_in.text) == session
    stored = await execute(database, "SELECT digest FROM session WHERE id = $1", session.session_id)
    assert [row["digest"] for row in stored] == [hashlib.sha256(signed_in.text.encode()).digest()]
    assert len(base64.urlsafe_b64decode(signed_in.text + "=")) == 32

    who = await console.identity(signed_in.text, "svc-tickets")
    assert (who.kind, who.issuer, who.company_id) == (ADMINISTRATOR, "gateway", company_id)
    assert (who.administrator_id, who.session_id) == (session.person_id, session.session_id)
    assert 0 <= time.time() - who.stepped_up_at < 60

    for _ in range(2):
        await console("SignOut", session=signed_in.text)
    assert await console.session(signed_in.text) is None
    assert (await refused(console("IssueToken", session=signed_in.text, audience="x"))).code == "no_session"
    entries = await execute(
        database,
        "SELECT actor, action, after FROM audit WHERE company_id = $1 AND action ~ '^session' ORDER BY id",
        company_id,
    )
    assert [(entry["actor"], entry["action"]) for entry in entries] == [
        (session.actor, "session.started"),
        (session.actor, "session.ended"),
    ]
    assert signed_in.text not in str(entries) and console.client.address in str(entries[0]["after"])


async def test_a_permit_outlives_its_session_and_ends_with_the_administrator(
    operator: Operator, company_id: int, console: Console, database: Database, identity_keys: Path
) -> None:
    email = await administrator(operator, company_id)
    signed_in = await console.sign_in(email)
    permit = await console("MakePermit", session=signed_in.text)
    length = permit.expires_at.ToDatetime() - signed_in.session.started_at.ToDatetime()
    assert datetime.timedelta(hours=24) <= length < datetime.timedelta(hours=24, minutes=1)
    await console("SignOut", session=signed_in.text)
    token = (await console("IssueToken", permit=permit.permit, audience="svc-tickets")).token
    who = TokenVerifier(identity_keys / "ring.jwks", "svc-tickets").verify(token)
    assert (who.kind, who.administrator_id, who.company_id) == (ADMINISTRATOR, signed_in.session.person_id, company_id)
    assert (who.stepped_up_at, who.session_id, who.only_service) == (0, None, "")
    stored = await execute(database, "SELECT digest FROM ceremony WHERE purpose = 'permit'")
    assert hashlib.sha256(permit.permit.encode()).digest() in [row["digest"] for row in stored]

    # It is no session, and no session is one.
    assert await console.session(permit.permit) is None
    for values in ({"permit": signed_in.text}, {"permit": "x" * 9000}, {"session": permit.permit}):
        assert (await refused(console("IssueToken", audience="svc-tickets", **values))).code == "no_session"
    request = administrators_pb2.DeactivateAdministratorRequest(
        idempotency_key="d", administrator_id=signed_in.session.person_id
    )
    await administrator(operator, company_id)  # the last one stays
    await operator("DeactivateAdministrator", request, company_id)
    assert (await refused(console("IssueToken", permit=permit.permit, audience="x"))).code == "no_session"
    assert (await refused(console("MakePermit", session=signed_in.text))).code == "no_session"


async def test_all_failures_have_one_answer_and_are_on_record(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email, ended = await administrator(operator, company_id), await administrator(operator, company_id)
    listed = await operator("ListAdministrators", administrators_pb2.ListAdministratorsRequest(), company_id)
    (ended_id,) = [colleague.administrator_id for colleague in listed.administrators if colleague.email == ended]
    request = administrators_pb2.DeactivateAdministratorRequest(idempotency_key="d", administrator_id=ended_id)
    await operator("DeactivateAdministrator", request, company_id)
    invited = await operator.administrator(company_id)
    answers = {
        (refusal.status, refusal.code, refusal.message)
        for refusal in [
            await refused(console("SignIn", email=name, password=password))
            for name, password in (
                (email, "wrong"),
                (email, ""),
                (email, GOOD + "x" * 2000),
                (email, GOOD[:-1]),
                (ended, GOOD),
                (invited, ""),
                ("nobody@example.com", GOOD),
                ("nobody\0@example.com", GOOD),
                ("", ""),
            )
        ]
    }
    assert answers == {(401, "sign_in_failed", "That did not match; check what you entered, or start again.")}
    entries = await execute(
        database,
        "SELECT actor, subject FROM audit WHERE company_id = $1 AND action = 'sign_in.failed'",
        company_id,
    )
    assert [(entry["actor"], entry["subject"]) for entry in entries] == [("console", "administrator")] * 5
    assert await console.sign_in(email)


async def test_an_unknown_email_costs_the_same_hash(
    operator: Operator, company_id: int, console: Console, gateway: Gateway
) -> None:
    """In CPU seconds of the gateway, which is what a hash costs."""

    def cpu() -> float:
        assert gateway.process is not None
        fields = Path(f"/proc/{gateway.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    email = await administrator(operator, company_id)
    spent = {}
    for name in (email, f"not-{email}"):
        before = cpu()
        for _ in range(4):
            await refused(console("SignIn", email=name, password="wrong"))
        spent[name] = cpu() - before
    assert spent[f"not-{email}"] > spent[email] / 3


async def test_a_delay_doubles_from_the_fifth_failure_for_known_and_unknown_emails(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email = await administrator(operator, company_id)
    for name in (email, f"not-{email}"):
        digest = hashlib.sha256(name.encode()).digest()
        assert {(await refused(console("SignIn", email=name, password="wrong"))).status for _ in range(5)} == {401}
        await execute(database, "UPDATE sign_in_delay SET next_at = next_at + '40 s' WHERE email_digest = $1", digest)
        refusal = await refused(console("SignIn", email=name, password=GOOD))
        assert (refusal.status, refusal.code) == (429, "sign_in_delayed") and "seconds" in refusal.message
        (row,) = await execute(database, "SELECT failures FROM sign_in_delay WHERE email_digest = $1", digest)
        assert row["failures"] == 5, "an attempt that has to wait does not count"
        await execute(
            database,
            "UPDATE sign_in_delay SET next_at = clock_timestamp(), failures = 30 WHERE email_digest = $1",
            digest,
        )
        assert (await refused(console("SignIn", email=name, password="wrong"))).status == 401
        assert "15 minutes" in (await refused(console("SignIn", email=name, password=GOOD))).message
        await execute(database, "UPDATE sign_in_delay SET next_at = clock_timestamp() WHERE email_digest = $1", digest)
    await console.sign_in(email)
    digest = hashlib.sha256(email.encode()).digest()
    assert await execute(database, "SELECT 1 FROM sign_in_delay WHERE email_digest = $1", digest) == []


async def test_guesses_at_once_are_counted_before_they_are_checked(
    operator: Operator, company_id: int, console: Console
) -> None:
    email = await administrator(operator, company_id)
    guesses = [refused(console("SignIn", email=email, password=f"guess {number}")) for number in range(12)]
    codes = [refusal.code for refusal in await asyncio.gather(*guesses)]
    # One more may be let in when the first delay, of a second, is over.
    assert 5 <= codes.count("sign_in_failed") <= 7 and set(codes) == {"sign_in_failed", "sign_in_delayed"}


async def test_the_first_attempts_wait_for_none_whose_instant_is_later(database: Database) -> None:
    """Of attempts at once the one with the later instant may be counted first."""
    attempts, email = Attempts(database), f"{secrets.token_hex(8)}@example.com"
    noon = datetime.datetime.now(datetime.UTC)
    for number in range(5):
        await attempts.begin(email, "198.51.100.7", noon - datetime.timedelta(milliseconds=number))
    with pytest.raises(Refusal, match="wait 1 second,"):
        await attempts.begin(email, "198.51.100.7", noon)


async def test_nobody_waits_for_failures_of_a_day_that_has_not_come(database: Database) -> None:
    """The clocks of gateway and database were a day ahead, and are right again."""
    attempts, email = Attempts(database), f"{secrets.token_hex(8)}@example.com"
    now = datetime.datetime.now(datetime.UTC)
    tomorrow = now + datetime.timedelta(days=1)
    for number in range(20):
        await attempts.begin(email if number < 5 else f"{number}-{email}", "198.51.101.7", tomorrow)
    with pytest.raises(Refusal, match="wait"):
        await attempts.begin(email, "198.51.102.7", tomorrow)
    with pytest.raises(Refusal, match="wait"):
        await attempts.begin(f"another-{email}", "198.51.101.7", tomorrow)
    await attempts.begin(email, "198.51.101.7", now)
    with pytest.raises(Refusal, match="wait"):
        await attempts.begin(email, "198.51.101.7", now)


async def test_a_network_waits_after_twenty_failures_and_others_do_not(
    operator: Operator, company_id: int, console: Console, gateway: Gateway, identity_keys: Path, database: Database
) -> None:
    email = await administrator(operator, company_id)
    for number in range(20):
        unknown = f"n{number}-{email}"
        assert (await refused(console("SignIn", email=unknown, password="wrong"))).status == 401
    refusal = await refused(console("SignIn", email=email, password=GOOD))
    assert (refusal.status, refusal.code) == (429, "sign_in_delayed") and "minutes" in refusal.message
    assert await Console(gateway.grpc_target, identity_keys).sign_in(email)
    await execute(database, "UPDATE sign_in_failure SET failed_at = failed_at - interval '5 minutes'")
    await console.sign_in(email)


async def test_a_session_ends_idle_or_old_and_use_keeps_it(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email = await administrator(operator, company_id)
    idle, used, watched, old = [(await console.sign_in(email)).text for _ in range(4)]
    await age(database, idle, hours=8)
    assert await console.session(idle) is None
    await age(database, used, hours=7.9)
    assert await console.session(used)
    await age(database, used, hours=7.9)
    assert await console.session(used), "the use before is on record"
    await age(database, watched, hours=7.9)
    assert (await console("GetSession", session=watched, watches=True)).HasField("session")
    await age(database, watched, hours=0.2)
    assert await console.session(watched) is None, "an open page that asks by itself is no use"
    await age(database, old, hours=7)
    assert await console.session(old)
    await age(database, old, hours=7)
    assert await console.session(old)
    await age(database, old, hours=7)
    assert await console.session(old)
    await age(database, old, hours=3)
    assert await console.session(old) is None, "a day old"
    for text in ("", "x", "x" * 10_000, "\0"):
        assert await console.session(text) is None


async def test_step_up_renews_the_text_and_opens_acts_for_ten_minutes(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email = await administrator(operator, company_id)
    text = (await console.sign_in(email)).text
    mint = identity_pb2.MintKeyRequest(company_id=company_id, scope=identity_pb2.SCOPE_READ)
    assert await operator("MintKey", mint, who=await console.identity(text))
    await age(database, text, minutes=10)
    session = await console.session(text)
    assert session is not None and not session.HasField("step_up_until")
    refusal = await refused(operator("MintKey", mint, who=await console.identity(text)))
    assert (refusal.status, refusal.code) == (403, "step_up_required")
    listed = identity_pb2.ListKeysRequest(company_id=company_id)
    assert (await operator("ListKeys", listed, who=await console.identity(text))).keys, "reading asks for none"

    assert (await refused(console("StepUp", session=text, password="wrong"))).code == "sign_in_failed"
    confirmed = (await console("StepUp", session=text, password=GOOD)).session
    assert confirmed.text != text and confirmed.session.session_id == session.session_id
    assert confirmed.session.HasField("step_up_until")
    assert await console.session(text) is None, "the text before is worth nothing"
    assert await operator("MintKey", mint, who=await console.identity(confirmed.text))
    assert (await refused(console("StepUp", session=text, password=GOOD))).code == "no_session"


async def test_clocks_that_were_a_day_ahead_leave_no_session_open_or_confirmed_for_longer(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    text = (await console.sign_in(await administrator(operator, company_id))).text
    await age(database, text, hours=-24)
    session = await console.session(text)
    assert session is not None and not session.HasField("step_up_until")
    mint = identity_pb2.MintKeyRequest(company_id=company_id, scope=identity_pb2.SCOPE_READ)
    assert (await refused(operator("MintKey", mint, who=await console.identity(text)))).code == "step_up_required"
    await age(database, text, hours=8)
    assert await console.session(text) is None, "the use counted when it was"


async def test_a_changed_password_ends_the_other_sessions_at_once(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email = await administrator(operator, company_id)
    here, there = [(await console.sign_in(email)).text for _ in range(2)]
    listed = (await console.account(here, "ListSessions", accounts_pb2.ListSessionsRequest())).sessions
    assert [
        (session.current, session.method, session.address)
        for session in sorted(listed, key=lambda session: session.session_id)
    ] == [
        (True, "password", console.client.address),
        (False, "password", console.client.address),
    ]
    for bad in (
        "short",
        "x" * 14,
        "passwordpassword",
        email + "1",
        "aaaaaaaaaaaaaaaaaaaa",
        "123456789012345",
        "a" * 1001,
    ):
        refusal = await refused(
            console.account(here, "ChangePassword", accounts_pb2.ChangePasswordRequest(password=bad))
        )
        assert (refusal.status, refusal.code) == (422, "invalid_request")
    changed = await console.account(here, "ChangePassword", accounts_pb2.ChangePasswordRequest(password=BETTER))
    assert changed.sessions_ended == 1
    assert await console.session(there) is None and await console.session(here)
    assert (await refused(console("SignIn", email=email, password=GOOD))).code == "sign_in_failed"
    second = await console.sign_in(email, BETTER)
    request = accounts_pb2.EndSessionRequest(session_id=second.session.session_id)
    assert (await console.account(here, "EndSession", request)).sessions_ended == 1
    assert (await console.account(here, "EndSession", request)).sessions_ended == 0
    assert await console.session(second.text) is None
    third = await console.sign_in(email, BETTER)
    request = accounts_pb2.EndSessionRequest(others=True)
    assert (await console.account(here, "EndSession", request)).sessions_ended == 1
    assert await console.session(third.text) is None and await console.session(here)


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ("password_changed_at = clock_timestamp()", None),
        ("totp_sealed = 'x', totp_since = clock_timestamp()", "step"),
        ("email = email", "session"),
    ],
)
async def test_what_changes_while_a_password_is_compared_counts(
    operator: Operator, company_id: int, console: Console, database: Database, change: str, outcome: str | None
) -> None:
    email = await administrator(operator, company_id)
    async with database.connection() as connection:
        async with connection.raw.transaction():
            await connection.raw.execute(f"UPDATE account SET {change} WHERE email = $1", email)
            attempt = asyncio.ensure_future(console("SignIn", email=email, password=GOOD))
            await eventually(lambda: _waits_for_account(database))
        if outcome is None:
            assert (await refused(attempt)).code == "sign_in_failed"
        else:
            assert (await attempt).WhichOneof("outcome") == outcome


async def _waits_for_account(database: Database) -> list[Any]:
    sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%account%'"
    return await execute(database, sql)


async def test_deactivation_ends_sessions_and_the_next_sign_in(
    operator: Operator, company_id: int, console: Console
) -> None:
    email = await administrator(operator, company_id)
    signed_in = await console.sign_in(email)
    request = administrators_pb2.DeactivateAdministratorRequest(
        idempotency_key="own", administrator_id=signed_in.session.person_id
    )
    who = await console.identity(signed_in.text)
    assert (await refused(operator("DeactivateAdministrator", request, who=who))).status == 422
    await operator("DeactivateAdministrator", request, company_id)
    assert await console.session(signed_in.text) is None
    assert (await refused(console("SignIn", email=email, password=GOOD))).code == "sign_in_failed"
    again = administrators_pb2.ReactivateAdministratorRequest(
        idempotency_key="again", administrator_id=signed_in.session.person_id
    )
    assert (await operator("ReactivateAdministrator", again, company_id)).administrator.active
    assert await console.session(signed_in.text) is None, "the old session stays ended"
    second = await console.sign_in(email)
    await operator.set_active(company_id, False)
    assert await console.session(second.text) is None
    assert (await refused(console("SignIn", email=email, password=GOOD))).code == "company_inactive"


async def test_a_password_of_release_0_2_0_signs_in_and_is_replaced(
    operator: Operator,
    company_id: int,
    console: Console,
    database: Database,
    harness: GatewayHarness,
    identity_keys: Path,
) -> None:
    salt = b"0123456789abcdef"
    digest = hashlib.scrypt(b"ten letter", salt=salt, n=2**16, r=8, p=1, maxmem=132 * 2**16 * 8, dklen=32)
    stored = "$".join(["scrypt", "65536", "8", "1", *(base64.b64encode(part).decode() for part in (salt, digest))])
    email = f"old-{company_id}@example.com"
    await execute(
        database,
        "INSERT INTO administrator (company_id, email, name, password) VALUES ($1, $2, 'Old', $3)",
        company_id,
        email,
        stored,
    )
    started = harness.gateway()
    started.start()
    await started.ready()
    assert await started.stop() == 0
    find = "SELECT a.password, b.password AS left_behind FROM account a JOIN administrator b ON b.id = administrator_id"
    (row,) = await execute(database, f"{find} WHERE a.email = $1", email)
    assert (row["password"], row["left_behind"]) == (stored, None)
    assert (await refused(console("SignIn", email=email, password="ten lettes"))).code == "sign_in_failed"
    await console.sign_in(email, "ten letter")
    (row,) = await execute(database, f"{find} WHERE a.email = $1", email)
    assert row["password"].startswith("$argon2id$v=19$m=47104,t=1,p=1$")
    await console.sign_in(email, "ten letter")


async def test_the_console_alone_opens_sessions_and_opens_nothing_else(
    operator: Operator, company_id: int, console: Console, gateway: Gateway, identity_keys: Path
) -> None:
    listed = TokenSigner(identity_keys / "svc-tickets.jwk").token("gateway", Identity(SERVICE, "svc-tickets"))
    other = Console(gateway.grpc_target, identity_keys)
    other._token = listed
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await other("GetSession", session="x")
    assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await console._answer(accounts_pb2.GetAccountRequest(), console._token)
    assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED


# How many sessions an account has


async def more_sessions(database: Database, like: sessions_pb2.NewSession, number: int, **before: float) -> None:
    """Sessions of the same account, last used that much earlier than this one. They take no hash."""
    await execute(
        database,
        "INSERT INTO session (account_id, digest, started_at, last_seen_at, ends_at, method, address, user_agent) "
        "SELECT account_id, sha256(gen_random_uuid()::text::bytea), started_at, last_seen_at - $3::interval, ends_at, "
        "method, address, user_agent FROM session, generate_series(1, $2) WHERE id = $1",
        like.session.session_id,
        number,
        datetime.timedelta(**before),
    )


async def test_one_session_too_many_ends_the_idlest_one_and_says_so(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email, colleague = await administrator(operator, company_id), await administrator(operator, company_id)
    theirs = await console.sign_in(colleague)
    sessions = [await console.sign_in(email) for _ in range(5)]
    await more_sessions(database, sessions[0], rules.SESSIONS_MAX - len(sessions), minutes=1)
    for place, session in enumerate(sessions):
        # The first was used last, so the second is the idlest.
        await age(database, session.text, minutes=5 if place == 0 else 60 - place)
    newest = await console.sign_in(email)
    assert await console.session(sessions[1].text) is None
    answer = await console("GetSession", session=sessions[1].text)
    assert answer.displaced and not answer.HasField("session")
    for session in (sessions[0], *sessions[2:], newest, theirs):
        assert await console.session(session.text) is not None
    assert (await refused(console("IssueToken", session=sessions[1].text, audience="x"))).code == "no_session"
    listed = await console.account(newest.text, "ListSessions", accounts_pb2.ListSessionsRequest())
    assert len(listed.sessions) == rules.SESSIONS_MAX
    ended = await execute(
        database,
        "SELECT actor, after FROM audit WHERE company_id = $1 AND action = 'session.ended'",
        company_id,
    )
    assert [entry["actor"] for entry in ended] == [newest.session.actor]
    assert str(sessions[1].session.session_id) in str(ended[0]["after"])
    # One that ended otherwise was not displaced.
    await console("SignOut", session=sessions[2].text)
    await age(database, sessions[3].text, hours=9)
    await age(database, sessions[4].text, hours=25)
    for session in (sessions[2], sessions[3], sessions[4]):
        assert not (await console("GetSession", session=session.text)).displaced
    # They count as ended.
    gone = await console.account(newest.text, "EndSession", accounts_pb2.EndSessionRequest(others=True))
    assert gone.sessions_ended == rules.SESSIONS_MAX - 3  # without this one, made[2] and made[4]
    assert await console.session(newest.text) is not None


async def test_sign_ins_at_once_leave_no_more_than_the_cap(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email = await administrator(operator, company_id)
    first = await console.sign_in(email)

    async def numbers(more: int) -> dict[bool, int]:
        """Adds so many sessions, signs in four times at once, and counts the sessions: those that are open, and not."""
        await more_sessions(database, first, more, hours=1)
        await asyncio.gather(*(console.sign_in(email) for _ in range(4)))
        rows = await execute(
            database,
            "SELECT ends_at > clock_timestamp() AS is_open, count(*) AS number FROM session "
            "WHERE account_id = (SELECT account_id FROM session WHERE id = $1) GROUP BY 1",
            first.session.session_id,
        )
        return {row["is_open"]: row["number"] for row in rows}

    assert await numbers(rules.SESSIONS_MAX - 1) == {True: rules.SESSIONS_MAX, False: 4}
    # What a script signs in does not fill the table.
    assert await numbers(5 * rules.SESSIONS_MAX) == {True: rules.SESSIONS_MAX, False: rules.SESSIONS_MAX}
