"""`makeready vault …`."""

from __future__ import annotations

import argparse

from makeready.webhooks.v1 import webhooks_pb2 as pb
from makeready.webhooks.v1.webhooks_pb2_grpc import VaultServiceStub
from makeready_cli import arguments as types
from makeready_cli.answers import Answer
from makeready_cli.system import Operator

RESEAL_SECONDS = 600.0


def add(commands: types.Commands) -> None:
    verbs = types.group(commands, "vault", "keep signing secrets under the key that encrypts")
    resealing = types.command(
        verbs,
        "reseal",
        "encrypt every signing secret under the first key of WEBHOOKS_VAULT_KEYS",
        description="Encrypts anew whatever another key of the ring has encrypted, while deliveries go on, and says "
        "which keys are still needed: all others may leave WEBHOOKS_VAULT_KEYS. Ends with 1 where a key besides the "
        "first is still needed, or a secret can be opened by none.",
    )
    resealing.set_defaults(run=reseal)


async def reseal(operator: Operator, _arguments: argparse.Namespace) -> Answer:
    vault = VaultServiceStub(operator.channel("svc-webhooks"))
    done = await operator.call(
        "svc-webhooks", vault.ResealSecrets, pb.ResealSecretsRequest(), deadline_seconds=RESEAL_SECONDS
    )
    needed = sorted(done.keys_needed)
    value = {
        "key_id": done.key_id,
        "resealed": done.resealed,
        "unopened": done.unopened,
        "keys_needed": needed,
    }
    said = [f"{done.resealed} secrets encrypted anew under key {done.key_id}."]
    if done.unopened:
        said.append(f"{done.unopened} can be opened by no key of the ring; their deliveries wait.")
    said.append(f"Still needed besides: {', '.join(needed)}." if needed else "No other key is needed.")
    return Answer(value, " ".join(said), status=1 if needed or done.unopened else 0)
