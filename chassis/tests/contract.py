"""The messages and services of `parcels.proto`, generated when the tests start."""

from __future__ import annotations

import importlib.resources
import tempfile
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc  # type: ignore[import-untyped]

from makeready.common.v1 import documents_pb2, options_pb2  # noqa: F401 - they must be in the pool first

_PACKAGE = "makeready.parcels_of_tests.v1"


def _compiled() -> FileDescriptorSet:
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        folders = [here, here.parents[1] / "proto", importlib.resources.files("grpc_tools") / "_proto"]
        arguments = [*(f"-I{imported}" for imported in folders), f"--descriptor_set_out={out}", "parcels.proto"]
        assert protoc.main(["protoc", *arguments]) == 0
        return FileDescriptorSet.FromString(out.read_bytes())


_POOL = descriptor_pool.Default()
for _file in _compiled().file:
    _POOL.AddSerializedFile(_file.SerializeToString())


def message(name: str) -> Any:
    """The class of a message."""
    return GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def service(name: str) -> ServiceDescriptor:
    return _POOL.FindServiceByName(f"{_PACKAGE}.{name}")


AddParcelRequest = message("AddParcelRequest")
UpdateParcelRequest = message("UpdateParcelRequest")
EchoRequest = message("EchoRequest")
EchoResponse = message("EchoResponse")
