"""Which RPCs a client may send again: every RPC of the contracts.

A pod that hangs may do a call after its client has sent it to another, so a repeat must be harmless however late it
comes: a read; a write with a key, whose claim decides; one of `WITHOUT_A_KEY`. All others are sent once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

from chassis.auth.clients import CHANNEL_OPTIONS

from .every_rpc import services

COUNTS = "its answer counts what this call did; an operator repeats it"
ATTEMPT = "an attempt to sign in counts, and what proves the person is used up"
SECRET = "makes a secret that is returned only this once, and ends the one before"
ONCE = {
    "AccountsService/ChangePassword": "ends sessions that began meanwhile",
    "AccountsService/ConfirmTotp": SECRET,
    "AccountsService/EndSession": "ends sessions that began meanwhile, and counts them",
    "AccountsService/EnrolTotp": SECRET,
    "AccountsService/FinishAddingPasskey": "uses up what StartAddingPasskey began",
    "AccountsService/MakeRecoveryCodes": SECRET,
    "AccountsService/RemoveTotp": "would remove an app that was added meanwhile",
    "AccountsService/StartAddingPasskey": SECRET,
    "AdministratorsService/InviteAdministrator": SECRET,
    "AdministratorsService/MakeLink": SECRET,
    "CompaniesService/CreateAdministrator": "has no key",
    "CompaniesService/CreateCompany": "has no key",
    "CompaniesService/UpdateCompany": "has no key, and would undo a later change",
    "CompanyClockService/DoDue": COUNTS,
    "ConsumerService/CatchUp": COUNTS,
    "ConsumerService/TakeEvents": "a caller waits for it, for a quarter of a second; NATS brings the events too",
    "DeliveriesService/SweepDeliveries": COUNTS,
    "KeysService/MintKey": "may have no key",
    "RetentionService/SweepRetention": COUNTS,
    "SandboxCopiesService/CopyPlaces": COUNTS,
    "ScheduledSweepsService/RunScheduledSweeps": COUNTS,
    "SessionsService/FinishPasskey": ATTEMPT,
    "SessionsService/MakePermit": "makes a permit that lives for a day",
    "SessionsService/SecondFactor": ATTEMPT,
    "SessionsService/SignIn": ATTEMPT,
    "SessionsService/StartPasskey": "begins a ceremony",
    "SessionsService/StepUp": ATTEMPT,
    "SessionsService/UseLink": ATTEMPT,
    "StaffCommandsService/InviteStaff": SECRET,
    "TicketsService/UpdateTicketPolicy": "has no key, and would undo a later change",
    "VaultService/ResealSecrets": COUNTS,
}
GONE = "what it removes stays removed; a repeat is answered 404, as that of a client is"
WITHOUT_A_KEY = {
    "AccountsService/RemovePasskey": GONE,
    "CompaniesService/EndSandbox": "an ended sandbox stays ended, since the same instant",
    "CompaniesService/ReportSandboxPurge": "says how much is left; the last report counts",
    "ImportUndoService/ReleaseRecords": "what is released stays released, and what is used is kept again",
    "CompanyClockService/SetClock": "keeps the greater offset",
    "CompanyClockService/Settle": "publishes and takes in what has been recorded, each event once",
    "KeysService/RevokeKey": "a revoked key stays revoked, since the same instant",
    "OutboxService/ConfirmEvents": "keeps the later instant",
    "ReplicasService/RebuildReplicas": "stores the owner's rows of one page, as often as you like",
    "ReportsService/RebuildReports": "makes the same figures anew, as often as you like",
    "ResidenciesService/ListResidencies": "a read; two entries of one request in the audit log are one look",
    "ResidentSearchService/SearchResidents": "a read; two entries of one request in the audit log are one look",
    "SessionsService/GetSession": "a read that keeps the session from becoming idle",
    "SessionsService/SignOut": "a session that has ended stays ended",
    "SubscriptionsService/DeleteSubscription": GONE,
}


def level(rpc: MethodDescriptor) -> int:
    return int(rpc.GetOptions().idempotency_level)


def rpcs() -> Iterator[tuple[str, MethodDescriptor]]:
    for service in services():
        yield from ((f"{service.name}/{rpc.name}", rpc) for rpc in service.methods)


def test_an_rpc_without_the_option_says_here_why_it_is_sent_once() -> None:
    unknown = {name for name, rpc in rpcs() if level(rpc) == MethodOptions.IDEMPOTENCY_UNKNOWN}
    assert unknown == ONCE.keys()


def test_a_write_with_the_option_has_a_key_or_says_here_why_it_needs_none() -> None:
    keyless = set()
    for name, rpc in rpcs():
        # A batch is sent again by the importer too; without a key its rows are then unchanged.
        of_import = rpc.name.startswith("Import") and "rows" in rpc.input_type.fields_by_name
        has_key = "idempotency_key" in rpc.input_type.fields_by_name
        if level(rpc) == MethodOptions.IDEMPOTENT and not of_import and not has_key:
            keyless.add(name)
        is_about_a_key = name == "IdempotencyService/GetKeyUse"
        assert is_about_a_key or not (level(rpc) == MethodOptions.NO_SIDE_EFFECTS and has_key), f"{name} is no read"
    assert keyless == WITHOUT_A_KEY.keys()


def test_channels_repeat_exactly_the_rpcs_with_the_option() -> None:
    (policy,) = json.loads(str(dict(CHANNEL_OPTIONS)["grpc.service_config"]))["methodConfig"]
    named = {(method["service"], method.get("method", "")) for method in policy["name"]}
    for name, rpc in rpcs():
        service = rpc.containing_service.full_name
        is_repeated = not named.isdisjoint({(service, rpc.name), (service, "")})
        assert is_repeated == (level(rpc) != MethodOptions.IDEMPOTENCY_UNKNOWN), name
    assert set(policy["retryPolicy"]["retryableStatusCodes"]) == {"UNAVAILABLE", "CANCELLED"}
