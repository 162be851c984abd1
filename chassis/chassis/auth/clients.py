"""Calls to other services: one long-lived channel per target; a deadline and this service's token on every call.

Pods come and go unseen: see docs/decisions/rollouts.md.
"""

from __future__ import annotations

import json
from typing import TypeVar

import grpc
import structlog
from google.protobuf.message import Message

from chassis.auth.identity import Identity, TokenSigner
from chassis.auth.rpcs import Method, method_on, response_to
from chassis.refusals import Refusal, Unavailable
from chassis.runtime import traces
from makeready.common.v1 import documents_pb2
from makeready.retried import RETRIED

MESSAGE_BYTES_MAX = 32 * 1024 * 1024
DEADLINE_SECONDS = 10.0
REFUSAL = "refusal-bin"
DISK_FULL = "disk-full"  # names the service whose database has no disk space

# In the trailing metadata of a status: the caller's channel does not send the call again.
NOT_AGAIN = (("grpc-retry-pushback-ms", "-1"),)


def _retry_policy() -> str:
    """gRPC's service config: the RPCs that a channel sends again, by their contracts, and how often.

    UNAVAILABLE: the pod went, or serves nothing yet. CANCELLED: it stopped before it took the call up. Within the
    call's deadline four attempts follow the first, 1.5 s in all; each goes to the pod whose turn it is. When
    failures exceed answers by 500, the channel stops repeating until answers come again.
    """
    names = (rpc.split("/") for rpc in RETRIED)
    policy = {
        "name": [dict(zip(("service", "method"), name, strict=False)) for name in names],
        "retryPolicy": {
            "maxAttempts": 5,
            "initialBackoff": "0.1s",
            "maxBackoff": "1s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],
        },
    }
    return json.dumps({"methodConfig": [policy], "retryThrottling": {"maxTokens": 1000, "tokenRatio": 1}})


# A ClusterIP would pin one pod. The target is a headless Service, and calls go to its addresses in turn.
CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.lb_policy_name", "round_robin"),
    # A lost connection makes the channel look the name up again. In gRPC's 30 s all pods may have been replaced.
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),
    ("grpc.service_config", _retry_policy()),
    # A larger request is sent once. No body of the API has more than 256 KiB, and no batch of an import more than 512.
    ("grpc.per_rpc_retry_buffer_size", 1024 * 1024),
    # A pod that hangs or vanishes is given up 4 s later, and its calls are sent to another within their deadlines.
    # gRPC answers pings in threads of its own, however busy Python is.
    ("grpc.keepalive_time_ms", 2_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.http2.ping_timeout_ms", 2_000),  # gRPC 1.85 waits for a ping by this alone, 60 s by default
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
]

Response = TypeVar("Response", bound=Message)


class ServiceUnavailable(Unavailable):
    """Another service did not answer in time, or failed. Whether the call had an effect is unknown."""

    def __init__(self, message: str, code: grpc.StatusCode | None = None, disk_full: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.disk_full = disk_full


def refusal_message(refusal: Refusal) -> bytes:
    """The value of the trailing metadata REFUSAL."""
    sent = documents_pb2.Refusal(status=refusal.status, code=refusal.code, message=refusal.message, field=refusal.field)
    return sent.SerializeToString()


def refusal_of(error: grpc.aio.AioRpcError) -> Refusal | None:
    """The refusal that a service answered with; None for a fault."""
    for key, value in error.trailing_metadata() or ():
        if key == REFUSAL and isinstance(value, bytes):
            sent = documents_pb2.Refusal.FromString(value)
            return Refusal(sent.status, sent.code, sent.message, sent.field)
    return None


def unavailable(service: str, error: grpc.aio.AioRpcError) -> ServiceUnavailable:
    """The exception for a service's fault."""
    full = next((value for key, value in error.trailing_metadata() or () if key == DISK_FULL), "")
    message = f"{service}: {error.code().name}: {error.details()}"
    return ServiceUnavailable(message, error.code(), full if isinstance(full, str) else "")


class ServiceClient:
    """Another service, called as this service."""

    def __init__(self, name: str, target: str, issuer: TokenSigner) -> None:
        self.name = name
        self.channel = grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS)
        self._issuer = issuer
        self._methods: dict[tuple[type[Message], type[Message]], Method] = {}

    async def call(
        self,
        request: Message,
        response: type[Response],
        *,
        company_id: int = 0,
        identity: Identity | None = None,
        token: str = "",
        request_id: str = "",
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> Response:
        """Calls the RPC that takes such a request. Raises Refusal if the service refused, else ServiceUnavailable.

        The class of the RPC's response is `response`; with another one TypeError is raised. The caller is this service,
        or `identity`; a `token` that another issuer signed is sent unchanged. The service's log has `request_id`, by
        default the id that this task's log lines bear.
        """
        kinds = type(request), response
        method = self._methods.get(kinds) or self._method(*kinds)
        token = token or self._issuer.token(self.name, identity or self._issuer.as_service(company_id))
        metadata = [("authorization", token)]
        if request_id := request_id or structlog.contextvars.get_contextvars().get("request_id", ""):
            metadata.append(("x-request-id", request_id))
        if traceparent := traces.current():
            metadata.append((traces.HEADER, traceparent))
        try:
            answer: Response = await method(request, metadata=metadata, timeout=deadline_seconds)
        except grpc.aio.AioRpcError as error:
            if refused := refusal_of(error):
                raise refused from None
            raise unavailable(self.name, error) from None
        return answer

    def _method(self, request: type[Message], response: type[Message]) -> Method:
        expected = response_to(request)
        if response is not expected:
            raise TypeError(f"{request.__name__} is answered with {expected.__name__}, not {response.__name__}")
        method = self._methods[request, response] = method_on(self.channel, request)
        return method

    async def close(self) -> None:
        await self.channel.close(None)
