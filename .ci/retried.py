"""Writes proto/gen/makeready/retried.py, the RPCs that a client may send again, from the contracts' generated code.

Without the word `write` it compares the file, and ends with 1 where it differs. A process that asked every contract
when it starts would need 60 ms and 2 MB more.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

GENERATED = Path(__file__).resolve().parents[1] / "proto" / "gen"
FILE = GENERATED / "makeready" / "retried.py"
HEAD = '''"""The RPCs that a client may send again, by their option `idempotency_level`. Written by `make proto`.

A service alone stands for all of its RPCs.
"""

RETRIED = (
'''


def services() -> Iterator[ServiceDescriptor]:
    """The services of all contracts."""
    for file in sorted(GENERATED.rglob("*_pb2.py")):
        name = ".".join(file.relative_to(GENERATED).with_suffix("").parts)
        yield from importlib.import_module(name).DESCRIPTOR.services_by_name.values()


def is_retried(rpc: MethodDescriptor) -> bool:
    return rpc.GetOptions().idempotency_level != MethodOptions.IDEMPOTENCY_UNKNOWN


def text() -> str:
    """The file's content."""
    names: list[str] = []
    for service in services():
        retried = [rpc.name for rpc in service.methods if is_retried(rpc)]
        if len(retried) == len(service.methods):
            names.append(service.full_name)
        else:
            names += [f"{service.full_name}/{name}" for name in retried]
    return HEAD + "".join(f'    "{name}",\n' for name in sorted(names)) + ")\n"


if __name__ == "__main__":
    sys.path.insert(0, str(GENERATED))
    if sys.argv[1:] == ["write"]:
        FILE.write_text(text())
    elif not FILE.exists() or FILE.read_text() != text():
        sys.exit(f"{FILE.relative_to(GENERATED.parents[1])} is not what the contracts say: run `make proto`")
