"""Texts that a browser keeps and brings back, with a MAC of the gateway's: nothing is stored for them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

MAC_BYTES = 32
TEXT_CHARACTERS_MAX = 400


class SignedTexts:
    """Signs with the ring's first key and verifies with any."""

    def __init__(self, ring: Mapping[str, bytes]) -> None:
        """ring: key material by key id, the signing one first."""
        self._keys = [hashlib.sha256(b"makeready signed\0" + material).digest() for material in ring.values()]

    def sign(self, purpose: str, content: bytes, bound_to: str = "") -> str:
        """The text, in base64url. bound_to: what the text does not contain and is to hold when it comes back."""
        return _text(content + _mac(self._keys[0], purpose, content, bound_to))

    def content(self, purpose: str, text: str, bound_to: str = "") -> bytes | None:
        """The content of a text that this ring signed, for the same purpose and bound to the same; else None."""
        whole = _bytes(text)
        content, mac = whole[:-MAC_BYTES], whole[-MAC_BYTES:]
        macs = [_mac(key, purpose, content, bound_to) for key in self._keys]
        return content if content and any(hmac.compare_digest(mac, expected) for expected in macs) else None


def unverified(text: str) -> bytes:
    """The content of a text that nobody has verified yet; empty for what is none."""
    return _bytes(text)[:-MAC_BYTES]


def _mac(key: bytes, purpose: str, content: bytes, bound_to: str) -> bytes:
    parts = (purpose.encode(), content, bound_to.encode())
    return hmac.digest(key, b"".join(len(part).to_bytes(4, "big") + part for part in parts), hashlib.sha256)


def _bytes(text: str) -> bytes:
    if len(text) > TEXT_CHARACTERS_MAX:
        return b""
    try:
        whole = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
    # The decoder accepts other spellings, too, of which none was issued: one text is one use of a challenge.
    return whole if _text(whole) == text else b""


def _text(whole: bytes) -> str:
    return base64.urlsafe_b64encode(whole).rstrip(b"=").decode()
