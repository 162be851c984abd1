"""`makeready vault …`."""

from __future__ import annotations

import argparse

from makeready.webhooks.v1 import webhooks_pb2 as pb
from makeready_cli.output import Answer
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

RESEAL_SECONDS = 600.0


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "vault", "keep signing secrets under the key that encrypts"),
        RpcCommand(
            "reseal",
            pb.DESCRIPTOR.services_by_name["VaultService"].methods_by_name["ResealSecrets"],
            "encrypt every signing secret under the first key of WEBHOOKS_VAULT_KEYS",
            description="Encrypts anew whatever another key of the ring has encrypted, while deliveries go on, and "
            "says which keys are still needed: all others may leave WEBHOOKS_VAULT_KEYS. Ends with 1 where a key "
            "besides the first is still needed, or a secret can be opened by none.",
            company=False,
            deadline_seconds=RESEAL_SECONDS,
            answer=_resealed,
        ),
    )


def _resealed(done: pb.ResealSecretsResponse, _arguments: argparse.Namespace) -> Answer:
    needed = sorted(done.keys_needed)
    value = {"key_id": done.key_id, "resealed": done.resealed, "unopened": done.unopened, "keys_needed": needed}
    sentences = [f"{done.resealed} secrets encrypted anew under key {done.key_id}."]
    if done.unopened:
        sentences.append(f"{done.unopened} can be opened by no key of the ring; their deliveries wait.")
    sentences.append(f"Still needed besides: {', '.join(needed)}." if needed else "No other key is needed.")
    return Answer(value, " ".join(sentences), status=1 if needed or done.unopened else 0)
