"""Passkeys (WebAuthn): discoverable, with user verification, for the console's host name alone.

The library is loaded at the first use: it takes 22 MB, and gateways that serve the API alone need none of it.
"""

from __future__ import annotations

import base64
import ipaddress
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from asyncpg import Record

from chassis.refusals import Refusal, invalid_request
from gateway.identity.accounts import rules

RP_NAME = "Makeready"
CREDENTIAL_CHARACTERS_MAX = 20_000
CREDENTIAL_ID_BYTES_MAX = 1023
_MILLISECONDS = int(rules.CEREMONY.total_seconds() * 1000)


@dataclass(frozen=True, slots=True)
class NewPasskey:
    credential_id: bytes
    public_key: bytes
    sign_count: int
    synced: bool


@dataclass(frozen=True, slots=True)
class Used:
    sign_count: int
    synced: bool


class Passkeys:
    """The relying party: the console's origin."""

    def __init__(self, console_url: str) -> None:
        parts = urlsplit(console_url)
        self._origin = f"{parts.scheme}://{parts.netloc}".lower()
        self._rp_id = (parts.hostname or "").lower()

    def _check_host(self) -> None:
        """Browsers know no passkeys of an IP address."""
        try:
            ipaddress.ip_address(self._rp_id)
        except ValueError:
            return
        raise Refusal(422, "invalid_request", "Passkeys need a host name; MAKEREADY_CONSOLE_URL names an IP address.")

    def options_to_add(self, account: Record, present: list[Record]) -> tuple[bytes, str]:
        """The challenge, and the JSON for navigator.credentials.create. present: the account's passkeys."""
        self._check_host()
        import webauthn  # noqa: PLC0415
        from webauthn.helpers import structs  # noqa: PLC0415

        handle: UUID = account["handle"]
        options = webauthn.generate_registration_options(
            rp_id=self._rp_id,
            rp_name=RP_NAME,
            user_id=handle.bytes,
            user_name=account["email"],
            user_display_name=account["name"],
            timeout=_MILLISECONDS,
            authenticator_selection=structs.AuthenticatorSelectionCriteria(
                resident_key=structs.ResidentKeyRequirement.REQUIRED,
                require_resident_key=True,
                user_verification=structs.UserVerificationRequirement.REQUIRED,
            ),
            exclude_credentials=[
                structs.PublicKeyCredentialDescriptor(id=passkey["credential_id"]) for passkey in present
            ],
        )
        return options.challenge, webauthn.options_to_json(options)

    def options_to_use(self, present: list[Record]) -> tuple[bytes, str]:
        """The challenge, and the JSON for navigator.credentials.get. present: those to choose from; none: any."""
        self._check_host()
        import webauthn  # noqa: PLC0415
        from webauthn.helpers import structs  # noqa: PLC0415

        options = webauthn.generate_authentication_options(
            rp_id=self._rp_id,
            timeout=_MILLISECONDS,
            allow_credentials=[
                structs.PublicKeyCredentialDescriptor(id=passkey["credential_id"]) for passkey in present
            ],
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        )
        return options.challenge, webauthn.options_to_json(options)

    def added(self, credential_json: str, challenge: bytes) -> NewPasskey:
        """The passkey that a browser has made. Raises Refusal 422."""
        import webauthn  # noqa: PLC0415
        from webauthn.helpers import exceptions, structs  # noqa: PLC0415

        try:
            registration = webauthn.verify_registration_response(
                credential=_object(credential_json),
                expected_challenge=challenge,
                expected_rp_id=self._rp_id,
                expected_origin=self._origin,
                require_user_verification=True,
            )
            if not registration.credential_id or len(registration.credential_id) > CREDENTIAL_ID_BYTES_MAX:
                raise ValueError("an id of that length")
        except (exceptions.WebAuthnException, ValueError, TypeError, KeyError, AttributeError):
            raise invalid_request(
                "The browser's answer is not a passkey for this console; try again.", "credential_json", status=422
            ) from None
        synced = registration.credential_device_type is structs.CredentialDeviceType.MULTI_DEVICE
        return NewPasskey(
            registration.credential_id, registration.credential_public_key, registration.sign_count, synced
        )

    @staticmethod
    def credential_id(credential_json: str) -> bytes:
        """The credential that the browser says it has used. Raises Refusal 401."""
        try:
            return _bytes(_object(credential_json)["rawId"])
        except (ValueError, TypeError, KeyError, AttributeError):
            raise rules.sign_in_failed() from None

    def used(self, credential_json: str, challenge: bytes, passkey: Record, handle: UUID) -> Used:
        """What a valid answer of the passkey says. Raises Refusal 401."""
        import webauthn  # noqa: PLC0415
        from webauthn.helpers import exceptions, structs  # noqa: PLC0415

        try:
            answer = _object(credential_json)
            user_handle = answer["response"].get("userHandle")
            if user_handle and _bytes(user_handle) != handle.bytes:
                raise ValueError("another account's handle")
            assertion = webauthn.verify_authentication_response(
                credential=answer,
                expected_challenge=challenge,
                expected_rp_id=self._rp_id,
                expected_origin=self._origin,
                credential_public_key=passkey["public_key"],
                credential_current_sign_count=passkey["sign_count"],
                require_user_verification=True,
            )
        except (exceptions.WebAuthnException, ValueError, TypeError, KeyError, AttributeError):
            raise rules.sign_in_failed() from None
        return Used(
            assertion.new_sign_count, assertion.credential_device_type is structs.CredentialDeviceType.MULTI_DEVICE
        )


def _object(text: str) -> dict[str, Any]:
    """Raises ValueError."""
    if len(text) > CREDENTIAL_CHARACTERS_MAX:
        raise ValueError("too long")
    try:
        parsed = json.loads(text)
    except RecursionError:
        raise ValueError("too deep") from None
    if not isinstance(parsed, dict):
        raise ValueError("not an object")
    return parsed


def _bytes(text: str) -> bytes:
    """The bytes of base64url without padding. Raises ValueError or TypeError."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
