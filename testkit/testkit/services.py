"""Real services for tests: each its own process, database and keys, called over gRPC with real tokens."""

import asyncio
import base64
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from chassis.auth import identity
from chassis.auth.clients import CHANNEL_OPTIONS, refusal_of
from chassis.auth.identity import OPERATOR, SERVICE, Identity, TokenSigner, make_keys
from chassis.auth.rpcs import method_on
from makeready.common.v1 import options_pb2
from makeready_local.services import ISSUERS, NAMES, is_serving
from testkit import databases
from testkit.nats_users import nats_url_of
from testkit.processes import READY_SECONDS, Process, free_port

START_SECONDS = READY_SECONDS
# Tests see each failure, so nothing is repeated.
ONCE = [(name, value) for name, value in CHANNEL_OPTIONS if name != "grpc.service_config"]


class Keys:
    """A private key of each issuer, and the ring of their public keys."""

    def __init__(self, folder: Path) -> None:
        make_keys(folder, list(ISSUERS))
        self.folder = folder
        self._issuers: dict[str, TokenSigner] = {}

    def token(self, who: Identity, audience: str) -> str:
        """A token of this identity, signed by the issuer of its kind: the gateway for people and integrations."""
        name = {OPERATOR: "operator", SERVICE: who.issuer}.get(who.kind, "gateway")
        if name not in self._issuers:
            self._issuers[name] = TokenSigner(self.folder / f"{name}.jwk")
        return self._issuers[name].token(audience, who)


def issuer_of(kind: str, rpc: MethodDescriptor) -> str:
    """Who signs the token of a caller of this kind. For a service it is the last one that the RPC's proto names: where
    several read an outbox, that is svc-webhooks, which reads all of them."""
    services = rpc.GetOptions().Extensions[options_pb2.services]
    return identity.ISSUERS[kind] or next(reversed(services), NAMES[-1])


def gateway_alone() -> dict[str, str]:
    """The settings of a gateway that serves although no other service does."""
    ring = "1:" + base64.b64encode(bytes(32)).decode()
    rings = ("MAKEREADY_CURSOR_KEYS", "MAKEREADY_KEY_CHECK_SECRETS", "MAKEREADY_TOTP_KEYS")
    overrides = {"MAKEREADY_API_PORT": str(free_port()), "MAKEREADY_WAIT_FOR_SERVICES_SECONDS": "0"}
    return dict.fromkeys(rings, ring) | overrides


async def _number_from(url: str, first_id: int) -> None:
    connection = await asyncpg.connect(url)
    try:
        for (name,) in await connection.fetch("SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'"):
            await connection.execute(f"ALTER SEQUENCE {name} RESTART {first_id}")
    finally:
        await connection.close()


class RunningService(Process):
    """One service's process. name: `svc-catalog`; addresses: the gRPC targets of the others, by name.

    database_url: the owner's, for the tests' own statements; the process runs with the service's role.
    """

    def __init__(
        self,
        name: str,
        keys: Keys,
        database_url: str,
        nats_url: str,
        log: Path,
        target: str | None = None,
        addresses: Mapping[str, str] | None = None,
        *,
        warm: bool = True,
    ) -> None:
        package = name.replace("-", "_")
        super().__init__([sys.executable, "-m", package], log, warm=warm)
        self.name = name
        self.keys = keys
        self.database_url = database_url
        self.nats_url = nats_url
        self.target = target or f"127.0.0.1:{free_port()}"
        self.addresses = addresses or {}

    @property
    def environment(self) -> dict[str, str]:
        unreachable = dict.fromkeys(NAMES, "127.0.0.1:1")
        return os.environ | {
            **databases.environment(self.database_url),
            "MAKEREADY_NATS_URL": nats_url_of(self.nats_url, self.name),
            "MAKEREADY_GRPC_LISTEN": self.target,
            "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
            "MAKEREADY_IDENTITY_KEY_FILE": str(self.keys.folder / f"{self.name}.jwk"),
            "MAKEREADY_IDENTITY_RING_FILE": str(self.keys.folder / "ring.jwks"),
            "MAKEREADY_LINKS_URL": "https://app.test",
            **{
                f"MAKEREADY_{name.removeprefix('svc-').upper()}_ADDRESS": target
                for name, target in (unreachable | dict(self.addresses)).items()
            },
        }

    def migrate(self, first_id: int = 1) -> None:
        """first_id: the start of its sequences. Services of one session share a NATS, and so the ids in replicas."""
        self.run_to_end("migrate")
        asyncio.run(_number_from(self.database_url, first_id))

    def start(self, **more: str) -> None:
        """Starts it and waits until it serves. more: further environment, for example MAKEREADY_KILL_AT."""
        self.launch(**more)
        self.wait_until(lambda: is_serving(self.target), START_SECONDS)

    def stop(self) -> None:
        """Stops it with SIGTERM; fails the test if its exit status is not 0."""
        if self.is_running:
            assert self.end() == 0, self.log_tail()

    @contextlib.asynccontextmanager
    async def channel(self) -> AsyncIterator[grpc.aio.Channel]:
        async with grpc.aio.insecure_channel(self.target, options=ONCE) as channel:
            yield channel

    async def call(self, channel: grpc.aio.Channel, request: Message, who: Identity, traceparent: str = "") -> Any:
        """The RPC that takes such a request, with this identity. Raises Refusal, or AioRpcError for a
        fault or a refused identity."""
        metadata = [("authorization", self.keys.token(who, self.name)), ("x-request-id", "req-test")]
        metadata += [("traceparent", traceparent)] if traceparent else []
        try:
            return await method_on(channel, type(request))(request, metadata=metadata, timeout=20, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            refused = refusal_of(error)
            if refused is None:
                error.add_note(f"The end of the log of {self.name}: {self.log_tail()}")
                raise
            raise refused from None
