"""Cursors (spec 4.12): the position in a list, signed, and bound to company, list and filter set.

A cursor is `KEY_ID.` and base64url of the last id and a MAC. The MAC covers company, list and filter set, which the
cursor itself does not contain: in another company, list or filter set it does not verify. Keys rotate: the first of the
ring signs, all verify.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

MAC_BYTES = 16
ID_BYTES = 8
_ENCODED_CHARACTERS = 32  # for the 24 bytes: no padding


class Cursors:
    """Signs and verifies cursors. keys: by key id (letters and digits); the first one signs."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._keys = dict(keys)
        self._signer = next(iter(keys))

    def issue(self, after_id: int, bound_to: bytes) -> str:
        """The cursor that continues after an id. bound_to: company, list and filters, as one unambiguous string."""
        position = after_id.to_bytes(ID_BYTES, "big")
        signed = position + _mac(self._keys[self._signer], position, bound_to)
        return f"{self._signer}.{base64.urlsafe_b64encode(signed).decode()}"

    def after_id(self, cursor: str, bound_to: bytes) -> int | None:
        """The id after which the list continues; None for anything that `issue` did not return for `bound_to`."""
        key_id, _, encoded = cursor.partition(".")
        key = self._keys.get(key_id)
        # The decoder would accept + and / for - and _, which `issue` never writes.
        if key is None or len(encoded) != _ENCODED_CHARACTERS or "+" in encoded or "/" in encoded:
            return None
        try:
            signed = base64.b64decode(encoded.encode("ascii"), altchars=b"-_", validate=True)
        except (binascii.Error, UnicodeEncodeError):
            return None
        position, mac = signed[:ID_BYTES], signed[ID_BYTES:]
        if not hmac.compare_digest(mac, _mac(key, position, bound_to)):
            return None
        return int.from_bytes(position, "big")


def _mac(key: bytes, position: bytes, bound_to: bytes) -> bytes:
    return hmac.digest(key, position + bound_to, hashlib.sha256)[:MAC_BYTES]
