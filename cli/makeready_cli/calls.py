"""Calls to the services of the running system, as the operator or on behalf of an actor."""

from __future__ import annotations

import secrets
from types import TracebackType
from typing import Self, TypeVar

import grpc
import structlog
from google.protobuf.message import Message

from chassis.auth.clients import ServiceClient, ServiceUnavailable
from chassis.auth.identity import OPERATOR, Identity, TokenSigner
from chassis.refusals import Refusal
from chassis.runtime import traces
from chassis.runtime.settings import SettingsError
from makeready.identity.v1 import actors_pb2, identity_pb2
from makeready_cli.errors import CommandError
from makeready_cli.system import Runtime

DEADLINE_SECONDS = 10.0

Response = TypeVar("Response", bound=Message)


class Operator:
    """Calls services as the operator or on behalf of an actor. Use as an asynchronous context manager."""

    def __init__(self, system: Runtime) -> None:
        self.system = system
        try:
            self._signer = TokenSigner(system.operator_key_file)
        except SettingsError:
            raise CommandError(f"{system.operator_key_file} holds no operator's key; start Makeready anew.") from None
        self._clients: dict[str, ServiceClient] = {}
        self._actor: tuple[str, int] | None = None
        self._actors_company_id = 0

    def act_as(self, actor: tuple[str, int], company_id: int) -> None:
        """Calls from now on as an administrator (email; company_id 0: of any company) or a member of staff (id)."""
        self._actor, self._actors_company_id = actor, company_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for client in self._clients.values():
            await client.close()

    def _client(self, service: str) -> ServiceClient:
        if service not in self._clients:
            if service not in self.system.services:
                raise CommandError(f"{service} is not part of the system that runs.")
            self._clients[service] = ServiceClient(service, self.system.services[service], self._signer)
        return self._clients[service]

    def trace(self) -> None:
        """Sets a request id on all later calls, which the services log. For commands that change something."""
        structlog.contextvars.bind_contextvars(request_id=secrets.token_hex(12))
        traces.begin()

    def channel(self, service: str) -> grpc.aio.Channel:
        """The channel to a service, for its health."""
        return self._client(service).channel

    async def _actor_token(self, actor: tuple[str, int], service: str) -> str:
        """The gateway's token for the actor, valid for one service."""
        email, staff_id = actor
        request = actors_pb2.IssueActorTokenRequest(company_id=self._actors_company_id, audience=service)
        if email:
            request.administrator_email = email
        else:
            request.staff_id = staff_id
        response = actors_pb2.IssueActorTokenResponse
        return (await self.call("gateway", request, response, as_operator=True)).token

    async def ask(
        self,
        service: str,
        request: Message,
        response: type[Response],
        *,
        company_id: int = 0,
        deadline_seconds: float = DEADLINE_SECONDS,
        as_operator: bool = False,
    ) -> Response:
        """One RPC, on behalf of the actor. Raises CommandError if the service refuses, and ServiceUnavailable.

        as_operator: call as the operator even if there is an actor, for RPCs that only the operator may call.
        """
        token = "" if self._actor is None or as_operator else await self._actor_token(self._actor, service)
        identity = Identity(OPERATOR, "operator", company_id=company_id)
        try:
            return await self._client(service).call(
                request, response, identity=identity, token=token, deadline_seconds=deadline_seconds
            )
        except Refusal as refusal:
            raise CommandError(refusal.message) from None

    async def call(
        self,
        service: str,
        request: Message,
        response: type[Response],
        *,
        company_id: int = 0,
        deadline_seconds: float = DEADLINE_SECONDS,
        as_operator: bool = False,
    ) -> Response:
        """As `ask`, but raises CommandError if the service gives no answer, too."""
        try:
            return await self.ask(
                service,
                request,
                response,
                company_id=company_id,
                deadline_seconds=deadline_seconds,
                as_operator=as_operator,
            )
        except ServiceUnavailable as error:
            raise CommandError(unavailable_message(service, error)) from None


async def ensure_company(operator: Operator, company_id: int) -> None:
    """Raises CommandError if no company has this id. Requests the gateway: other contexts may not have it yet."""
    request = identity_pb2.ListCompaniesRequest()
    listed = await operator.call("gateway", request, identity_pb2.ListCompaniesResponse, as_operator=True)
    if all(company.id != company_id for company in listed.companies):
        raise CommandError("No company has that id; `makeready company list` shows them.")


def is_transient(error: ServiceUnavailable) -> bool:
    """Whether the same call may succeed a moment later."""
    return not error.disk_full and error.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def is_unknown(error: ServiceUnavailable) -> bool:
    """Whether the service does not implement the RPC."""
    return error.code == grpc.StatusCode.UNIMPLEMENTED


def unavailable_message(service: str, error: ServiceUnavailable) -> str:
    """Why a service gave no answer, in a sentence for the operator."""
    if error.disk_full:
        return (
            f"The disk of {error.disk_full}'s database is full: make room on it, then repeat this; "
            "`makeready status` shows the disk."
        )
    messages: dict[grpc.StatusCode | None, str] = {
        grpc.StatusCode.UNAVAILABLE: "does not answer; `makeready status` lists the running services.",
        grpc.StatusCode.DEADLINE_EXCEEDED: "did not answer in time.",
        grpc.StatusCode.ABORTED: "writes nothing: its clock and PostgreSQL's are five minutes apart; set the clocks.",
        grpc.StatusCode.UNIMPLEMENTED: "does not know this request: is it of another release?",
        grpc.StatusCode.PERMISSION_DENIED: "does not accept the operator's key; start Makeready anew.",
    }
    return f"{service} {messages.get(error.code, 'failed; its log says why.')}"
