"""The rules of signing in: delays, networks, ends of sessions, codes, passwords. A ValueError is a sentence."""

from __future__ import annotations

import base64
import datetime
import hashlib
import ipaddress
import re
import secrets
from collections.abc import Collection

from chassis.refusals import Refusal

PASSWORD_CHARACTERS_MIN, PASSWORD_CHARACTERS_MIN_WITH_SECOND_FACTOR, PASSWORD_CHARACTERS_MAX = 15, 10, 1000
OWN_CHARACTERS_MIN = 8
# Secrets that a browser or a link holds: 256 random bits in base64url.
SECRET_BYTES = 32
SECRET_CHARACTERS_MAX = 64
# A secret, and the sandbox that its person works in.
_IN_SANDBOX = re.compile(r"([A-Za-z0-9_-]+)\.([1-9][0-9]{0,17})")

DELAY_FROM_FAILURES = 5
DELAY_MAX = datetime.timedelta(minutes=15)
NETWORK_FAILURES_MAX = 20
NETWORK_WINDOW = datetime.timedelta(minutes=5)
# What is further ahead was recorded by clocks that have been set back since: nobody waits for such an attempt, and such
# a confirmation or challenge opens nothing. Clocks that differ by more write nothing.
AHEAD_MAX = datetime.timedelta(minutes=5)
# After a day without an attempt the count begins anew.
FAILURES_KEPT = datetime.timedelta(days=1)

STEP_UP = datetime.timedelta(minutes=10)
CEREMONY = datetime.timedelta(minutes=10)
PERMIT = datetime.timedelta(hours=24)
INVITATION, RESET = datetime.timedelta(days=7), datetime.timedelta(minutes=30)
# How exactly a session's last use is on record; a write for each page would be a waste.
SEEN_EVERY = datetime.timedelta(minutes=1)

_IDLE = {"administrator": datetime.timedelta(hours=8), "staff": datetime.timedelta(days=7)}
_LONGEST = {"administrator": datetime.timedelta(hours=24), "staff": datetime.timedelta(days=30)}

# Sessions of an account at once. One more ends the one that was idle for longest.
SESSIONS_MAX = 20
# How long a session that ended stays on record, so that a browser which had it can be told why it ended.
ENDED_KEPT = datetime.timedelta(days=7)

RECOVERY_CODES = 10
TOTP_SECONDS = 30
ADDRESS_CHARACTERS_MAX, USER_AGENT_CHARACTERS_MAX, PASSKEY_NAME_CHARACTERS_MAX = 64, 300, 100
PASSKEYS_MAX = 20


def without_sandbox(text: str) -> tuple[str, int | None]:
    """The secret of a session or a permit, and the id of the sandbox that its text names.

    The text names the company, so that no form, no cached token and no other page of the browser that were made for one
    company can be used in another.
    """
    parts = _IN_SANDBOX.fullmatch(text)
    return (parts[1], int(parts[2])) if parts else (text, None)


def in_sandbox(secret: str, sandbox_id: int | None) -> str:
    """The text of a secret. sandbox_id: the sandbox that its person works in; None: the company of their account."""
    return secret if sandbox_id is None else f"{secret}.{sandbox_id}"


def sandbox_is_over() -> Refusal:
    return Refusal(
        403, "company_inactive", "The sandbox was ended, or is closed; open the live company or another sandbox."
    )


def delay(failures: int) -> datetime.timedelta:
    """How long the next attempt waits after this many failures in a row."""
    if failures < DELAY_FROM_FAILURES:
        return datetime.timedelta()
    doublings = min(failures - DELAY_FROM_FAILURES, 20)
    return min(datetime.timedelta(seconds=2**doublings), DELAY_MAX)


def network(address: str) -> str:
    """The /24 or /64 of an address; "" if it is none."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return str(ipaddress.ip_network((ip, 24 if ip.version == 4 else 64), strict=False))


def idle_ends_at(kind: str, last_seen_at: datetime.datetime) -> datetime.datetime:
    return last_seen_at + _IDLE[kind]


def ends_at(kind: str, started_at: datetime.datetime) -> datetime.datetime:
    return started_at + _LONGEST[kind]


def has_ended(
    kind: str, *, last_seen_at: datetime.datetime, ends_at: datetime.datetime, now: datetime.datetime
) -> bool:
    """Whether a session has been idle for too long, or has reached its end."""
    return now >= ends_at or now >= idle_ends_at(kind, last_seen_at)


def was_displaced(
    kind: str,
    *,
    started_at: datetime.datetime,
    last_seen_at: datetime.datetime,
    ends_at: datetime.datetime,
    now: datetime.datetime,
) -> bool:
    """Whether a session ended because its account had SESSIONS_MAX others. Nothing else brings its end forward."""
    return ends_at <= now and ends_at < min(started_at + _LONGEST[kind], idle_ends_at(kind, last_seen_at))


def password_characters_min(*, has_second_factor: bool) -> int:
    return PASSWORD_CHARACTERS_MIN_WITH_SECOND_FACTOR if has_second_factor else PASSWORD_CHARACTERS_MIN


def password_characters(value: str, *, has_second_factor: bool) -> int:
    """The length of a password that is long enough. No rule asks for digits or signs, and none expires."""
    least = password_characters_min(has_second_factor=has_second_factor)
    if not least <= len(value) <= PASSWORD_CHARACTERS_MAX:
        without = "" if has_second_factor else ", or 10 with a second factor"
        raise ValueError(f"The password must be {least} to {PASSWORD_CHARACTERS_MAX} characters{without}.")
    if "\0" in value:
        raise ValueError("The password must not hold the character NUL.")
    return len(value)


def is_made_of(value: str, words: Collection[str]) -> bool:
    """Whether a password has fewer than 8 letters and digits apart from words that others know of its person."""
    remainder = value.lower()
    for word in sorted(words, key=len, reverse=True):
        remainder = remainder.replace(word.lower(), " ")
    return sum(character.isalnum() for character in remainder) < OWN_CHARACTERS_MIN


def plain_code(value: str) -> str:
    """A code without the blanks and hyphens between its groups, in capitals."""
    return "".join(value.replace("-", " ").split()).upper()


def new_recovery_code() -> str:
    """80 random bits in four groups, so that its digest reveals nothing: ABCD-EFGH-2345-6777."""
    text = base64.b32encode(secrets.token_bytes(10)).decode()
    return "-".join(text[start : start + 4] for start in range(0, 16, 4))


def new_secret() -> str:
    return secrets.token_urlsafe(SECRET_BYTES)


def digest(secret: str) -> bytes:
    """What is stored of a secret with at least 80 random bits."""
    return hashlib.sha256(secret.encode()).digest()


def totp_steps(at: float, last_used: int) -> list[int]:
    """The steps of 30 s whose code is good: this one and its neighbours, after the last one used."""
    step = int(at) // TOTP_SECONDS
    return [candidate for candidate in (step - 1, step, step + 1) if candidate > last_used]


def sign_in_failed() -> Refusal:
    """The one answer to every wrong e-mail, password, code, passkey and step."""
    return Refusal(401, "sign_in_failed", "That did not match; check what you entered, or start again.")


def sign_in_delayed(wait: datetime.timedelta) -> Refusal:
    seconds = max(1, -(-wait // datetime.timedelta(seconds=1)))
    number, unit = (seconds, "second") if seconds < 60 else (-(-seconds // 60), "minute")
    duration = f"{number} {unit}{'' if number == 1 else 's'}"
    return Refusal(429, "sign_in_delayed", f"There were too many failures; wait {duration}, then try again.")


def sign_in_busy() -> Refusal:
    return Refusal(503, "sign_in_busy", "Too many people sign in at this moment; try again in a few seconds.")


def no_session() -> Refusal:
    return Refusal(401, "no_session", "The session has ended; sign in again.")


def no_account() -> Refusal:
    return Refusal(404, "no_account", "This person cannot sign in; an administrator can invite them.")


def link_not_valid() -> Refusal:
    return Refusal(404, "link_not_valid", "The link has been used, replaced or is too old; ask for a new one.")


def email_taken(field: str = "email") -> Refusal:
    return Refusal(422, "invalid_request", "Another person signs in with that e-mail; use another one.", field)
