"""`makeready key …`."""

from __future__ import annotations

import argparse
from typing import Any

from makeready.identity.v1 import identity_pb2 as pb
from makeready_cli.output import Answer, instant, labels, table
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_RPCS = pb.DESCRIPTOR.services_by_name["KeysService"].methods_by_name
SCOPES = labels(pb.Scope.DESCRIPTOR)


def add(commands: Commands) -> None:
    administrator = {"flag": "--administrator", "metavar": "EMAIL", "required": False}
    add_commands(
        group(commands, "key", "mint, revoke and list API keys"),
        RpcCommand(
            "mint",
            "gateway",
            _RPCS["MintKey"],
            "mint a key; it is printed this once",
            helps={
                "scope": "what the key opens",
                "administrator_email": "the minting administrator (default: who mints it); without one the key can't "
                "create or change records",
                "name": "what the key is for",
            },
            settings={"administrator_email": administrator, "name": {"metavar": "N", "required": False}},
            answer=_minted,
        ),
        RpcCommand(
            "revoke",
            "gateway",
            _RPCS["RevokeKey"],
            "revoke a key, within a second everywhere",
            ("key_id",),
            company=False,
            answer=_revoked,
        ),
        RpcCommand(
            "list", "gateway", _RPCS["ListKeys"], "list a company's keys, without the keys themselves", answer=_listed
        ),
    )


def _minted(minted: pb.MintKeyResponse, _arguments: argparse.Namespace) -> Answer:
    text = f"Key {minted.key_id} minted, shown only now: {minted.key}"
    return Answer({"key_id": minted.key_id, "key": minted.key}, text)


def _revoked(revoked: pb.RevokeKeyResponse, _arguments: argparse.Namespace) -> Answer:
    key = _shown(revoked.key)
    return Answer(key, f"Key {key['key_id']} is revoked since {key['revoked_at']}.")


def _listed(listed: pb.ListKeysResponse, _arguments: argparse.Namespace) -> Answer:
    found = [_shown(key) for key in listed.keys]
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
