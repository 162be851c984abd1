"""Who may call which RPC: every RPC of the contracts, every kind of caller, every service, every scope.

`App` itself answers, over gRPC with real tokens. The tables are written out here, so that they don't follow from the
protos' options.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor

from chassis.auth.clients import refusal_of
from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, KINDS, OPERATOR, SERVICE, STAFF, Identity
from chassis.auth.rpcs import path_of
from makeready.common.v1 import options_pb2
from makeready_local.services import NAMES
from testkit.plugin import PostgresServer
from testkit.services import Keys, RunningService

from .every_rpc import NAME, services

CONSUMERS = {"svc-catalog", "svc-occupancy", "svc-tickets", "svc-webhooks"}
# What the gateway calls as itself to fill sandboxes, and people to import.
IMPORTS = {
    *("AssetsService/ImportAssets", "InspectionsService/ImportInspections", "MetersService/ImportMeters"),
    *("MetersService/ImportReadings", "NoticesService/ImportNotices", "PmTasksService/ImportPmTasks"),
    *("PropertiesService/ImportProperties", "TicketsService/ImportTickets", "TurnTasksService/ImportTurnTasks"),
    *("TurnsService/ImportTurns", "UnitsService/ImportUnits", "VendorsService/ImportVendors"),
}
# The RPCs that services call as themselves, and those services.
AS_SERVICE = {
    **{f"CompanyClockService/{rpc}": {"gateway"} for rpc in ("NextDue", "SetClock", "DoDue", "Settle")},
    "CompanyPurgeService/CountCompanyRows": {"gateway"},
    "ActorsService/ListActivePeople": {"console"},
    "CompaniesService/ListSandboxesToPurge": {"console"},
    "CompaniesService/ReportSandboxPurge": {"console"},
    "SandboxCopiesService/CopyPlaces": {"gateway"},
    **{name: {"gateway"} for name in IMPORTS},
    "OutboxService/ListEventIds": CONSUMERS,
    "OutboxService/BatchGetEvents": CONSUMERS,
    "OutboxService/ConfirmEvents": CONSUMERS,
    "ConsumerService/TakeEvents": {"svc-occupancy"},
    "ReplicaSourceService/ListReferences": CONSUMERS,
    "ReferencesService/BatchGetReferences": {"gateway", "svc-occupancy", "svc-tickets"},
    "TicketCommandsService/PassStaleThreshold": {"gateway"},
    "StaffService/BatchGetStaff": {"svc-catalog", "svc-occupancy", "svc-tickets"},
} | {
    f"SessionsService/{rpc}": {"console"}
    for rpc in (
        "SignIn",
        "SecondFactor",
        "StartPasskey",
        "FinishPasskey",
        "GetSession",
        "StepUp",
        "IssueToken",
        "MakePermit",
        "SignOut",
        "UseLink",
    )
}
# The RPCs of the public API by the scope that they ask for (spec 4 and 5.4), and the scopes of keys that open them. The
# gateway calls GetKeyUse for every write.
AS_INTEGRATION = {
    "IdempotencyService/GetKeyUse": "any",
    "LookupService/FindRecords": "read",
    "StaffService/ListMembers": "read",
    "TicketCommandsService/SetTicketAssignment": "write",
    "TicketCommandsService/CreateTicketComment": "write",
    "MeterCommandsService/AddMeterReadings": "write",
    "TicketsService/CreateTicket": "write",
    "TicketsService/CreateTicketPhoto": "write",
    "TicketsService/ChangeTicketStatus": "write",
    "ResidenciesService/RecordNotice": "write",
    "ResidenciesService/RecordMoveIn": "write",
    "SubscriptionsService/ListSubscriptions": "any",
    "SubscriptionsService/CreateSubscription": "webhook_only",
    "SubscriptionsService/DeleteSubscription": "webhook_only",
    "SubscriptionsService/GetFilter": "read",
    "SubscriptionsService/SetFilter": "write",
    "FeedService/ListEvents": "read",
    "RequestFeedService/FollowRequests": "read",
    "TriggersService/CreateTrigger": "write",
    "RequestFeedService/FetchRequest": "read",
    "SandboxClockService/GetSandboxClock": "read",
    "SandboxClockService/AdvanceSandboxClock": "write",
    "FeedService/ListDeliveries": "read",
    "FeedService/GetDelivery": "read",
    "FeedService/TestSubscription": "write",
    "FeedService/CreateReplay": "write",
    "FeedService/GetReplay": "read",
    "MetersService/ListReadings": "read",
    "InspectionReportsService/GetInspectionReport": "read",
    "TicketReportsService/GetTicketReport": "read",
    "TicketReportsService/GetVendorReport": "read",
    "TurnReportsService/GetTurnReport": "read",
    "MetersService/ListReadingChanges": "read",
    "MetersService/ListReadingsOfAllMeters": "read",
} | {
    f"{service}/{rpc}": "read"
    for service, singular, many in (
        ("TicketsService", "Ticket", "Tickets"),
        ("PropertiesService", "Property", "Properties"),
        ("UnitsService", "Unit", "Units"),
        ("AssetsService", "Asset", "Assets"),
        ("VendorsService", "Vendor", "Vendors"),
        ("InspectionsService", "Inspection", "Inspections"),
        ("TurnsService", "Turn", "Turns"),
        ("MetersService", "Meter", "Meters"),
    )
    for rpc in (f"Get{singular}", f"List{many}", f"List{singular}Changes")
}
KEYS_THAT_OPEN = {
    "any": {"read", "webhook_only", "write"},
    "read": {"read", "write"},
    "webhook_only": {"webhook_only", "write"},
    "write": {"write"},
}
RPCS = {f"{service.name}/{rpc.name}": rpc for service in services() for rpc in service.methods}


class Everything(RunningService):
    """A process that serves every RPC."""

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name("every_rpc.py"))]


@pytest.fixture(scope="module")
def running(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    folder = tmp_path_factory.mktemp("access")
    keys = Keys(folder / "keys")
    (folder / "keys" / f"{NAME}.jwk").write_bytes((folder / "keys" / "svc-catalog.jwk").read_bytes())
    url = postgres_server.create_database("everything")
    process = Everything(NAME, keys, url, "nats://127.0.0.1:1", folder / "log")
    process.start()
    yield process
    process.stop()


def confirmed_now() -> dict[str, Identity]:
    """A person of each kind, who has just confirmed that they are."""
    now = int(time.time())
    return {
        OPERATOR: Identity(OPERATOR, "operator", 7),
        ADMINISTRATOR: Identity(ADMINISTRATOR, "gateway", 7, administrator_id=1, stepped_up_at=now),
        STAFF: Identity(STAFF, "gateway", 7, staff_id=1, stepped_up_at=now),
    }


def expected(name: str, rpc: MethodDescriptor, people: Mapping[str, Identity]) -> set[Identity]:
    """Everybody who may call the RPC."""
    allowed = rpc.GetOptions().Extensions[options_pb2.allowed]
    callers = {who for kind, who in people.items() if KINDS[kind] in allowed}
    callers |= {Identity(SERVICE, service, 7) for service in AS_SERVICE.get(name, ())}
    scopes = KEYS_THAT_OPEN[AS_INTEGRATION[name]] if name in AS_INTEGRATION else set()
    return callers | {Identity(INTEGRATION, "gateway", 7, 3, scope) for scope in scopes}


def everybody(people: Mapping[str, Identity]) -> set[Identity]:
    scopes = ("", "any", "read", "webhook_only", "write", "public")
    return {
        *people.values(),
        *(Identity(SERVICE, service, 7) for service in (*NAMES, "console")),
        *(Identity(INTEGRATION, "gateway", 7, 3, scope) for scope in scopes),
    }


async def test_each_rpc_is_open_to_its_kinds_services_and_scopes_alone(running: Everything) -> None:
    admitted: dict[str, set[Identity]] = {name: set() for name in RPCS}
    people = confirmed_now()
    async with running.channel() as channel:
        for name, rpc in RPCS.items():
            method: Any = channel.unary_unary(path_of(rpc))
            for who in everybody(people):
                try:
                    await method(b"", metadata=[("authorization", running.keys.token(who, NAME))], timeout=30)
                except grpc.aio.AioRpcError as error:
                    assert error.code() is grpc.StatusCode.PERMISSION_DENIED, (name, who)
                else:
                    admitted[name].add(who)
    assert admitted == {name: expected(name, rpc, people) for name, rpc in RPCS.items()}


def test_the_tables_name_rpcs_and_services_that_exist() -> None:
    assert len(RPCS) > 80 and set(AS_SERVICE) | set(AS_INTEGRATION) <= set(RPCS)
    assert {name for names in AS_SERVICE.values() for name in names} <= {*NAMES, "console"}


# The RPCs that ask people for a confirmation of the last ten minutes.
STEP_UP = {
    "AccountsService/ChangePassword",
    "AccountsService/ConfirmTotp",
    "AccountsService/EnrolTotp",
    "AccountsService/FinishAddingPasskey",
    "AccountsService/MakeRecoveryCodes",
    "AccountsService/RemovePasskey",
    "AccountsService/RemoveTotp",
    "AccountsService/StartAddingPasskey",
    "AdministrationService/RotateSecret",
    "AdministrationService/UpdateSubscription",
    "AdministratorsService/DeactivateAdministrator",
    "AdministratorsService/InviteAdministrator",
    "AdministratorsService/MakeLink",
    "AdministratorsService/ReactivateAdministrator",
    "AdministratorsService/UpdateAdministrator",
    "CompaniesService/EndSandbox",
    "CompaniesService/UpdateCompany",
    "KeysService/MintKey",
    "KeysService/RevokeKey",
    "KeysService/RevokeKeys",
    "KeysService/TakeOverKeys",
    "KeysService/RotateKey",
    "PartiesService/ForgetParty",
    "StaffCommandsService/AddStaff",
    "StaffCommandsService/EndStaff",
    "StaffCommandsService/InviteStaff",
    "StaffCommandsService/ReinstateStaff",
    "StaffCommandsService/UpdateStaff",
    "TicketsService/UpdateTicketPolicy",
}


async def test_acts_that_cannot_be_undone_ask_people_alone_for_a_confirmation(running: Everything) -> None:
    """The operator's key is a confirmation, and services and integrations have none."""
    refused: set[str] = set()
    old = {STAFF: {"staff_id": 1}, ADMINISTRATOR: {"administrator_id": 1}}
    async with running.channel() as channel:
        for name, rpc in RPCS.items():
            allowed = rpc.GetOptions().Extensions[options_pb2.allowed]
            method: Any = channel.unary_unary(path_of(rpc))
            for kind, person in old.items():
                if KINDS[kind] not in allowed:
                    continue
                for stepped_up_at in (0, int(time.time()) - 700):
                    who = Identity(kind, "gateway", 7, stepped_up_at=stepped_up_at, **person)  # type: ignore[arg-type]
                    try:
                        await method(b"", metadata=[("authorization", running.keys.token(who, NAME))], timeout=30)
                    except grpc.aio.AioRpcError as error:
                        answer = refusal_of(error)
                        assert answer is not None
                        assert (answer.status, answer.code) == (403, "step_up_required")
                        refused.add(name)
                    else:
                        assert name not in refused, (name, kind)
    assert refused == STEP_UP


async def test_a_token_for_one_service_opens_no_other(running: Everything) -> None:
    only = "makeready.identity.v1.AccountsService"
    who = replace(confirmed_now()[ADMINISTRATOR], only_service=only)
    opened = set()
    async with running.channel() as channel:
        for rpc in RPCS.values():
            if KINDS[ADMINISTRATOR] not in rpc.GetOptions().Extensions[options_pb2.allowed]:
                continue
            method: Any = channel.unary_unary(path_of(rpc))
            try:
                await method(b"", metadata=[("authorization", running.keys.token(who, NAME))], timeout=30)
            except grpc.aio.AioRpcError as error:
                answer = refusal_of(error)
                assert answer is not None
                assert (answer.status, answer.code) == (403, "second_factor_required")
            else:
                opened.add(rpc.containing_service.full_name)
    assert opened == {only}


OF_SANDBOXES = IMPORTS | {
    "CompaniesService/ReportSandboxPurge",
    "CompanyPurgeService/CountCompanyRows",
    "SandboxCopiesService/CopyPlaces",
    "TicketCommandsService/PassStaleThreshold",
}


def test_people_and_services_share_no_rpc_that_changes_records() -> None:
    """What services call as themselves reads, confirms events or brings their own, or does what time alone does,
    as it does where a sandbox's threshold passes; or it fills a new sandbox, or deletes an ended one. The console's
    sessions are no records."""
    for name in AS_SERVICE:
        is_no_write = name.startswith(("SessionsService/", "CompanyClockService/"))
        assert is_no_write or name in OF_SANDBOXES or re.search(r"/(List|BatchGet|ConfirmEvents|TakeEvents)", name), (
            name
        )
        assert name not in AS_INTEGRATION
