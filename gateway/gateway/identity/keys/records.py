"""The public shape that the gateway itself owns: who a key is (spec 2.2)."""

from __future__ import annotations

from typing import Literal

import msgspec

from gateway.identity.keys import rules

encode = msgspec.json.Encoder().encode


class Company(msgspec.Struct, frozen=True, gc=False):
    """The company that a key belongs to."""

    id: int
    """The company's id; the `company_id` of its events."""
    name: str
    """The company's name."""
    timezone: str
    """The company's timezone, an IANA name such as America/Chicago."""
    mode: Literal["live", "sandbox"]
    """`sandbox` for a company to try things in; its keys begin with `mk_test_`."""


class Key(msgspec.Struct, frozen=True, gc=False):
    """An API key, without its secret part."""

    id: int
    """The key's id."""
    name: str
    """What the administrator called the key."""
    prefix: str
    """The first characters of the key, to tell keys apart."""
    scope: rules.Scope
    """What the key opens. `write` opens all that the other two do."""
    created_at: str
    """When the key was minted."""


class Whoami(msgspec.Struct, frozen=True, gc=False):
    """The key that asked, and its company."""

    api_version: Literal["v1"]
    """The version of this API."""
    company: Company
    """The company whose records the key sees."""
    key: Key
    """The key itself."""
