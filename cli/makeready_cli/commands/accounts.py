"""`makeready account …`: how one person signs in. Passkeys are made in a browser, on the console itself."""

from __future__ import annotations

import argparse

from makeready.identity.v1 import accounts_pb2 as pb
from makeready_cli.calls import Operator
from makeready_cli.commands.passwords import read_password
from makeready_cli.output import Answer
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.rendering import record_of

_RPCS = pb.DESCRIPTOR.services_by_name["AccountsService"].methods_by_name


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "account", "see and change how a person signs in"),
        RpcCommand("show", _RPCS["GetAccount"], "show the account, without its secrets"),
        RpcCommand(
            "change-password",
            _RPCS["ChangePassword"],
            "set the password from the first line of standard input, and end all sessions",
            hidden=("password",),
            run=change_password,
        ),
        RpcCommand("remove-passkey", _RPCS["RemovePasskey"], "remove a passkey"),
        RpcCommand("enrol-totp", _RPCS["EnrolTotp"], "print a new secret for an authenticator app"),
        RpcCommand(
            "confirm-totp", _RPCS["ConfirmTotp"], "put the new secret to use, and print recovery codes", answer=_codes
        ),
        RpcCommand("remove-totp", _RPCS["RemoveTotp"], "remove the authenticator app"),
        RpcCommand(
            "recovery-codes",
            _RPCS["MakeRecoveryCodes"],
            "replace the recovery codes, and print the new ones",
            answer=_codes,
        ),
        RpcCommand("sessions", _RPCS["ListSessions"], "list the sessions"),
        RpcCommand(
            "end-session",
            _RPCS["EndSession"],
            "end one session, or all",
            settings={"others": {"flag": "--all", "action": argparse.BooleanOptionalAction}},
        ),
    )


async def change_password(operator: Operator, arguments: argparse.Namespace) -> Answer:
    del arguments
    request = pb.ChangePasswordRequest(password=read_password())
    operator.trace()
    changed = await operator.call("gateway", request, pb.ChangePasswordResponse)
    return Answer(record_of(changed), f"The password is changed; sessions ended: {changed.sessions_ended}.")


def _codes(response: pb.ConfirmTotpResponse | pb.MakeRecoveryCodesResponse, _arguments: argparse.Namespace) -> Answer:
    codes = list(response.recovery_codes)
    return Answer({"recovery_codes": codes}, "\n".join(("Each signs in once, shown only now:", *codes)))
