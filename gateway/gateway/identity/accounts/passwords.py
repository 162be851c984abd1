"""Passwords: argon2id in its usual text form. scrypt, in which release 0.2.0 stored them, is verified and replaced.

Hashing runs in two separate threads, not in the event loop, so that neither an attack on the sign-in nor a busy
morning starves the API. Further ones wait in line (`turns`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence

import argon2

from chassis.refusals import invalid_request
from gateway.identity.accounts import rules
from gateway.identity.accounts.turns import Line, Turns

# One of OWASP's choices: 46 MiB and some 100 ms of one core a guess.
_HASHER = argon2.PasswordHasher(time_cost=1, memory_cost=46 * 1024, parallelism=1, type=argon2.Type.ID)
# What an unknown email is compared with. No password has this hash: it is of random bytes that were thrown away.
NO_PASSWORD = "$argon2id$v=19$m=47104,t=1,p=1$+CWS7jm9+FcJRXfiuaZ6NA$5ainTu6pFyqGq7ucUNJ+0qpDn6DxStfSlwFzYWBm0Oc"  # noqa: S105
# zxcvbn's 0 to 4. 3 is 10^8 guesses or more: the commonest passwords, words with a year, rows of keys and repetitions
# have fewer.
SCORE_MIN = 3
_SCORED_CHARACTERS = 32  # only the first ones are scored: the worst 32 cost 0.8 s, the worst 72 cost 2.4 s
_PRODUCT = ("makeready", "make ready")


class Passwords:
    """Hashes and compares passwords. Each method waits for its turn in a line, and raises Refusal 503 if it is long."""

    def __init__(self) -> None:
        self._turns = Turns()

    async def hashed(self, password: str, line: Line) -> str:
        """The text to store for a password."""
        return await self._turns.run(line, _HASHER.hash, password)

    async def matches(self, password: str, stored: str | None, line: Line) -> bool:
        """Whether the password matches the stored text. Without one it takes as long, and the answer is no."""
        if len(password) > rules.PASSWORD_CHARACTERS_MAX:
            password, stored = password[: rules.PASSWORD_CHARACTERS_MAX], None
        return await self._turns.run(line, _matches, password, stored or NO_PASSWORD) and stored is not None

    async def new(
        self, password: str, line: Line, *, has_second_factor: bool, personal_texts: Sequence[str], status: int = 422
    ) -> tuple[str, bool]:
        """The text to store for a new password, and whether it is long enough without a second factor.

        personal_texts: what others know of the person. Raises Refusal (status) for a password that is too short or
        easily guessed.
        """
        try:
            characters = rules.password_characters(password, has_second_factor=has_second_factor)
        except ValueError as error:
            raise invalid_request(str(error), "password", status=status) from None
        words = _words([*_PRODUCT, *personal_texts])
        if rules.is_made_of(password, words) or await self._turns.run(line, _score, password, words) < SCORE_MIN:
            raise invalid_request(
                "That password is easily guessed; choose another, for example four or five random words.",
                "password",
                status=status,
            )
        return await self.hashed(password, line), characters >= rules.PASSWORD_CHARACTERS_MIN


def is_old(stored: str) -> bool:
    """Whether the stored text is to be replaced by one of today's kind."""
    return stored.startswith("scrypt$") or _HASHER.check_needs_rehash(stored)


def _matches(password: str, stored: str) -> bool:
    if stored.startswith("scrypt$"):
        return _matches_scrypt(password, stored)
    try:
        return _HASHER.verify(stored, password)
    except argon2.exceptions.VerifyMismatchError:
        return False


def _matches_scrypt(password: str, stored: str) -> bool:
    """stored: `scrypt$N$r$p$salt$digest`."""
    _, cost, block_size, parallelism, salt, digest = stored.split("$")
    expected = base64.b64decode(digest)
    computed = hashlib.scrypt(
        password.encode(),
        salt=base64.b64decode(salt),
        n=int(cost),
        r=int(block_size),
        p=int(parallelism),
        maxmem=132 * int(cost) * int(block_size),
        dklen=len(expected),
    )
    return hmac.compare_digest(computed, expected)


def _words(texts: Sequence[str]) -> list[str]:
    """The texts and their words, those of three characters and more."""
    parts = {
        part for text in texts for part in (text, *text.replace("@", " ").replace(".", " ").split()) if len(part) > 2
    }
    return sorted(parts)


def _score(password: str, words: Sequence[str]) -> int:
    """zxcvbn's score of the password, for a guesser who knows these words of the person."""
    from zxcvbn import zxcvbn  # type: ignore[import-untyped]  # noqa: PLC0415 - 14 MB that few processes ever need

    score: int = zxcvbn(password[:_SCORED_CHARACTERS], user_inputs=list(words))["score"]
    return score
