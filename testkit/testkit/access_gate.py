"""Who may call each RPC, compared with the last release; buf compares the messages.

Services of two releases run side by side during a rollout: a caller of the release before must still be let in, and
what it sends must still be enough. `python -m testkit.access_gate` prints each RPC that takes something away.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet, MethodOptions

from makeready.common.v1 import options_pb2

PROTOS = Path(__file__).resolve().parents[2] / "proto"


def rpcs(files: FileDescriptorSet) -> dict[str, MethodOptions]:
    """The options of every RPC, by its full name."""
    return {
        f"{file.package}.{service.name}.{method.name}": method.options
        for file in files.file
        for service in file.service
        for method in service.method
    }


def breakages(released: FileDescriptorSet, now: FileDescriptorSet) -> list[str]:
    """What callers of the release may do no longer: one sentence each, sorted."""
    was, new = rpcs(released), rpcs(now)
    opened_was, opened = _opened_by(released), _opened_by(now)
    return sorted(
        [
            *(f"{name} is gone" for name in was.keys() - new.keys()),
            *(
                f"{name} {sentence}"
                for name in was.keys() & new.keys()
                for sentence in _of_rpc(was[name], new[name], opened_was, opened)
            ),
            *_filters(released, now),
        ]
    )


def _of_rpc(
    was: MethodOptions, now: MethodOptions, opened_was: Mapping[int, set[str]], opened: Mapping[int, set[str]]
) -> Iterator[str]:
    for kind in set(was.Extensions[options_pb2.allowed]) - set(now.Extensions[options_pb2.allowed]):
        yield f"does not allow {options_pb2.Kind.Name(kind)} any more"
    for service in sorted(set(was.Extensions[options_pb2.services]) - set(now.Extensions[options_pb2.services])):
        yield f"does not allow {service} any more"
    scope, scope_now = was.Extensions[options_pb2.scope], now.Extensions[options_pb2.scope]
    for key in sorted(opened_was.get(scope, set()) - opened.get(scope_now, set())):
        yield f"is not opened by {key} keys any more"
    if now.Extensions[options_pb2.step_up] and not was.Extensions[options_pb2.step_up]:
        yield "asks for a confirmation (step_up)"
    # A client of the release repeats the call.
    if was.idempotency_level and not now.idempotency_level:
        yield "is not idempotent any more"


def _opened_by(files: FileDescriptorSet) -> dict[int, set[str]]:
    """The scopes of keys that open each AskedScope, by its number."""
    return {
        value.number: set(value.options.Extensions[options_pb2.opened_by])
        for file in files.file
        for enum in file.enum_type
        if enum.name == "AskedScope"
        for value in enum.value
    }


def _filters(released: FileDescriptorSet, now: FileDescriptorSet) -> Iterator[str]:
    was, new = _requires(released), _requires(now)
    for name, other in new.items():
        if other and name in was and was[name] != other:
            yield f"{name} is refused without {other}"


def _requires(files: FileDescriptorSet) -> dict[str, str]:
    """Of each field of a message the filter without which it is refused; mostly empty."""
    return {
        f"{file.package}.{message.name}.{field.name}": field.options.Extensions[options_pb2.requires]
        for file in files.file
        for message in file.message_type
        for field in message.field
    }


def built(protos: Path) -> FileDescriptorSet:
    """The contracts of a folder of protos, or of a file that buf has built. Raises RuntimeError."""
    buf = Path(sys.executable).with_name("buf")
    done = subprocess.run([buf, "build", protos, "--exclude-source-info", "-o", "-"], capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode().strip())
    return FileDescriptorSet.FromString(done.stdout)


def problems(now: FileDescriptorSet, protos: Path = PROTOS) -> list[str]:
    """What is neither as released nor allowed, and what is allowed in vain. protos: the folder with `released.binpb`,
    and with `allowed.toml` if there is something to allow: sentences, each with its reason."""
    file = protos / "allowed.toml"
    allowed: dict[str, str] = tomllib.loads(file.read_text()) if file.exists() else {}
    sentences = breakages(built(protos / "released.binpb"), now)
    vain = sorted(allowed.keys() - set(sentences))
    return [
        *(sentence for sentence in sentences if not allowed.get(sentence)),
        *(f"{file.name} allows what does not happen: {sentence}" for sentence in vain),
    ]


def main() -> int:
    """Returns the exit status."""
    sentences = problems(built(PROTOS))
    sys.stdout.write("".join(f"breaks callers of the release: {line}\n" for line in sentences))
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
