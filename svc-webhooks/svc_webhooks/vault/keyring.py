"""Signing secrets at rest: AES-256-GCM under a keyring from the environment (`WEBHOOKS_VAULT_KEYS`).

The database holds key ids and sealed bytes, never a key. Sealed bytes are bound to their subscription: copied to
another subscription's row, they can't be opened.
"""

import base64
import binascii
import os
import secrets
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from chassis.runtime.settings import SettingsError

KEY_BYTES = 32
NONCE_BYTES = 12
PREFIX_CHARACTERS = 12
SECRET_MARK = "whsec_"  # lets people and scanners recognise a leaked secret  # noqa: S105 - a mark, no secret


class VaultFault(Exception):  # noqa: N818 - names the party at fault
    """A sealed secret can't be opened: its key is not in the ring, or the bytes are not authentic."""


def new_secret() -> str:
    """A signing secret of 256 random bits. The key of Service-Signature is its UTF-8 bytes, that of Standard Webhooks
    the 32 bytes that its base64 encodes."""
    return SECRET_MARK + base64.b64encode(secrets.token_bytes(32)).decode()


def prefix_of(secret: str) -> str:
    """The part of a secret that may be visible (spec 2.12)."""
    return secret[:PREFIX_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Sealed:
    """An encrypted secret as stored."""

    key_id: str
    sealed: bytes = field(repr=False)


class Vault:
    """Seals with the ring's first key and opens with any key."""

    def __init__(self, keys: dict[str, bytes]) -> None:
        """keys: 32 bytes of key material by key id, the sealing key first; at least one."""
        self._ring = {key_id: AESGCM(material) for key_id, material in keys.items()}
        self._sealing = next(iter(keys))

    @property
    def key_id(self) -> str:
        """The id of the sealing key."""
        return self._sealing

    def seal(self, subscription_id: int, secret: str) -> Sealed:
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._ring[self._sealing].encrypt(nonce, secret.encode(), _bound_to(subscription_id))
        return Sealed(self._sealing, nonce + sealed)

    def open(self, subscription_id: int, key_id: str, sealed: bytes) -> str:
        """The secret. Raises VaultFault."""
        key = self._ring.get(key_id)
        if key is None:
            raise VaultFault(f"no key {key_id} in the keyring")
        try:
            opened = key.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], _bound_to(subscription_id))
        except (InvalidTag, ValueError):
            raise VaultFault(f"not sealed by key {key_id} for this subscription") from None
        return opened.decode()


def vault_from(setting: str) -> Vault | None:
    """Parses `id:base64,…`; None if the setting is empty. Raises SettingsError, which never contains the value."""
    if not setting.strip():
        return None
    keys: dict[str, bytes] = {}
    for entry in setting.split(","):
        key_id, colon, encoded = entry.strip().partition(":")
        try:
            material = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            material = b""
        if not (key_id and colon) or key_id in keys or len(material) != KEY_BYTES:
            raise SettingsError(
                f"WEBHOOKS_VAULT_KEYS must be id:base64,… with distinct ids and keys of {KEY_BYTES} bytes."
            )
        keys[key_id] = material
    return Vault(keys)


def _bound_to(subscription_id: int) -> bytes:
    return b"makeready webhook signing secret %d" % subscription_id
