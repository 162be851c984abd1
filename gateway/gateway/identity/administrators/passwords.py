"""Administrators' passwords: scrypt, in the form `scrypt$N$r$p$salt$digest`, so that its cost can grow later."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os

# 64 MiB and some 150 ms of one core for each guess.
COST, BLOCK_SIZE, PARALLELISM = 2**16, 8, 1
SALT_BYTES = 16
DIGEST_BYTES = 32

# Checking a sign-in takes one core and 64 MiB: more than a few at a time would starve the API.
_AT_A_TIME = asyncio.Semaphore(2)


def _digest(password: str, salt: bytes, cost: int, block_size: int, parallelism: int) -> bytes:
    return hashlib.scrypt(
        password.encode(),
        salt=salt,
        n=cost,
        r=block_size,
        p=parallelism,
        maxmem=132 * cost * block_size,
        dklen=DIGEST_BYTES,
    )


async def hashed(password: str) -> str:
    """The text to store for a password."""
    salt = os.urandom(SALT_BYTES)
    async with _AT_A_TIME:
        digest = await asyncio.to_thread(_digest, password, salt, COST, BLOCK_SIZE, PARALLELISM)
    encoded = (base64.b64encode(part).decode() for part in (salt, digest))
    return "$".join(["scrypt", str(COST), str(BLOCK_SIZE), str(PARALLELISM), *encoded])


async def matches(password: str, stored: str) -> bool:
    """Whether the password matches the stored text."""
    _, cost, block_size, parallelism, salt, digest = stored.split("$")
    async with _AT_A_TIME:
        found = await asyncio.to_thread(
            _digest, password, base64.b64decode(salt), int(cost), int(block_size), int(parallelism)
        )
    return hmac.compare_digest(found, base64.b64decode(digest))
