"""The running system: where its processes are, and calls to them as operator."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
import structlog

from chassis.auth.clients import ServiceClient, ServiceUnavailable
from chassis.auth.identity import OPERATOR, Identity, TokenSigner
from chassis.refusals import Refusal
from chassis.runtime.settings import SettingsError
from makeready.identity.v1 import actors_pb2
from makeready.identity.v1.actors_pb2_grpc import ActorsServiceStub
from makeready_cli.failures import Failed

DEADLINE_SECONDS = 10.0
SERVERS = ("postgres", "nats")  # processes that speak no gRPC

Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the runner wrote about the system that runs on a STATE_DIR."""

    state_dir: Path
    pid: int
    base_url: str
    admin_url: str
    operator_key_file: Path
    processes: Mapping[str, Mapping[str, Any]]

    @property
    def services(self) -> dict[str, str]:
        """The gRPC address of every service."""
        return {name: process["grpc"] for name, process in self.processes.items() if name not in SERVERS}


def runtime(environment: Mapping[str, str]) -> Runtime:
    """Finds the system of MAKEREADY_STATE_DIR. Raises Failed where none runs there."""
    try:
        folder = Path(environment.get("MAKEREADY_STATE_DIR") or ".state").expanduser().absolute()
    except RuntimeError:
        raise Failed("MAKEREADY_STATE_DIR begins with the home of a user whom this machine does not know.") from None
    path = folder / "runtime.json"
    try:
        found = json.loads(path.read_text())
        return Runtime(
            state_dir=folder,
            pid=int(found["pid"]),
            base_url=str(found["base_url"]),
            admin_url=str(found["admin_url"]),
            operator_key_file=Path(found["operator_key_file"]),
            processes=dict(found["processes"]),
        )
    except FileNotFoundError:
        raise Failed(
            f"Makeready is not running: there is no {path}. Start it with `make run`, or set MAKEREADY_STATE_DIR."
        ) from None
    except OSError as error:
        raise Failed(f"{path} can't be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise Failed(f"{path} is damaged; start Makeready anew.") from None


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # Ended, but its parent has not looked: the state stands behind the name, which may hold anything.
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in ("Z", "X")
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is another user's
    return True


class Operator:
    """Calls services as the operator, or as whoever acts. Use as an asynchronous context manager."""

    def __init__(self, system: Runtime) -> None:
        self.system = system
        try:
            self._issuer = TokenSigner(system.operator_key_file)
        except SettingsError:
            raise Failed(f"{system.operator_key_file} holds no operator's key; start Makeready anew.") from None
        self._peers: dict[str, ServiceClient] = {}
        self._actor: tuple[str, int] | None = None
        self._actors_company_id = 0

    def act_as(self, actor: tuple[str, int], company_id: int) -> None:
        """From here on an administrator (email; company_id 0: of whichever company) or a member of staff (id) calls."""
        self._actor, self._actors_company_id = actor, company_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for peer in self._peers.values():
            await peer.close()

    def _peer(self, service: str) -> ServiceClient:
        if service not in self._peers:
            if service not in self.system.services:
                raise Failed(f"{service} is not part of the system that runs.")
            self._peers[service] = ServiceClient(service, self.system.services[service], self._issuer)
        return self._peers[service]

    def trace(self) -> None:
        """Gives the calls from here on a request id, which the services log: for what changes something."""
        structlog.contextvars.bind_contextvars(request_id=secrets.token_hex(12))

    def channel(self, service: str) -> grpc.aio.Channel:
        """For a stub whose methods `ask` and `call` take."""
        return self._peer(service).channel

    async def _vouched(self, actor: tuple[str, int], service: str) -> str:
        """The gateway's token for whoever acts, for one service."""
        email, staff_id = actor
        request = actors_pb2.IssueActorTokenRequest(company_id=self._actors_company_id, audience=service)
        if email:
            request.administrator_email = email
        else:
            request.staff_id = staff_id
        actors = ActorsServiceStub(self.channel("gateway"))
        return (await self.call("gateway", actors.IssueActorToken, request, as_operator=True)).token

    async def ask(
        self,
        service: str,
        method: Callable[..., Awaitable[Response]],
        request: Any,
        *,
        company_id: int = 0,
        deadline_seconds: float = DEADLINE_SECONDS,
        as_operator: bool = False,
    ) -> Response:
        """One RPC, as whoever acts. Raises Failed where the service refuses, and PeerUnavailable.

        as_operator: as the operator all the same, for what nobody else may ask.
        """
        token = "" if self._actor is None or as_operator else await self._vouched(self._actor, service)
        identity = Identity(OPERATOR, "operator", company_id=company_id)
        try:
            return await self._peer(service).call(
                method, request, identity=identity, token=token, deadline_seconds=deadline_seconds
            )
        except Refusal as refusal:
            raise Failed(refusal.message) from None

    async def call(
        self,
        service: str,
        method: Callable[..., Awaitable[Response]],
        request: Any,
        *,
        company_id: int = 0,
        deadline_seconds: float = DEADLINE_SECONDS,
        as_operator: bool = False,
    ) -> Response:
        """As `ask`. Raises Failed where there is no answer, too."""
        try:
            return await self.ask(
                service,
                method,
                request,
                company_id=company_id,
                deadline_seconds=deadline_seconds,
                as_operator=as_operator,
            )
        except ServiceUnavailable as error:
            raise Failed(told(service, error)) from None


def is_transient(error: ServiceUnavailable) -> bool:
    """Whether the same call may succeed a moment later."""
    return error.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def is_unknown(error: ServiceUnavailable) -> bool:
    """Whether the service serves no such RPC."""
    return error.code == grpc.StatusCode.UNIMPLEMENTED


def told(service: str, error: ServiceUnavailable) -> str:
    """What the matter is, in a sentence for the operator."""
    match error.code:
        case grpc.StatusCode.UNAVAILABLE:
            return f"{service} does not answer; `makeready status` tells what runs."
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"{service} did not answer in time."
        case grpc.StatusCode.UNIMPLEMENTED:
            return f"{service} does not know this request: is it of another release?"
        case grpc.StatusCode.PERMISSION_DENIED:
            return f"{service} does not accept the operator's key; start Makeready anew."
        case _:
            return f"{service} failed; its log tells why."
