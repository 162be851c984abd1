"""RPCs by the descriptors of their contracts, so that no stub is generated for them.

`buf lint` holds every RPC to a request of its own. So the class of a request says which RPC it is for.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import Any, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

Method = grpc.aio.UnaryUnaryMultiCallable[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_rpcs: dict[type[Message], MethodDescriptor] = {}


def rpc_of(request: type[Message]) -> MethodDescriptor:
    """The RPC that takes requests of this class. Raises TypeError if none of its file does, or several do."""
    if request not in _rpcs:
        name = request.DESCRIPTOR.full_name
        services = request.DESCRIPTOR.file.services_by_name.values()
        rpcs: list[Any] = [rpc for service in services for rpc in service.methods if rpc.input_type.full_name == name]
        if len(rpcs) != 1:
            raise TypeError(f"{len(rpcs) or 'no'} RPCs take a {name}")
        (_rpcs[request],) = rpcs
    return _rpcs[request]


def response_to(request: type[Message]) -> type[Any]:
    """The class of the response to requests of this class, for callers that know a contract by its descriptor alone."""
    return GetMessageClass(rpc_of(request).output_type)


def method_on(channel: grpc.aio.Channel, request: type[Message]) -> Method:
    """The RPC that takes requests of this class, over a channel; to be called with a request."""
    return channel.unary_unary(
        path_of(rpc_of(request)),
        request_serializer=request.SerializeToString,
        response_deserializer=response_to(request).FromString,
    )


@functools.cache
def services_of(package: str) -> dict[str, ServiceDescriptor]:
    """The services that a package of contracts declares (`makeready.events.v1`), by their short names."""
    folder = importlib.import_module(package).__path__
    names = [file.name for file in pkgutil.iter_modules(folder) if file.name.endswith("_pb2")]
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    return {name: service for module in modules for name, service in module.DESCRIPTOR.services_by_name.items()}


def path_of(rpc: MethodDescriptor) -> str:
    """The RPC's path on the wire: `/makeready.events.v1.OutboxService/GetEvents`."""
    return f"/{rpc.containing_service.full_name}/{rpc.name}"
