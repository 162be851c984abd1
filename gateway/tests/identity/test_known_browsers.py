"""What others do does not keep a person out: of the browser in which they signed in before, and of the line at the
sign-in."""

from __future__ import annotations

import asyncio
import base64
import datetime
import hashlib
import time
from pathlib import Path
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from gateway.identity.accounts import rules
from gateway.identity.accounts.known_browsers import KNOWN_FOR, PEOPLE_MAX, KnownBrowsers
from gateway.identity.accounts.signed_texts import TEXT_CHARACTERS_MAX, SignedTexts
from makeready.identity.v1 import accounts_pb2
from makeready.identity.v1 import sessions_pb2 as pb
from testkit.gateways import Gateway, Operator
from testkit.patience import comes_true, eventually, took

from .signing_in import BETTER, GOOD, Authenticator, Console, administrator

NOON = datetime.datetime(2026, 11, 26, 12, tzinfo=datetime.UTC)


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


def client(console: Console, text: str) -> pb.Client:
    return pb.Client(address=console.client.address, user_agent="Firefox", known=text)


async def fill_network(console: Console, email: str) -> None:
    """Twenty failures for other e-mails, and five for this one, from the console's network."""
    for number in range(rules.NETWORK_FAILURES_MAX):
        name = email if number < rules.DELAY_FROM_FAILURES else f"n{number}-{email}"
        assert (await refused(console("SignIn", email=name, password="wrong"))).status == 401


# The text


def account(account_id: int, changed_at: datetime.datetime | None = NOON) -> Any:
    return {"account_id": account_id, "password_changed_at": changed_at}


def test_a_browser_is_known_for_its_last_people_until_their_password_changes() -> None:
    browsers = KnownBrowsers(SignedTexts({"1": b"a" * 32}))
    text = ""
    for account_id in range(1, PEOPLE_MAX + 1):
        text = browsers.text_for(text, account(account_id), NOON)
    assert len(text) <= 600 and "=" not in text
    ids = {browsers.browser_of(text, account(number), NOON) for number in range(1, PEOPLE_MAX + 1)}
    assert len(ids) == PEOPLE_MAX and None not in ids
    # Who signs in again is the same browser, and nobody is lost.
    again = browsers.text_for(text, account(2), NOON + KNOWN_FOR / 2)
    assert {browsers.browser_of(again, account(number), NOON) for number in range(1, PEOPLE_MAX + 1)} == ids
    # One person more, and the one who signed in longest ago is forgotten.
    more = browsers.text_for(again, account(9), NOON)
    assert browsers.browser_of(more, account(9), NOON) and browsers.browser_of(more, account(1), NOON) is None
    assert browsers.browser_of(text, account(99), NOON) is None
    assert browsers.browser_of(text, account(2, NOON + datetime.timedelta(seconds=1)), NOON) is None
    assert browsers.browser_of(text, account(2, None), NOON) is None
    assert browsers.browser_of(text, account(2), NOON + KNOWN_FOR) is None
    assert browsers.browser_of(again, account(2), NOON + KNOWN_FOR) is not None


def test_a_text_holds_for_its_purpose_its_ring_and_what_it_is_bound_to() -> None:
    texts = SignedTexts({"2": b"b" * 32, "1": b"a" * 32})
    text = texts.sign("one", b"content", "bound")
    assert texts.content("one", text, "bound") == b"content"
    assert SignedTexts({"3": b"c" * 32, "2": b"b" * 32}).content("one", text, "bound") == b"content"
    assert SignedTexts({"1": b"a" * 32}).content("one", text, "bound") is None
    assert texts.content("other", text, "bound") is None and texts.content("one", text, "") is None
    # No part of one field passes for a part of another.
    assert texts.content("on", texts.sign("one", b"content"), "") is None
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    for place in range(len(raw)):
        changed = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        assert texts.content("one", base64.urlsafe_b64encode(changed).rstrip(b"=").decode(), "bound") is None
    for bad in ("", "x", "é", "\0", text[:-1], "a" * 43, "A" * (TEXT_CHARACTERS_MAX + 1), text + "\n", f" {text}"):
        assert texts.content("one", bad, "bound") is None


# What a person meets


async def test_failures_of_others_lock_out_no_browser_in_which_the_person_signed_in(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email, colleague = await administrator(operator, company_id), await administrator(operator, company_id)
    session = await console.sign_in(email)
    assert session.known
    text = (
        await console("StepUp", session=session.text, password=GOOD, client=client(console, session.known))
    ).session.text
    await fill_network(console, email)
    # As strangers, both wait: the one for the account, the other for the network.
    for person in (email, colleague):
        assert (await refused(console("SignIn", email=person, password=GOOD))).code == "sign_in_delayed"
    assert (await refused(console("StepUp", session=text, password=GOOD))).code == "sign_in_delayed"
    browser = client(console, session.known)
    confirmed = await console("StepUp", session=text, password=GOOD, client=browser)
    assert confirmed.session.text and not confirmed.session.known
    again = (await console("SignIn", email=email, password=GOOD, client=browser)).session
    assert again.text and again.known
    # It is known for this person alone, and it opens nothing.
    assert (await refused(console("SignIn", email=colleague, password=GOOD, client=browser))).code == "sign_in_delayed"
    assert await console.session(session.known) is None
    assert (await refused(console("SignIn", email=email, password="", client=browser))).status == 401
    # What the known browser failed is not the network's.
    (row,) = await execute(
        database, "SELECT count(*) AS number FROM sign_in_failure WHERE network = $1", rules.network(browser.address)
    )
    assert row["number"] == rules.NETWORK_FAILURES_MAX


async def test_guesses_in_a_known_browser_make_that_browser_wait(
    operator: Operator, company_id: int, console: Console, database: Database
) -> None:
    email = await administrator(operator, company_id)
    stolen, other = [client(console, (await console.sign_in(email)).known) for _ in range(2)]

    async def delayed() -> set[bytes]:
        rows = await execute(database, "SELECT email_digest FROM sign_in_delay WHERE failures >= 5")
        return {row["email_digest"] for row in rows}

    others = await delayed()  # of other tests
    guesses = [refused(console("SignIn", email=email, password=f"guess {n}", client=stolen)) for n in range(12)]
    codes = [refusal.code for refusal in await asyncio.gather(*guesses)]
    assert rules.DELAY_FROM_FAILURES <= codes.count("sign_in_failed") <= rules.DELAY_FROM_FAILURES + 2
    await execute(database, "UPDATE sign_in_delay SET next_at = next_at + interval '60 s'")
    refusal = await refused(console("SignIn", email=email, password=GOOD, client=stolen))
    assert refusal.code == "sign_in_delayed"
    # Neither the person's other browser nor a stranger waits for it.
    assert (await console("SignIn", email=email, password=GOOD, client=other)).session.text
    assert await console.sign_in(email)
    # A sign-in in the browser itself ends its delay.
    assert len(await delayed() - others) == 1
    await execute(database, "UPDATE sign_in_delay SET next_at = clock_timestamp() WHERE failures >= 5")
    assert (await console("SignIn", email=email, password=GOOD, client=stolen)).session.text
    assert await delayed() <= others


async def test_a_new_password_ends_what_is_known(operator: Operator, company_id: int, console: Console) -> None:
    email = await administrator(operator, company_id)
    session = await console.sign_in(email)
    browser = client(console, session.known)
    await console.account(session.text, "ChangePassword", accounts_pb2.ChangePasswordRequest(password=BETTER))
    await fill_network(console, email)
    refusal = await refused(console("SignIn", email=email, password=BETTER, client=browser))
    assert refusal.code == "sign_in_delayed"


@pytest.mark.parametrize("text", ["x", "." * 600, "A" * 86, "a.b.c.d.e.f", "\0", "é" * 99])
async def test_a_made_up_text_is_as_none(operator: Operator, company_id: int, console: Console, text: str) -> None:
    email = await administrator(operator, company_id)
    session = (await console("SignIn", email=email, password=GOOD, client=client(console, text))).session
    assert session.text and session.known and len(session.known) <= 600


# Passkeys


async def test_challenges_that_strangers_ask_for_are_stored_nowhere(
    operator: Operator, company_id: int, console: Console, database: Database, gateway: Gateway
) -> None:
    async def rows() -> int:
        number: int = (await execute(database, "SELECT count(*) AS number FROM ceremony"))[0]["number"]
        return number

    origin = gateway.environment["MAKEREADY_CONSOLE_URL"]
    email = await administrator(operator, company_id)
    text = (await console.sign_in(email)).text
    started = await console.account(text, "StartAddingPasskey", accounts_pb2.StartAddingPasskeyRequest())
    key = Authenticator(origin)
    request = accounts_pb2.FinishAddingPasskeyRequest(
        ceremony=started.ceremony, credential_json=key.create(started.options_json), name="Phone"
    )
    await console.account(text, "FinishAddingPasskey", request)
    before = await rows()
    for _ in range(10):
        strangers = await asyncio.gather(*(console("StartPasskey") for _ in range(50)))
    assert await rows() == before
    assert len({stranger.ceremony for stranger in strangers}) == 50
    # The first one is still good: nobody's challenge is pushed out.
    first = await console("StartPasskey")
    await asyncio.gather(*(console("StartPasskey") for _ in range(50)))
    credential = key.get(first.options_json)
    signed_in = await console("FinishPasskey", ceremony=first.ceremony, credential_json=credential)
    assert signed_in.session.session.email == email and signed_in.session.known
    assert await rows() == before + 1
    again = [console("FinishPasskey", ceremony=first.ceremony, credential_json=credential) for _ in range(4)]
    assert {(await refused(call)).code for call in again} == {"sign_in_failed"}
    # One that is used at once signs in once.
    other = await console("StartPasskey")
    credential = key.get(other.options_json)
    both = [console("FinishPasskey", ceremony=other.ceremony, credential_json=credential) for _ in range(4)]
    answers = await asyncio.gather(*both, return_exceptions=True)
    assert [isinstance(answer, Refusal) for answer in answers].count(False) == 1


async def test_a_challenge_is_good_for_its_session_and_its_time(
    operator: Operator, company_id: int, console: Console, gateway: Gateway
) -> None:
    """A challenge to sign in confirms nothing, and that of a session signs nobody in."""
    origin = gateway.environment["MAKEREADY_CONSOLE_URL"]
    text = (await console.sign_in(await administrator(operator, company_id))).text
    started = await console.account(text, "StartAddingPasskey", accounts_pb2.StartAddingPasskeyRequest())
    key = Authenticator(origin)
    request = accounts_pb2.FinishAddingPasskeyRequest(
        ceremony=started.ceremony, credential_json=key.create(started.options_json), name="Phone"
    )
    await console.account(text, "FinishAddingPasskey", request)
    ours, signing = await console("StartPasskey", session=text), await console("StartPasskey")
    crossed = console("FinishPasskey", ceremony=signing.ceremony, credential_json=key.get(ours.options_json))
    assert (await refused(crossed)).code == "sign_in_failed"
    confirmed = await console("FinishPasskey", ceremony=ours.ceremony, credential_json=key.get(ours.options_json))
    mine = await console.session(text)
    assert mine is None and confirmed.session.session.HasField("step_up_until")
    # As it was signed ten minutes ago.
    texts = SignedTexts({"1": b"t" * 32})
    content = texts.content("passkey", signing.ceremony)
    assert content is not None
    late = (int(time.time()) - 1).to_bytes(8, "big") + content[8:]
    over = console("FinishPasskey", ceremony=texts.sign("passkey", late), credential_json=key.get(signing.options_json))
    assert (await refused(over)).code == "sign_in_failed"
    for bad in ("", "x", signing.ceremony[:-2], "A" * 500):
        answer = console("FinishPasskey", ceremony=bad, credential_json=key.get(signing.options_json))
        assert (await refused(answer)).code == "sign_in_failed"


# A burst


async def test_a_burst_of_sign_ins_keeps_nobody_else_waiting(
    operator: Operator, company_id: int, console: Console, gateway: Gateway, identity_keys: Path, database: Database
) -> None:
    """250 sign-ins at once from five networks. `test_turns.py` has the order in which they come."""
    email, stranger = await administrator(operator, company_id), await administrator(operator, company_id)
    browser = client(console, (await console.sign_in(email)).known)
    done: list[str] = []

    async def attack(number: int) -> str:
        # Not more failures a network than make it wait.
        address = pb.Client(address=f"172.16.{number % 5}.9", user_agent="x")
        try:
            await console("SignIn", email=f"burst{number}@example.com", password="wrong", client=address)
        except Refusal as refusal:
            done.append(refusal.code)
            return refusal.code
        raise AssertionError("a wrong password signed in")

    async def genuine(name: str, from_where: Console, **values: Any) -> None:
        began = time.monotonic()

        async def signs_in() -> bool:
            try:
                return bool((await from_where("SignIn", password=GOOD, **values)).session.text)
            except Refusal as busy:
                assert busy.code == "sign_in_busy"  # on a machine that is many times slower
                return False

        await eventually(signs_in)
        took(f"a genuine sign-in among 250, {name}", time.monotonic() - began)

    burst = [asyncio.create_task(attack(number)) for number in range(250)]
    await comes_true(lambda: done)  # from now on the line is as long as it gets
    fresh = Console(gateway.grpc_target, identity_keys)
    await asyncio.gather(
        genuine("in a known browser", console, email=email, client=browser),
        genuine("from another network", fresh, email=stranger),
    )
    codes = await asyncio.gather(*burst)
    assert set(codes) <= {"sign_in_failed", "sign_in_busy", "sign_in_delayed"}
    # Who was told to come back has failed nothing, and what was compared did.
    digests = [hashlib.sha256(f"burst{number}@example.com".encode()).digest() for number in range(250)]
    rows = await execute(database, "SELECT failures FROM sign_in_delay WHERE email_digest = ANY($1)", digests)
    assert sum(row["failures"] for row in rows) == codes.count("sign_in_failed")
    (failures,) = await execute(
        database, "SELECT count(*) AS number FROM sign_in_failure WHERE network LIKE '172.16.%'"
    )
    assert failures["number"] == codes.count("sign_in_failed")
