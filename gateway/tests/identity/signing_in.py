"""The console's calls, people with tokens, and an authenticator that makes passkeys in software."""

from __future__ import annotations

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import grpc
import pyotp
from cbor2 import dumps
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from google.protobuf.message import Message
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url

from chassis.auth.clients import refusal_of
from chassis.auth.identity import SERVICE, Identity, TokenSigner, TokenVerifier
from chassis.auth.rpcs import method_on
from makeready.identity.v1 import identity_pb2
from makeready.identity.v1 import sessions_pb2 as pb
from testkit.gateways import Operator

GOOD = "three purple otters juggle"
BETTER = "seven green herons whistle"
_networks = itertools.count(1)


class Console:
    """The console: a service that calls SessionsService and nothing else. Each has a separate network."""

    def __init__(self, target: str, keys: Path, name: str = "console") -> None:
        self._channel = grpc.aio.insecure_channel(target)
        self._keys = keys
        self._token = TokenSigner(keys / "console.jwk").token("gateway", Identity(SERVICE, name))
        number = next(_networks)
        self.client = pb.Client(address=f"10.{number // 250}.{number % 250}.7", user_agent="Firefox")

    async def __call__(self, rpc: str, **values: Any) -> Any:
        """One RPC of SessionsService. A refusal is raised as Refusal."""
        request_type = getattr(pb, f"{rpc}Request")
        if "client" in request_type.DESCRIPTOR.fields_by_name:
            values.setdefault("client", self.client)
        return await self._answer(request_type(**values), self._token)

    async def as_itself(self, request: Message) -> Any:
        """One RPC of another service of the gateway."""
        return await self._answer(request, self._token)

    async def _answer(self, request: Message, token: str) -> Any:
        metadata = [("authorization", token), ("x-request-id", "op-1")]
        try:
            return await method_on(self._channel, type(request))(request, metadata=metadata, timeout=20)
        except grpc.aio.AioRpcError as error:
            refused = refusal_of(error)
            if refused is None:
                raise
            raise refused from None

    async def sign_in(self, email: str, password: str = GOOD) -> pb.NewSession:
        """A session of an account without a second factor."""
        answer = await self("SignIn", email=email, password=password)
        assert answer.WhichOneof("outcome") == "session"
        session: pb.NewSession = answer.session
        return session

    async def session(self, text: str) -> pb.Session | None:
        answer = await self("GetSession", session=text)
        return answer.session if answer.HasField("session") else None

    async def identity(self, text: str, audience: str = "gateway") -> Identity:
        """Whom the session's token names."""
        token = (await self("IssueToken", session=text, audience=audience)).token
        return TokenVerifier(self._keys / "ring.jwks", audience).verify(token)

    async def account(self, text: str, rpc: str, request: Any) -> Any:
        """One RPC of AccountsService by the person who has the session."""
        token = (await self("IssueToken", session=text, audience="gateway")).token
        return await self._answer(request, token)


class Authenticator:
    """One passkey, as a security key makes it, or a phone, which counts no uses because it shares its passkeys."""

    def __init__(self, origin: str, *, counts: bool = True) -> None:
        self._origin, self._counts = origin, counts
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.credential_id = hashlib.sha256(str(next(_networks)).encode()).digest()
        self.handle = b""
        self.count = 0

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self._origin}).encode()

    def _data(self, rp_id: str, flags: int, more: bytes = b"") -> bytes:
        self.count += self._counts
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big") + more

    def create(self, options_json: str, *, verified: bool = True) -> str:
        options = json.loads(options_json)
        assert options["authenticatorSelection"]["residentKey"] == "required"
        assert options["authenticatorSelection"]["userVerification"] == "required"
        self.handle = base64url_to_bytes(options["user"]["id"])
        numbers = self._key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        credential = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + dumps(cose)
        data = self._data(options["rp"]["id"], 0x45 if verified else 0x41, credential)
        response = {
            "clientDataJSON": self._client_data("webauthn.create", options["challenge"]),
            "attestationObject": dumps({"fmt": "none", "attStmt": {}, "authData": data}),
        }
        return self._json(response)

    def get(self, options_json: str, *, verified: bool = True, counted: bool = True) -> str:
        options = json.loads(options_json)
        assert options["userVerification"] == "required"
        if not counted:
            self.count -= 1
        data = self._data(options["rpId"], 0x05 if verified else 0x01)
        client_data = self._client_data("webauthn.get", options["challenge"])
        signed = data + hashlib.sha256(client_data).digest()
        response = {
            "clientDataJSON": client_data,
            "authenticatorData": data,
            "signature": self._key.sign(signed, ec.ECDSA(SHA256())),
            "userHandle": self.handle,
        }
        return self._json(response)

    def _json(self, response: dict[str, bytes]) -> str:
        credential_id = bytes_to_base64url(self.credential_id)
        encoded = {name: bytes_to_base64url(value) for name, value in response.items()}
        whole = {"id": credential_id, "rawId": credential_id, "type": "public-key", "response": encoded}
        return json.dumps(whole | {"clientExtensionResults": {}})


class App:
    """An authenticator app that has a secret."""

    def __init__(self, secret: str) -> None:
        self._app = pyotp.TOTP(secret)

    def code(self, at: float) -> str:
        return self._app.at(int(at))


async def administrator(operator: Operator, company_id: int, password: str = GOOD) -> str:
    """A new administrator who can sign in; returns the email."""
    email = f"boss{next(_networks)}@example.com"
    request = identity_pb2.CreateAdministratorRequest(
        company_id=company_id, email=email, name="Olga Petrov", password=password
    )
    await operator("CreateAdministrator", request)
    return email
