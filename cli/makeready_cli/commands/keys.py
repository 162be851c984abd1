"""`makeready key …`."""

from __future__ import annotations

import argparse

from makeready.identity.v1 import identity_pb2 as pb
from makeready.identity.v1 import key_usage_pb2, requests_pb2
from makeready_cli import argument_types as types
from makeready_cli.output import Answer, Record, records_table, table
from makeready_cli.parsers import Commands, Settings, group
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.rendering import picked

_RPCS = pb.DESCRIPTOR.services_by_name["KeysService"].methods_by_name
_USAGE = key_usage_pb2.DESCRIPTOR.services_by_name["KeyUsageService"].methods_by_name
_REQUESTS = requests_pb2.DESCRIPTOR.services_by_name["RequestLogService"].methods_by_name
OVERLAP_DAYS = 7
_KEY = (
    "key_id=id company_id name prefix scope created_at revoked_at administrator=administrator_email? "
    "administrator_active expires_at replaced_by? replaces? last_used_at last_used_address? last_used_for?"
)


def add(commands: Commands) -> None:
    verbs = group(commands, "key", "mint, rotate, take over, revoke and list API keys, and see their usage")
    add_commands(verbs, *_acts(), *_reads())
    add_requests(commands)


def _acts() -> tuple[RpcCommand, ...]:
    administrator = {"flag": "--administrator", "metavar": "EMAIL", "required": False}
    one_or_all: dict[str, Settings] = {"key_id": {"nargs": "?"}, "of_email": {"flag": "--of", "metavar": "EMAIL"}}
    overlap = {"metavar": "DAYS", "type": types.whole_number, "required": False, "default": OVERLAP_DAYS}
    return (
        RpcCommand(
            "mint",
            _RPCS["MintKey"],
            "create a key; it is printed only once",
            settings={"administrator_email": administrator, "name": {"metavar": "N", "required": False}},
            answer=_minted,
        ),
        RpcCommand(
            "rotate",
            _RPCS["RotateKey"],
            "create a key that replaces another one, which ends after an overlap; the new one is printed only once",
            company=False,
            settings={"overlap_days": overlap},
            answer=_rotated,
        ),
        RpcCommand(
            "revoke",
            _RPCS["RevokeKeys"],
            "revoke a key, or all working ones of an administrator, within a second everywhere",
            company=False,
            settings=one_or_all,
            hidden=("of_administrator_id",),
            answer=_revoked,
        ),
        RpcCommand(
            "take-over",
            _RPCS["TakeOverKeys"],
            "record another administrator for keys of a deactivated one; the keys go on unchanged",
            company=False,
            settings=one_or_all | {"administrator_email": administrator},
            hidden=("of_administrator_id",),
            answer=_taken_over,
        ),
    )


def _reads() -> tuple[RpcCommand, ...]:
    return (
        RpcCommand("show", _RPCS["GetKey"], "show one key and its last use", company=False, answer=_key),
        RpcCommand(
            "list",
            _RPCS["ListKeys"],
            "list a company's keys, without the keys themselves",
            settings={"active_only": {"action": "store_true"}},
            hidden=("limit",),
            all_pages=True,
            answer=_listed,
        ),
        RpcCommand(
            "usage",
            _USAGE["ListKeyUsage"],
            "count requests by hour, for all keys together or for each of some",
            settings={
                "key_ids": {"flag": "--key-id"},
                "counted_from": {"flag": "--from"},
                "counted_to": {"flag": "--to"},
            },
            answer=_counted,
        ),
        RpcCommand(
            "requests",
            _REQUESTS["ListRequests"],
            "list the requests with a company's keys of the last 30 days, the newest first",
        ),
    )


def add_requests(commands: Commands) -> None:
    add_commands(
        commands,
        RpcCommand(
            "requests",
            _REQUESTS["GetRequest"],
            "show the request whose answer had this id in X-Request-Id, of any company",
            company=False,
        ),
    )


def _minted(minted: pb.MintKeyResponse, _arguments: argparse.Namespace) -> Answer:
    text = f"Key {minted.key_id} minted, shown only now: {minted.key}"
    return Answer({"key_id": minted.key_id, "key": minted.key}, text)


def _rotated(rotated: pb.RotateKeyResponse, _arguments: argparse.Namespace) -> Answer:
    new, old = _record(rotated.new_key), _record(rotated.old_key)
    end = f"ends on {old['expires_at']}" if old["revoked_at"] is None else f"is revoked since {old['revoked_at']}"
    text = f"Key {new['key_id']} minted, shown only now: {rotated.key}\nKey {old['key_id']} {end}."
    return Answer({"key_id": new["key_id"], "key": rotated.key, "new_key": new, "old_key": old}, text)


def _key(response: pb.GetKeyResponse, _arguments: argparse.Namespace) -> Answer:
    key = _record(response.key)
    return Answer(key, table(("FIELD", "VALUE"), list(key.items()), ""))


def _counted(counted: key_usage_pb2.ListKeyUsageResponse, _arguments: argparse.Namespace) -> Answer:
    hours = [picked(hour, "key_id? hour succeeded refused rate_limited failed") for hour in counted.hours]
    headers = ("KEY", "HOUR", "SUCCEEDED", "REFUSED", "RATE LIMITED", "FAILED")
    text = table(headers, [list(hour.values()) for hour in hours], "No requests.")
    return Answer({"hours": hours} | picked(counted, "counted_from counted_to"), text)


def _revoked(revoked: pb.RevokeKeysResponse, arguments: argparse.Namespace) -> Answer:
    keys = [_record(key) for key in revoked.keys]
    lines = [f"Key {key['key_id']} is revoked since {key['revoked_at']}." for key in keys]
    # One key is answered alone, as it was before there was --of.
    value = keys[0] if arguments.key_id is not None else {"keys": keys}
    return Answer(value, "\n".join(lines) or "No key of theirs works.")


def _taken_over(taken_over: pb.TakeOverKeysResponse, _arguments: argparse.Namespace) -> Answer:
    keys = [_record(key) for key in taken_over.keys]
    lines = [f"Key {key['key_id']} is now {key['administrator']}'s." for key in keys]
    return Answer({"keys": keys}, "\n".join(lines) or "No key of theirs works.")


def _listed(listed: pb.ListKeysResponse, _arguments: argparse.Namespace) -> Answer:
    keys = [_record(key) for key in listed.keys]
    columns = {
        "ID": "key_id",
        "NAME": "name",
        "PREFIX": "prefix",
        "SCOPE": "scope",
        "CREATED": "created_at",
        "REVOKED": "revoked_at",
        "ADMINISTRATOR": "administrator",
        "EXPIRES": "expires_at",
        "LAST USED": "last_used_at",
    }
    rows = (key | {"administrator": _administrator(key)} for key in keys)
    return Answer({"keys": keys}, records_table(rows, columns, "No keys."))


def _administrator(key: Record) -> str | None:
    email: str | None = key["administrator"]
    return f"{email} (deactivated)" if key["administrator_active"] is False else email


def _record(key: pb.Key) -> Record:
    return picked(key, _KEY)
