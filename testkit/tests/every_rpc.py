"""Serves every RPC of the contracts on one App, each with an empty response. `python every_rpc.py` runs it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass
from sqlalchemy import MetaData

import makeready
from chassis.app.process import run_process
from chassis.app.server import App
from chassis.auth.identity import Call
from chassis.runtime.settings import ServiceSettings, service_settings

NAME = "svc-everything"


def services() -> Iterator[ServiceDescriptor]:
    """The services of all contracts."""
    for folder in map(Path, makeready.__path__):
        for file in sorted(folder.rglob("*_pb2.py")):
            name = ".".join(file.relative_to(folder.parent).with_suffix("").parts)
            yield from importlib.import_module(name).DESCRIPTOR.services_by_name.values()


class Empty:
    """Answers each RPC of a service with an empty response."""

    def __init__(self, service: ServiceDescriptor) -> None:
        for rpc in service.methods:
            setattr(self, rpc.name, self._answering(rpc))

    @staticmethod
    def _answering(rpc: MethodDescriptor) -> Any:
        async def answer(_request: Any, _call: Call) -> Any:
            return GetMessageClass(rpc.output_type)()

        return answer


def assemble(settings: ServiceSettings) -> App:
    app = App(NAME, settings)
    for service in services():
        app.serve(service, Empty(service))
    return app


if __name__ == "__main__":
    run_process(NAME, MetaData(), "", service_settings, assemble)
