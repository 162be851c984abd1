"""Cursors (spec 4.12): the position in a list or a feed, signed, and bound to company, path and filter set.

A cursor is `KEY_ID.` and base64url of a position and a MAC. The position is the last id of a list's page, or what the
service of a feed returned. The MAC covers company, path and filter set, which the cursor itself does not contain: in
another company, path or filter set it does not verify. Keys rotate: the first of the ring signs, all verify.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

MAC_BYTES = 16
ID_BYTES = 8
POSITION_BYTES_MAX = 64


class Cursors:
    """Signs and verifies cursors. keys: by key id (letters and digits); the first one signs."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._keys = dict(keys)
        self._signer = next(iter(keys))

    def issue(self, after_id: int, bound_to: bytes) -> str:
        """The cursor that continues after an id. bound_to: company, list and filters, as one unambiguous string."""
        return self.issue_at(after_id.to_bytes(ID_BYTES, "big"), bound_to)

    def issue_at(self, position: bytes, bound_to: bytes) -> str:
        """The cursor of a position of 1 to POSITION_BYTES_MAX bytes. bound_to: see `issue`."""
        assert 0 < len(position) <= POSITION_BYTES_MAX
        signed = position + _mac(self._keys[self._signer], position, bound_to)
        return f"{self._signer}.{_encoded(signed)}"

    def after_id(self, cursor: str, bound_to: bytes) -> int | None:
        """The id after which the list continues; None for anything that `issue` did not return for `bound_to`."""
        position = self.position(cursor, bound_to)
        return None if position is None or len(position) != ID_BYTES else int.from_bytes(position, "big")

    def position(self, cursor: str, bound_to: bytes) -> bytes | None:
        """The position of a cursor; None for anything that `issue_at` did not return for `bound_to`."""
        key_id, _, encoded = cursor.partition(".")
        key = self._keys.get(key_id)
        if key is None or len(encoded) > _CHARACTERS_MAX:
            return None
        try:
            signed = base64.b64decode(encoded.encode("ascii") + b"=" * (-len(encoded) % 4), altchars=b"-_")
        except (binascii.Error, UnicodeEncodeError):
            return None
        position, mac = signed[:-MAC_BYTES], signed[-MAC_BYTES:]
        # The decoder accepts other spellings, too, of which none was issued.
        if not position or _encoded(signed) != encoded:
            return None
        return position if hmac.compare_digest(mac, _mac(key, position, bound_to)) else None


def _encoded(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()


_CHARACTERS_MAX = len(_encoded(bytes(POSITION_BYTES_MAX + MAC_BYTES)))


def _mac(key: bytes, position: bytes, bound_to: bytes) -> bytes:
    return hmac.digest(key, position + bound_to, hashlib.sha256)[:MAC_BYTES]
