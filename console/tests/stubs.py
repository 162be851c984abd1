"""gRPC servers with the contexts' contracts, so that the console is tested without them.

Each verifies tokens as a real service does, admits whom the proto names, asks for a confirmation where it says so, and
answers an RPC with `answers[RPC]`: a response, or a function of (request, identity) that returns one or raises Refusal.
An RPC without an answer returns an empty response. `calls` has what arrived.
"""

from __future__ import annotations

import asyncio
import datetime
import itertools
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.app.rpc_server import SERVER_OPTIONS
from chassis.auth.access import Access
from chassis.auth.clients import REFUSAL
from chassis.auth.identity import ADMINISTRATOR, STAFF, Identity, IdentityError, TokenSigner, TokenVerifier
from chassis.auth.rpcs import services_of
from chassis.refusals import Refusal
from console import config
from makeready.common.v1 import documents_pb2, options_pb2
from makeready.identity.v1 import sessions_pb2

NOW = datetime.datetime(2026, 11, 22, 15, 0, tzinfo=datetime.UTC)  # 10 am in New York
CONTEXTS = {
    "gateway": ("identity", "common"),
    "svc-webhooks": ("webhooks", "common"),
    "svc-catalog": ("catalog", "common"),
    "svc-tickets": ("tickets", "common"),
    "svc-occupancy": ("occupancy", "common"),
}
PASSWORD, CODE = "a long enough password", "123456"


def stamp(at: datetime.datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(at)
    return timestamp


def ago(**length: float) -> Timestamp:
    return stamp(NOW - datetime.timedelta(**length))


@dataclass
class Called:
    service: str
    rpc: str
    request: Any
    identity: Identity


@dataclass
class Person:
    """Somebody who can sign in."""

    kind: str
    person_id: int
    name: str
    email: str
    company_id: int = 1
    company_name: str = "Makeready Demo"
    has_totp: bool = False
    has_passkey: bool = False
    second_factor_due: bool = False

    @property
    def actor(self) -> str:
        return f"{self.kind}:{self.person_id}"


@dataclass
class Stubs:
    """The five services. `people` by e-mail, all with PASSWORD; `sessions` by text."""

    ring_file: Path
    signer: TokenSigner
    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[Called] = field(default_factory=list)
    people: dict[str, Person] = field(default_factory=dict)
    sessions: dict[str, sessions_pb2.Session] = field(default_factory=dict)
    sandboxes: dict[int, str] = field(default_factory=dict)
    """The names of company 1's sandboxes that are open, by id."""
    offset: datetime.timedelta = datetime.timedelta()
    """How far the clocks of these are ahead."""
    confirms: bool = True
    """Whether a sign-in confirms who the person is, too."""
    displaced: set[str] = field(default_factory=set)
    """Texts of sessions that newer ones displaced."""
    addresses: dict[str, str] = field(default_factory=dict)
    clients: list[Any] = field(default_factory=list)
    """The browsers that tried to sign in."""
    session_requests: list[Any] = field(default_factory=list)
    """The requests about sessions."""
    slow: set[str] = field(default_factory=set)
    """RPCs that never answer."""
    _servers: dict[str, grpc.aio.Server] = field(default_factory=dict)
    _ids: Any = field(default_factory=lambda: itertools.count(1))

    async def start(self, name: str) -> None:
        server = grpc.aio.server(options=SERVER_OPTIONS)
        ring = TokenVerifier(self.ring_file, audience=name)
        for context in CONTEXTS[name]:
            for service in services_of(f"makeready.{context}.v1").values():
                handlers = {
                    method.name: grpc.unary_unary_rpc_method_handler(
                        self._handler(name, f"{context}.{service.name}/{method.name}", method, ring),
                        request_deserializer=GetMessageClass(method.input_type).FromString,
                        response_serializer=GetMessageClass(method.output_type).SerializeToString,
                    )
                    for method in service.methods
                }
                server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
        port = server.add_insecure_port(self.addresses.get(name, "127.0.0.1:0"))
        await server.start()
        self.addresses[name], self._servers[name] = f"127.0.0.1:{port}", server

    async def start_all(self) -> None:
        for name in config.SERVICES:
            await self.start(name)

    async def stop(self, name: str) -> None:
        await self._servers.pop(name).stop(None)

    async def stop_all(self) -> None:
        for name in list(self._servers):
            await self.stop(name)

    def called(self, rpc: str) -> list[Any]:
        """The requests of an RPC, in order."""
        return [call.request for call in self.calls if call.rpc == rpc]

    def begin(self, person: Person, *, confirmed: bool = False) -> str:
        """A session of the person; returns its text."""
        text = secrets.token_urlsafe(32)
        until = stamp(NOW + datetime.timedelta(minutes=10)) if confirmed else None
        self.sessions[text] = sessions_pb2.Session(
            session_id=next(self._ids),
            kind=options_pb2.KIND_STAFF if person.kind == STAFF else options_pb2.KIND_ADMINISTRATOR,
            person_id=person.person_id,
            actor=person.actor,
            name=person.name,
            email=person.email,
            company_id=person.company_id,
            company_name=person.company_name,
            timezone="America/New_York",
            started_at=ago(hours=1),
            idle_ends_at=stamp(NOW + datetime.timedelta(hours=8)),
            ends_at=stamp(NOW + datetime.timedelta(hours=23)),
            step_up_until=until,
            has_password=True,
            has_totp=person.has_totp,
            has_passkey=person.has_passkey,
            second_factor_due=person.second_factor_due,
        )
        return text

    def _handler(self, service: str, rpc: str, method: Any, ring: TokenVerifier) -> Callable[[Any, Any], Any]:
        access = Access(method)
        step_up = method.GetOptions().Extensions[options_pb2.step_up]

        async def handle(request: Any, context: Any) -> Any:
            try:
                who = ring.verify(str(dict(context.invocation_metadata()).get("authorization", "")))
                access.check(who)
            except IdentityError as error:
                await context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))
            if rpc in self.slow:
                await asyncio.sleep(60)
            try:
                if step_up and who.kind in (STAFF, ADMINISTRATOR) and who.scope != "confirmed":
                    raise Refusal(403, "step_up_required", "Confirm who you are first.")
                self.calls.append(Called(service, rpc, request, who))
                named = f"{service} {rpc}"  # one service's answer to an RPC that several serve
                answer = self.answers.get(named, self.answers.get(rpc, getattr(self, f"_{method.name}", None)))
                if callable(answer):
                    answer = answer(request, who)
                return GetMessageClass(method.output_type)() if answer is None else answer
            except Refusal as refusal:
                sent = documents_pb2.Refusal(
                    status=refusal.status, code=refusal.code, message=refusal.message, field=refusal.field
                )
                await context.abort(
                    grpc.StatusCode.FAILED_PRECONDITION, refusal.code, ((REFUSAL, sent.SerializeToString()),)
                )

        return handle

    # SessionsService, as far as the console needs it.

    def session(self, text: str) -> sessions_pb2.Session | None:
        """As the gateway: the text of a session may name a sandbox of its administrator's company."""
        secret, dot, number = text.partition(".")
        session = self.sessions.get(secret)
        if session is None or not dot:
            return session
        is_theirs = session.company_id == 1 and session.kind == options_pb2.KIND_ADMINISTRATOR
        if not is_theirs or not number.isdigit() or int(number) not in self.sandboxes:
            return None
        in_sandbox = sessions_pb2.Session()
        in_sandbox.CopyFrom(session)
        in_sandbox.live_company_id, in_sandbox.live_company_name = session.company_id, session.company_name
        in_sandbox.company_id, in_sandbox.company_name = int(number), self.sandboxes[int(number)]
        in_sandbox.is_sandbox = True
        in_sandbox.clock_offset.FromTimedelta(self.offset)
        return in_sandbox

    def _new(self, person: Person, *, confirmed: bool = True) -> sessions_pb2.NewSession:
        text = self.begin(person, confirmed=confirmed)
        return sessions_pb2.NewSession(known=f"known-{person.person_id}", text=text, session=self.sessions[text])

    def _SignIn(self, request: Any, _who: Identity) -> Any:
        self.clients.append(request.client)
        person = self.people.get(request.email)
        if person is None or request.password != PASSWORD:
            raise Refusal(401, "sign_in_failed", "E-mail or password is wrong.")
        if person.has_totp:
            return sessions_pb2.SignInResponse(step=f"step-{person.email}")
        return sessions_pb2.SignInResponse(session=self._new(person))

    def _SecondFactor(self, request: Any, _who: Identity) -> Any:
        if request.code != CODE:
            raise Refusal(401, "sign_in_failed", "The code is wrong.")
        return sessions_pb2.SecondFactorResponse(
            session=self._new(self.people[request.step.removeprefix("step-")], confirmed=self.confirms)
        )

    def _GetSession(self, request: Any, _who: Identity) -> Any:
        self.session_requests.append(request)
        if request.session in self.displaced:
            return sessions_pb2.GetSessionResponse(displaced=True)
        return sessions_pb2.GetSessionResponse(session=self.session(request.session))

    def _IssueToken(self, request: Any, _who: Identity) -> Any:
        session = self.session(request.session)
        if session is None:
            raise Refusal(401, "no_session", "The session has ended.")
        is_staff = session.kind == options_pb2.KIND_STAFF
        identity = Identity(
            STAFF if is_staff else ADMINISTRATOR,
            "gateway",
            company_id=session.company_id,
            administrator_id=None if is_staff else session.person_id,
            staff_id=session.person_id if is_staff else None,
            is_sandbox=session.is_sandbox,
            scope="confirmed" if session.HasField("step_up_until") else "",
        )
        return sessions_pb2.IssueTokenResponse(token=self.signer.token(request.audience, identity))

    def _MakePermit(self, _request: Any, _who: Identity) -> Any:
        return sessions_pb2.MakePermitResponse(permit="permit-1")

    def _StepUp(self, request: Any, _who: Identity) -> Any:
        if request.password != PASSWORD:
            raise Refusal(401, "sign_in_failed", "The password is wrong.")
        secret, _, sandbox = request.session.partition(".")
        new = self._new(self.people[self.sessions.pop(secret).email])
        if sandbox:
            new.text = f"{new.text}.{sandbox}"
            new.session.MergeFrom(self.session(new.text) or sessions_pb2.Session())
        return sessions_pb2.StepUpResponse(session=new)

    def _StartPasskey(self, _request: Any, _who: Identity) -> Any:
        options = {"challenge": "AAECAwQFBgcICQoLDA0ODw", "rpId": "localhost", "userVerification": "required"}
        return sessions_pb2.StartPasskeyResponse(ceremony="ceremony-1", options_json=json.dumps(options))

    def _SignOut(self, request: Any, _who: Identity) -> Any:
        self.sessions.pop(request.session.partition(".")[0], None)
        return sessions_pb2.SignOutResponse()
