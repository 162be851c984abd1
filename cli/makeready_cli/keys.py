"""`makeready key …`."""

from __future__ import annotations

import argparse
from typing import Any

from makeready.identity.v1 import identity_pb2 as pb
from makeready.identity.v1.identity_pb2_grpc import KeysServiceStub
from makeready_cli import arguments as types
from makeready_cli.acting_arguments import add_actor
from makeready_cli.answers import Answer, instant, labels, table
from makeready_cli.system import Operator

_RPCS = pb.DESCRIPTOR.services_by_name["KeysService"].methods_by_name
SCOPES = labels(pb.Scope.DESCRIPTOR)


def add(commands: types.Commands) -> None:
    verbs = types.group(commands, "key", "mint, revoke and list API keys")

    minting = types.command(verbs, "mint", "mint a key; it is told this once")
    minting.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    minting.add_argument("--scope", required=True, choices=list(SCOPES.values()), help="what the key opens")
    minting.add_argument(
        "--administrator",
        metavar="EMAIL",
        default="",
        help="the minting administrator (default: who mints it); without one the key can't create or change records",
    )
    minting.add_argument("--name", metavar="N", default="", help="what the key is for")
    add_actor(minting, _RPCS["MintKey"])
    minting.set_defaults(run=mint)

    revoking = types.command(verbs, "revoke", "revoke a key, within a second everywhere")
    revoking.add_argument("key_id", metavar="KEY_ID", type=types.record_id)
    add_actor(revoking, _RPCS["RevokeKey"])
    revoking.set_defaults(run=revoke)

    listing = types.command(verbs, "list", "list a company's keys, without the keys themselves")
    listing.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    add_actor(listing, _RPCS["ListKeys"])
    listing.set_defaults(run=list_all)


async def mint(operator: Operator, arguments: argparse.Namespace) -> Answer:
    operator.trace()
    keys = KeysServiceStub(operator.channel("gateway"))
    request = pb.MintKeyRequest(
        company_id=arguments.company_id,
        scope=next(scope for scope, label in SCOPES.items() if label == arguments.scope),  # type: ignore[arg-type]
        administrator_email=arguments.administrator,
        name=arguments.name,
    )
    minted = await operator.call("gateway", keys.MintKey, request)
    return Answer(
        {"key_id": minted.key_id, "key": minted.key},
        f"Key {minted.key_id} minted, told this once: {minted.key}",
    )


async def revoke(operator: Operator, arguments: argparse.Namespace) -> Answer:
    operator.trace()
    keys = KeysServiceStub(operator.channel("gateway"))
    request = pb.RevokeKeyRequest(key_id=arguments.key_id)
    key = _shown((await operator.call("gateway", keys.RevokeKey, request)).key)
    return Answer(key, f"Key {key['key_id']} is revoked since {key['revoked_at']}.")


async def list_all(operator: Operator, arguments: argparse.Namespace) -> Answer:
    keys = KeysServiceStub(operator.channel("gateway"))
    request = pb.ListKeysRequest(company_id=arguments.company_id)
    found = [_shown(key) for key in (await operator.call("gateway", keys.ListKeys, request)).keys]
    headers = ("ID", "NAME", "PREFIX", "SCOPE", "CREATED", "REVOKED", "ADMINISTRATOR")
    rows = [[cell for name, cell in key.items() if name != "company_id"] for key in found]
    return Answer({"keys": found}, table(headers, rows, "No keys."))


def _shown(key: pb.Key) -> dict[str, Any]:
    return {
        "key_id": key.id,
        "company_id": key.company_id,
        "name": key.name,
        "prefix": key.prefix,
        "scope": SCOPES.get(key.scope, "unknown"),
        "created_at": instant(key.created_at),
        "revoked_at": instant(key.revoked_at) if key.HasField("revoked_at") else None,
        "administrator": key.administrator_email or None,
    }
