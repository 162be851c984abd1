"""Gateways for tests, each in its own process, on shared servers; and the operator who calls them."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import ssl
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from chassis.auth.clients import refusal_of
from chassis.auth.identity import ADMINISTRATOR, OPERATOR, Identity, TokenSigner
from chassis.auth.rpcs import method_on, rpc_of
from gateway.config import CONTEXTS
from makeready.common.v1.audit_pb2 import ListAuditRequest
from makeready.identity.v1 import identity_pb2 as pb
from testkit import databases
from testkit.nats_users import nats_url_of
from testkit.processes import READY_SECONDS, Process, free_port
from testkit.raw_http import Api
from testkit.stub_contexts import Contexts

SCOPES = {"read": pb.SCOPE_READ, "write": pb.SCOPE_WRITE, "webhook_only": pb.SCOPE_WEBHOOK_ONLY}


class Gateway(Process):
    """One gateway process."""

    def __init__(self, environment: dict[str, str], log: Path, *, warm: bool = True) -> None:
        super().__init__([sys.executable, "-P", "-m", "gateway"], log, environment, warm=warm)

    @property
    def api_port(self) -> int:
        return int(self.environment["MAKEREADY_API_PORT"])

    @property
    def grpc_target(self) -> str:
        return self.environment["MAKEREADY_GRPC_LISTEN"]

    def start(self) -> None:
        """Starts it; `ready` waits."""
        self.launch()

    async def ready(self, seconds: float = READY_SECONDS, tls: ssl.SSLContext | None = None) -> None:
        """Waits until /readyz answers 200, over `tls` if its port speaks that."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.is_running, self.log_tail()
            try:
                if (await Api(self.api_port, tls).get("//readyz")).status == 200:
                    return
            except OSError:
                pass
            await asyncio.sleep(0.05)
        raise AssertionError(self.log_tail())

    async def stop(self) -> int:
        return await asyncio.to_thread(self.end)


@dataclass
class GatewayHarness:
    """The servers, keys and contexts that the tests' gateways share."""

    folder: Path
    database_url: str  # the owner's; the gateways run with the service's role
    nats_url: str
    contexts: Contexts
    gateways: list[Gateway] = field(default_factory=list)

    def gateway(self, settings: Mapping[str, str] | None = None, *, warm: bool = True, **more: str) -> Gateway:
        """A gateway, not started yet, with these settings and `more`."""
        number = len(self.gateways)
        environment = os.environ | {
            **databases.environment(self.database_url),
            "MAKEREADY_NATS_URL": nats_url_of(self.nats_url, "gateway"),
            "MAKEREADY_GRPC_LISTEN": f"127.0.0.1:{free_port()}",
            "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
            "MAKEREADY_IDENTITY_KEY_FILE": str(self.folder / "keys" / "gateway.jwk"),
            "MAKEREADY_IDENTITY_RING_FILE": str(self.folder / "keys" / "ring.jwks"),
            "MAKEREADY_API_PORT": str(free_port()),
            "MAKEREADY_CONSOLE_URL": "http://localhost:8081",
            "MAKEREADY_CURSOR_KEYS": "1:" + base64.b64encode(b"c" * 32).decode(),
            "MAKEREADY_KEY_CHECK_SECRETS": "1:" + base64.b64encode(b"k" * 32).decode(),
            "MAKEREADY_TOTP_KEYS": "1:" + base64.b64encode(b"t" * 32).decode(),
            **{
                f"MAKEREADY_{name.removeprefix('svc-').upper()}_ADDRESS": self.contexts.addresses[name]
                for name in CONTEXTS
            },
            **(settings or {}),
            **more,
        }
        gateway = Gateway(environment, self.folder / f"gateway-{number}.log", warm=warm)
        self.gateways.append(gateway)
        return gateway


class Operator:
    """The operator's calls to a gateway; a refusal is raised as Refusal."""

    def __init__(self, target: str, keys: Path) -> None:
        self._channel = grpc.aio.insecure_channel(target)
        self._issuer = TokenSigner(keys / "operator.jwk")
        self._vouching = TokenSigner(keys / "gateway.jwk")
        self._names = itertools.count(1)

    async def __call__(self, rpc: str, request: Any, company_id: int = 0, who: Identity | None = None) -> Any:
        """who: a caller for whom the gateway vouches, instead of the operator."""
        token = self._issuer.token("gateway", Identity(OPERATOR, "operator", company_id))
        if who is not None:
            token = self._vouching.token("gateway", who)
        assert rpc_of(type(request)).name == rpc
        method = method_on(self._channel, type(request))
        metadata = [("authorization", token), ("x-request-id", "op-1")]
        try:
            return await method(request, metadata=metadata, timeout=60, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            refused = refusal_of(error)
            if refused is None:
                raise
            raise refused from None

    async def company(self, name: str = "Maple Homes", timezone: str = "") -> int:
        created = await self("CreateCompany", pb.CreateCompanyRequest(name=name, timezone=timezone))
        company_id: int = created.company.id
        return company_id

    async def sandbox(self, timezone: str = "") -> int:
        request = pb.CreateCompanyRequest(name="Maple Sandbox", timezone=timezone, is_sandbox=True)
        company_id: int = (await self("CreateCompany", request)).company.id
        return company_id

    async def administrator(self, company_id: int) -> str:
        email = f"ada{next(self._names)}-{company_id}@example.com"
        await self("CreateAdministrator", pb.CreateAdministratorRequest(company_id=company_id, email=email))
        return email

    async def administrators_identity(self, company_id: int) -> Identity:
        """The identity of a new administrator of a company."""
        email = f"adm{next(self._names)}-{company_id}@example.com"
        administrator = await self(
            "CreateAdministrator", pb.CreateAdministratorRequest(company_id=company_id, email=email)
        )
        return Identity(
            ADMINISTRATOR,
            "gateway",
            company_id,
            administrator_id=administrator.administrator_id,
            stepped_up_at=int(time.time()),
        )

    async def audit(self, company_id: int, subject: str = "") -> list[tuple[str, str, int, Any, Any]]:
        """The gateway's entries of a company, the oldest first: actor, action, subject_id, before, after."""
        answer = await self("ListAudit", ListAuditRequest(subject=subject, limit=200), company_id)
        assert {entry.request_id for entry in answer.entries} <= {"op-1"}
        return [
            (entry.actor, entry.action, entry.subject_id, json.loads(entry.before), json.loads(entry.after))
            for entry in reversed(answer.entries)
        ]

    async def key(self, company_id: int, scope: str = "write", email: str = "") -> str:
        return (await self.minted(company_id, scope, email))[1]

    async def minted(self, company_id: int, scope: str = "write", email: str = "") -> tuple[int, str]:
        minted = await self(
            "MintKey", pb.MintKeyRequest(company_id=company_id, scope=SCOPES[scope], administrator_email=email)
        )
        return minted.key_id, minted.key

    async def revoke(self, key_id: int) -> None:
        await self("RevokeKey", pb.RevokeKeyRequest(key_id=key_id))

    async def set_active(self, company_id: int, active: bool) -> None:
        await self("UpdateCompany", pb.UpdateCompanyRequest(company_id=company_id, active=active))
