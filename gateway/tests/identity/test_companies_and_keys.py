"""Companies, administrators and keys: the operator's RPCs, the stored rows, the references published to other
contexts."""

from __future__ import annotations

import asyncio
import hashlib
import re
from pathlib import Path

import asyncpg
import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, KINDS, OPERATOR, SERVICE, STAFF, Identity, TokenSigner
from chassis.auth.rpcs import method_on
from chassis.db.database import Database
from chassis.refusals import Refusal
from gateway import tables
from gateway.identity.accounts.passwords import Passwords
from gateway.identity.accounts.turns import Line
from gateway.identity.keys import rules, service
from gateway.identity.keys.tables import api_key
from makeready.common.v1 import options_pb2
from makeready.events.v1.events_pb2 import Event
from makeready.identity.v1 import (
    accounts_pb2,
    actors_pb2,
    administrators_pb2,
    key_usage_pb2,
    staff_commands_pb2,
    staff_pb2,
)
from makeready.identity.v1 import identity_pb2 as pb
from testkit.gateways import Gateway, Operator
from testkit.patience import eventually
from testkit.raw_http import Api
from testkit.revise import differences

LINE = Line("10.1.2.0/24")


async def refused(operator: Operator, rpc: str, request: object) -> Refusal:
    with pytest.raises(Refusal) as refusal:
        await operator(rpc, request)
    assert refusal.value.message.endswith(".") and ". " not in refusal.value.message
    return refusal.value


async def rows(database: Database, sql: str, *values: object) -> list[asyncpg.Record]:
    async with database.connection() as connection:
        records: list[asyncpg.Record] = await connection.raw.fetch(sql, *values)
        return records


async def test_a_company_is_created_listed_and_changed(operator: Operator) -> None:
    created = (await operator("CreateCompany", pb.CreateCompanyRequest(name="  Oak & Ash  "))).company
    assert (created.name, created.active, created.timezone) == ("Oak & Ash", True, "UTC")
    listed = (await operator("ListCompanies", pb.ListCompaniesRequest())).companies
    assert created in listed and [company.id for company in listed] == sorted(company.id for company in listed)
    changed = await operator(
        "UpdateCompany", pb.UpdateCompanyRequest(company_id=created.id, active=False, timezone="America/Toronto")
    )
    assert (changed.company.active, changed.company.timezone) == (False, "America/Toronto")
    unchanged = await operator("UpdateCompany", pb.UpdateCompanyRequest(company_id=created.id))
    assert unchanged.company == changed.company


async def test_a_sandbox_is_of_a_live_company_or_of_none(
    operator: Operator, company_id: int, database: Database
) -> None:
    async def create(**fields: object) -> pb.Company:
        request = pb.CreateCompanyRequest(name="Trial", **fields)  # type: ignore[arg-type]
        company: pb.Company = (await operator("CreateCompany", request)).company
        return company

    await operator("UpdateCompany", pb.UpdateCompanyRequest(company_id=company_id, timezone="America/Denver"))
    alone = await create(is_sandbox=True)
    assert (alone.is_sandbox, alone.HasField("sandbox_of"), alone.timezone) == (True, False, "UTC")
    sandboxes = await asyncio.gather(
        *(create(is_sandbox=True, sandbox_of=company_id) for _ in range(8)), return_exceptions=True
    )
    stored = [sandbox for sandbox in sandboxes if not isinstance(sandbox, BaseException)]
    assert {(sandbox.sandbox_of, sandbox.timezone) for sandbox in stored} == {(company_id, "America/Denver")}
    refusals = [refusal for refusal in sandboxes if isinstance(refusal, Refusal)]
    assert (len(stored), len(refusals)) == (5, 3), "at most five, also when they are made at once"
    assert {(refusal.status, "at most 5" in refusal.message) for refusal in refusals} == {(422, True)}
    (row,) = await rows(database, "SELECT count(*) FROM company WHERE sandbox_of = $1", company_id)
    assert row["count"] == 5

    for fields, status in (
        ({"sandbox_of": company_id}, 422),  # only a sandbox is of a company
        ({"is_sandbox": True, "content": pb.SANDBOX_CONTENT_COPY}, 422),  # there is nothing to copy
        ({"content": pb.SANDBOX_CONTENT_COPY}, 422),
        ({"content": pb.SANDBOX_CONTENT_DEMO}, 422),  # only a sandbox starts with records
        ({"is_sandbox": True, "sandbox_of": alone.id}, 422),  # a sandbox has none
        ({"is_sandbox": True, "sandbox_of": 900_000}, 404),
    ):
        request = pb.CreateCompanyRequest(name="Trial", **fields)
        assert (await refused(operator, "CreateCompany", request)).status == status


async def test_a_sandboxs_keys_say_so_and_a_new_key_in_their_place_too(operator: Operator) -> None:
    sandbox = (await operator("CreateCompany", pb.CreateCompanyRequest(name="Trial", is_sandbox=True))).company
    minted = await operator("MintKey", pb.MintKeyRequest(company_id=sandbox.id, scope=pb.SCOPE_READ))
    rotated = await operator("RotateKey", pb.RotateKeyRequest(idempotency_key="r", key_id=minted.key_id))
    assert minted.key.startswith("mk_test_") and rotated.key.startswith("mk_test_")
    live = (await operator("CreateCompany", pb.CreateCompanyRequest(name="Live"))).company
    minted = await operator("MintKey", pb.MintKeyRequest(company_id=live.id, scope=pb.SCOPE_READ))
    assert not minted.key.startswith("mk_test_")


async def test_a_sandbox_says_what_it_starts_with(operator: Operator, company_id: int) -> None:
    for content in (pb.SANDBOX_CONTENT_EMPTY, pb.SANDBOX_CONTENT_COPY, pb.SANDBOX_CONTENT_DEMO):
        request = pb.CreateCompanyRequest(name="Trial", is_sandbox=True, sandbox_of=company_id, content=content)
        sandbox = (await operator("CreateCompany", request)).company
        assert sandbox.content == content and not sandbox.HasField("filled_at"), "no svc-catalog has the company here"


async def test_an_ended_sandbox_is_none_any_more(
    operator: Operator, company_id: int, api: Api, database: Database
) -> None:
    request = pb.CreateCompanyRequest(name="Trial", is_sandbox=True, sandbox_of=company_id, external_id="trial")
    sandbox = (await operator("CreateCompany", request)).company
    key = (await operator("MintKey", pb.MintKeyRequest(company_id=sandbox.id, scope=pb.SCOPE_READ))).key
    assert (await api.get("/whoami", key)).status == 200
    ended = (await operator("EndSandbox", pb.EndSandboxRequest(company_id=sandbox.id))).company
    assert ended.HasField("ended_at") and not ended.active and not ended.external_id

    async def is_unknown() -> bool:
        return (await api.get("/whoami", key)).status == 401

    await eventually(is_unknown)
    again = (await operator("EndSandbox", pb.EndSandboxRequest(company_id=sandbox.id))).company
    assert again == ended
    for rpc, other in (
        ("UpdateCompany", pb.UpdateCompanyRequest(company_id=sandbox.id, active=True)),
        ("MintKey", pb.MintKeyRequest(company_id=sandbox.id, scope=pb.SCOPE_READ)),
        ("CreateAdministrator", pb.CreateAdministratorRequest(company_id=sandbox.id, email="late@example.com")),
    ):
        assert (await refused(operator, rpc, other)).status == 404
    (entry,) = await rows(database, "SELECT * FROM audit WHERE action = 'sandbox.ended'")
    assert (entry["company_id"], entry["subject_id"]) == (company_id, sandbox.id), "the live company's log has it"
    # A file's name for it is free again.
    assert (await operator("CreateCompany", request)).company.id != sandbox.id


async def test_a_live_company_cannot_be_ended(operator: Operator, company_id: int, database: Database) -> None:
    request = pb.EndSandboxRequest(company_id=company_id)
    assert (await refused(operator, "EndSandbox", request)).status == 422
    assert (await refused(operator, "EndSandbox", pb.EndSandboxRequest(company_id=900_000))).status == 404
    with pytest.raises(asyncpg.CheckViolationError, match="company_live"):
        await rows(database, "UPDATE company SET ended_at = now(), active = false WHERE id = $1", company_id)


@pytest.mark.parametrize("name", ["", "   ", "x" * 201, "a\nb", "a\0b", "\u202e"])
async def test_a_company_needs_a_name(operator: Operator, name: str) -> None:
    assert (await refused(operator, "CreateCompany", pb.CreateCompanyRequest(name=name))).status == 400


@pytest.mark.parametrize("timezone", ["Mars/Olympus", "EST5EDT4", "../etc/passwd", "america/toronto", "UTC+1", " "])
async def test_a_timezone_is_an_iana_name(operator: Operator, company_id: int, timezone: str) -> None:
    for rpc, request in (
        ("CreateCompany", pb.CreateCompanyRequest(name="A", timezone=timezone)),
        ("UpdateCompany", pb.UpdateCompanyRequest(company_id=company_id, timezone=timezone)),
    ):
        assert "IANA" in (await refused(operator, rpc, request)).message


async def test_an_unknown_record_is_not_found(operator: Operator, company_id: int) -> None:
    for rpc, request in (
        ("UpdateCompany", pb.UpdateCompanyRequest(company_id=900_000, active=True)),
        ("CreateAdministrator", pb.CreateAdministratorRequest(company_id=900_000, email="a@example.com")),
        ("MintKey", pb.MintKeyRequest(company_id=900_000, scope=pb.SCOPE_READ)),
        ("MintKey", pb.MintKeyRequest(company_id=-1, scope=pb.SCOPE_READ)),
        (
            "MintKey",
            pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ, administrator_email="no@example.com"),
        ),
        ("ListKeys", pb.ListKeysRequest(company_id=900_000)),
        ("RevokeKey", pb.RevokeKeyRequest(key_id=900_000)),
    ):
        refusal = await refused(operator, rpc, request)
        assert (refusal.status, refusal.code) == (404, "not_found"), rpc


async def test_an_email_names_one_administrator_whatever_its_case(operator: Operator, company_id: int) -> None:
    request = pb.CreateAdministratorRequest(company_id=company_id, email=f"Ada.{company_id}@Example.com")
    assert (await operator("CreateAdministrator", request)).administrator_id > 0
    request.email = request.email.upper()
    assert (await refused(operator, "CreateAdministrator", request)).status == 422
    request.company_id = await operator.company()
    assert (await refused(operator, "CreateAdministrator", request)).status == 422


@pytest.mark.parametrize(
    "email", ["", "ada", "ada@", "@example.com", "a b@example.com", "ada@example", "a@b.c\n", "é@b.com"]
)
async def test_an_email_is_an_address(operator: Operator, company_id: int, email: str) -> None:
    if email.strip() != email:
        return
    request = pb.CreateAdministratorRequest(company_id=company_id, email=email)
    assert (await refused(operator, "CreateAdministrator", request)).status == 400


async def test_a_password_is_stored_as_argon2id_alone(operator: Operator, company_id: int, database: Database) -> None:
    password = "correct horse battery"
    request = pb.CreateAdministratorRequest(
        company_id=company_id, email=f"p{company_id}@example.com", password=password
    )
    response = await operator("CreateAdministrator", request)
    (row,) = await rows(database, "SELECT password FROM account WHERE administrator_id = $1", response.administrator_id)
    assert row["password"].startswith("$argon2id$v=19$m=47104,t=1,p=1$")
    assert await Passwords().matches(password, row["password"], LINE)
    assert not await Passwords().matches(password + " ", row["password"], LINE)
    request.email, request.password = "short@example.com", "short"
    assert (await refused(operator, "CreateAdministrator", request)).status == 400


async def test_two_hashes_of_one_password_differ() -> None:
    assert await Passwords().hashed("the same again", LINE) != await Passwords().hashed("the same again", LINE)


async def test_a_key_is_256_random_bits_and_stored_as_its_digest(
    operator: Operator, company_id: int, database: Database
) -> None:
    email = await operator.administrator(company_id)
    key_id, key = await operator.minted(company_id, "read", email)
    assert re.fullmatch(r"mk_1[0-9a-f]{4}_[A-Za-z0-9_-]{43}[A-Za-z0-9_-]{16}", key)
    (row,) = await rows(database, "SELECT * FROM api_key WHERE id = $1", key_id)
    assert row["digest"] == hashlib.sha256(key.encode()).digest()
    assert row["prefix"] == key[:17]  # mk_1abcd_ and 8 random characters
    assert not [value for value in row.values() if isinstance(value, str) and key[17:] in value]
    audited = await rows(
        database,
        "SELECT action, after::text AS detail, actor, request_id FROM audit WHERE subject = 'key' AND subject_id = $1",
        key_id,
    )
    assert [(row["action"], row["actor"], row["request_id"]) for row in audited] == [("key.minted", "operator", "op-1")]
    assert key[17:] not in audited[0]["detail"]


async def test_keys_are_listed_and_revoked_once(operator: Operator, company_id: int, database: Database) -> None:
    email = await operator.administrator(company_id)
    first, key = await operator.minted(company_id, "read", email)
    second, _ = await operator.minted(company_id, "webhook_only")
    listed = (await operator("ListKeys", pb.ListKeysRequest(company_id=company_id))).keys
    assert [(row.id, row.scope, row.administrator_email) for row in listed] == [
        (first, pb.SCOPE_READ, email),
        (second, pb.SCOPE_WEBHOOK_ONLY, ""),
    ]
    assert key not in str(listed) and listed[0].prefix == key[:17]
    revoked = (await operator("RevokeKey", pb.RevokeKeyRequest(key_id=first))).key
    again = (await operator("RevokeKey", pb.RevokeKeyRequest(key_id=first))).key
    assert revoked.HasField("revoked_at") and again == revoked
    audited = await rows(database, "SELECT 1 FROM audit WHERE action = 'key.revoked' AND subject_id = $1", first)
    assert len(audited) == 1


async def test_a_scope_is_one_of_three(operator: Operator, company_id: int) -> None:
    assert (await refused(operator, "MintKey", pb.MintKeyRequest(company_id=company_id))).status == 422
    unknown = pb.MintKeyRequest(company_id=company_id)
    unknown.MergeFromString(b"\x10\x09")  # scope = 9
    assert (await refused(operator, "MintKey", unknown)).status == 422


async def test_a_key_cannot_name_another_companys_administrator(operator: Operator, company_id: int) -> None:
    email = await operator.administrator(await operator.company())
    request = pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ, administrator_email=email)
    assert (await refused(operator, "MintKey", request)).status == 404


async def test_other_contexts_get_each_version_of_a_company(
    operator: Operator, company_id: int, database: Database
) -> None:
    for active in (False, False, True):
        await operator.set_active(company_id, active)
    sent = [
        Event.FromString(row["message"])
        for row in await rows(database, "SELECT message FROM outbox WHERE subject = 'events.gateway.references'")
    ]
    published = [event.references.companies[0] for event in sent if event.company_id == company_id]
    assert sorted((reference.version, reference.active, reference.name) for reference in published) == [
        (1, True, "Maple Homes"),
        (2, False, "Maple Homes"),
        (3, True, "Maple Homes"),
    ]


async def test_changes_of_one_company_at_once_leave_the_versions_in_order(
    operator: Operator, company_id: int, database: Database
) -> None:
    zones = ["America/Toronto", "Europe/Paris", "Asia/Tokyo", "UTC", "Africa/Cairo"] * 3
    await asyncio.gather(
        *(operator("UpdateCompany", pb.UpdateCompanyRequest(company_id=company_id, timezone=zone)) for zone in zones)
    )
    sent = [
        Event.FromString(row["message"])
        for row in await rows(database, "SELECT message FROM outbox WHERE subject = 'events.gateway.references'")
    ]
    names_by_version = {
        event.references.companies[0].version: event.references.companies[0].timezone
        for event in sent
        if event.company_id == company_id
    }
    assert sorted(names_by_version) == list(range(1, len(names_by_version) + 1))
    (row,) = await rows(database, "SELECT version, timezone FROM company WHERE id = $1", company_id)
    assert names_by_version[row["version"]] == row["timezone"]


async def test_the_tables_are_what_the_migrations_make(harness: object, database: Database) -> None:
    assert await differences(database.url, tables.metadata) == []


def test_proto_rules_and_table_name_the_same_scopes() -> None:
    labels = {
        value.number: value.GetOptions().Extensions[options_pb2.label]
        for value in pb.Scope.DESCRIPTOR.values
        if value.number
    }
    assert labels == service.SCOPES == dict(enumerate(rules.SCOPES, start=1))
    (check,) = [constraint for constraint in api_key.constraints if constraint.name == "api_key_scope"]
    assert re.findall(r"'(\w+)'", str(check.sqltext)) == list(rules.SCOPES)  # type: ignore[attr-defined]


CONTRACTS = (pb, key_usage_pb2, staff_pb2, staff_commands_pb2, actors_pb2, administrators_pb2, accounts_pb2)
SERVICES = [served for contract in CONTRACTS for served in contract.DESCRIPTOR.services_by_name.values()]
RPCS = [rpc for served in SERVICES for rpc in served.methods]
WHO = {
    INTEGRATION: ("gateway", Identity(INTEGRATION, "gateway", 1, 1, "write", 1)),
    SERVICE: ("svc-tickets", Identity(SERVICE, "svc-tickets", 1)),
    OPERATOR: ("operator", Identity(OPERATOR, "operator", 1)),
    STAFF: ("gateway", Identity(STAFF, "gateway", 1, staff_id=1)),
    ADMINISTRATOR: ("gateway", Identity(ADMINISTRATOR, "gateway", 1, administrator_id=1)),
}


@pytest.mark.parametrize("kind", WHO)
@pytest.mark.parametrize("rpc", RPCS, ids=lambda rpc: rpc.name)
async def test_an_rpc_answers_the_kinds_that_its_contract_allows(
    gateway: Gateway, identity_keys: Path, rpc: MethodDescriptor, kind: str
) -> None:
    issuer_name, who = WHO[kind]
    services = rpc.GetOptions().Extensions[options_pb2.services]
    if kind == SERVICE and services and issuer_name not in services:
        issuer_name, who = services[0], Identity(SERVICE, services[0])
    token = TokenSigner(identity_keys / f"{issuer_name}.jwk").token("gateway", who)
    allowed = KINDS[kind] in rpc.GetOptions().Extensions[options_pb2.allowed]
    named = "company_id" in rpc.input_type.fields_by_name
    request = GetMessageClass(rpc.input_type)(**({"company_id": 1} if named else {}))
    async with grpc.aio.insecure_channel(gateway.grpc_target) as channel:
        try:
            await method_on(channel, type(request))(request, metadata=[("authorization", token)], timeout=60)
            status = grpc.StatusCode.OK
        except grpc.aio.AioRpcError as error:
            status = error.code()
    assert (status != grpc.StatusCode.PERMISSION_DENIED) == allowed
