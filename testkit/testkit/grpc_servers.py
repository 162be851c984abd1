"""gRPC servers of tests that serve some RPCs of a contract."""

from __future__ import annotations

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass


def serve(server: grpc.Server | grpc.aio.Server, service: ServiceDescriptor, answers: object) -> None:
    """Serves the service's RPCs for which `answers` has a method of their name: (request, context) -> response."""
    handlers = {
        rpc.name: grpc.unary_unary_rpc_method_handler(
            getattr(answers, rpc.name),
            request_deserializer=GetMessageClass(rpc.input_type).FromString,
            response_serializer=GetMessageClass(rpc.output_type).SerializeToString,
        )
        for rpc in service.methods
        if hasattr(answers, rpc.name)
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
