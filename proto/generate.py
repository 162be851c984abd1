"""Writes the code of the contracts, proto/gen: `python proto/generate.py`. Installation and the image's recipe run it.

With mypy-protobuf there, modules get their types too. `makeready/retried.py` lists the RPCs that a client may send
again: a process that asked every contract when it starts would need 60 ms and 2 MB more.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

CONTRACTS = Path(__file__).resolve().parent
CODE = CONTRACTS / "gen"
HEAD = '''"""The RPCs that a client may send again, by their option `idempotency_level`. Written by proto/generate.py.

A service alone stands for all of its RPCs.
"""

RETRIED = (
'''


def main() -> int:
    """Puts the code in the place of what is there, all at once; returns the exit status."""
    folder = Path(tempfile.mkdtemp(prefix="gen-", dir=CONTRACTS))
    folder.chmod(0o755)
    try:
        status = generate(folder)
        if status == 0:
            shutil.rmtree(CODE, ignore_errors=True)
            folder.rename(CODE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return status


def generate(folder: Path) -> int:
    """Writes the code of all contracts into an empty folder; returns protoc's exit status."""
    options = [f"--proto_path={CONTRACTS}", f"--python_out={folder}"]
    types = Path(sys.executable).with_name("protoc-gen-mypy")
    if types.exists():
        options += [f"--plugin=protoc-gen-mypy={types}", f"--mypy_out=quiet:{folder}"]
    protos = sorted(str(path.relative_to(CONTRACTS)) for path in (CONTRACTS / "makeready").rglob("*.proto"))
    program = [sys.executable, "-P", "-m", "grpc_tools.protoc", *options, *protos]
    status = subprocess.run(program, check=False).returncode  # noqa: S603
    if status == 0:
        sys.path.insert(0, str(folder))
        sys.dont_write_bytecode = True
        names = "".join(f'    "{name}",\n' for name in retried(folder))
        (folder / "makeready" / "retried.py").write_text(f"{HEAD}{names})\n")
    return status


def retried(folder: Path) -> list[str]:
    """The names of the RPCs that may be sent again."""
    names: list[str] = []
    for service in services(folder):
        rpcs = [rpc.name for rpc in service.methods if is_retried(rpc)]
        if len(rpcs) == len(service.methods):
            names.append(service.full_name)
        else:
            names += [f"{service.full_name}/{name}" for name in rpcs]
    return sorted(names)


def services(folder: Path) -> Iterator[ServiceDescriptor]:
    """The services of all contracts."""
    for file in sorted(folder.rglob("*_pb2.py")):
        name = ".".join(file.relative_to(folder).with_suffix("").parts)
        yield from importlib.import_module(name).DESCRIPTOR.services_by_name.values()


def is_retried(rpc: MethodDescriptor) -> bool:
    return rpc.GetOptions().idempotency_level != MethodOptions.IDEMPOTENCY_UNKNOWN


if __name__ == "__main__":
    sys.exit(main())
