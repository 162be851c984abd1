"""Compares companies with what a file declares, and makes the steps that close the differences.

Each step can be repeated: companies are found by their external_id, administrators by their e-mail, keys by their name,
and a mint has an idempotency key. So a run that was killed is run again.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from makeready.identity.v1 import administrators_pb2
from makeready.identity.v1 import identity_pb2 as pb
from makeready.tickets.v1 import tickets_pb2
from makeready_cli.calls import Operator
from makeready_cli.ensuring.companies_file import Administrator, Company, Key
from makeready_cli.ensuring.keys_file import KeysFile
from makeready_cli.errors import CommandError
from makeready_cli.output import Record, labels

_SCOPES = labels(pb.Scope.DESCRIPTOR)
_CONTENTS = labels(pb.SandboxContent.DESCRIPTOR)
_SCOPE_NUMBERS = {label: number for number, label in _SCOPES.items()}


@dataclass(frozen=True, slots=True)
class Step:
    """One difference. kind: `company`, `administrator` or `key`; action: `create`, `change`, or `store` for a key that
    was minted before a run was killed."""

    company: str
    kind: str
    name: str
    action: str
    values: Record = field(repr=False)
    """What it will have; of a change the differing values alone. Never a key."""
    apply: Callable[[], Awaitable[None]] = field(repr=False)

    def record(self) -> Record:
        return {
            "company": self.company,
            "what": self.kind,
            "name": self.name,
            "action": self.action,
            "values": self.values,
        }


@dataclass(slots=True)
class _Place:
    """A company of the file, and its id once it exists."""

    declared: Company
    company_id: int = 0


async def differences(operator: Operator, declared: Sequence[Company], keys: KeysFile | None) -> list[Step]:
    """The steps, in the order in which they must be done. keys: None compares without the file of keys.

    Raises CommandError for a difference that no step can close: a key keeps its scope and its administrator.
    """
    listed = await operator.call("gateway", pb.ListCompaniesRequest(), pb.ListCompaniesResponse)
    companies = {company.external_id: company for company in listed.companies if company.external_id}
    steps: list[Step] = []
    for declaration in declared:
        company = companies.get(declaration.external_id)
        place = _Place(declaration, company.id if company else 0)
        steps += _settings(operator, place, company)
        steps += await _policy(operator, place)
        steps += await _administrators(operator, place)
        steps += await _keys(operator, place, keys)
    return steps


def _settings(operator: Operator, place: _Place, company: pb.Company | None) -> list[Step]:
    declared = place.declared
    all_settings: Record = {
        "name": declared.name.strip(),
        "timezone": declared.timezone,
        "active": declared.active,
        "second_factor_required": declared.second_factor_required,
    }
    settings = {name: value for name, value in all_settings.items() if value is not None}

    async def create() -> None:
        request = pb.CreateCompanyRequest(
            name=declared.name,
            timezone=declared.timezone or "",
            external_id=declared.external_id,
            is_sandbox=declared.sandbox,
            content=pb.SANDBOX_CONTENT_DEMO if declared.content == "demo" else pb.SANDBOX_CONTENT_EMPTY,
        )
        created = (await operator.call("gateway", request, pb.CreateCompanyResponse)).company
        place.company_id = created.id
        # Also the settings that a new company has not; or another run has made it meanwhile.
        await change(_differing(settings, created))

    async def change(values: Record) -> None:
        if values:
            request = pb.UpdateCompanyRequest(company_id=place.company_id, **values)
            await operator.call("gateway", request, pb.UpdateCompanyResponse)

    if company is None:
        settings_of_new = settings | ({"sandbox": True} if declared.sandbox else {})
        settings_of_new |= {"content": declared.content} if declared.content else {}
        return [Step(declared.external_id, "company", declared.external_id, "create", settings_of_new, create)]
    if company.is_sandbox != declared.sandbox:
        raise CommandError(
            f"Company {company.id} ({declared.external_id}) {'is' if company.is_sandbox else 'is not'} a sandbox, and "
            "stays what it was created as: correct the file, or give the new company another external_id."
        )
    if company.is_sandbox and declared.content not in (None, _CONTENTS[company.content]):
        raise CommandError(
            f"Sandbox {company.id} ({declared.external_id}) started with the content {_CONTENTS[company.content]}, and "
            "that can't be changed: correct the file, or give the new sandbox another external_id."
        )
    differing = _differing(settings, company)
    step = Step(declared.external_id, "company", declared.external_id, "change", differing, lambda: change(differing))
    return [step] if differing else []


def _differing(settings: Record, company: pb.Company) -> Record:
    return {name: value for name, value in settings.items() if getattr(company, name) != value}


async def _policy(operator: Operator, place: _Place) -> list[Step]:
    declared = place.declared
    all_settings: Record = {
        "photo_required_to_complete": declared.photo_required,
        "stale_after_hours": declared.ticket_stale_after_hours,
    }
    settings = {name: value for name, value in all_settings.items() if value is not None}
    if not settings:
        return []
    if place.company_id:
        stored = await operator.call(
            "svc-tickets",
            tickets_pb2.GetTicketPolicyRequest(),
            tickets_pb2.GetTicketPolicyResponse,
            company_id=place.company_id,
        )
        settings = {name: value for name, value in settings.items() if getattr(stored, name) != value}

    async def change() -> None:
        request = tickets_pb2.UpdateTicketPolicyRequest(**settings)
        await operator.call("svc-tickets", request, tickets_pb2.UpdateTicketPolicyResponse, company_id=place.company_id)

    names = {"photo_required_to_complete": "photo_required", "stale_after_hours": "ticket_stale_after_hours"}
    values = {names[name]: value for name, value in settings.items()}
    external_id = declared.external_id
    return [Step(external_id, "company", external_id, "change", values, change)] if settings else []


async def _administrators(operator: Operator, place: _Place) -> list[Step]:
    administrators: dict[str, administrators_pb2.Administrator] = {}
    if place.declared.administrators and place.company_id:
        request = administrators_pb2.ListAdministratorsRequest()
        listed = await operator.call(
            "gateway", request, administrators_pb2.ListAdministratorsResponse, company_id=place.company_id
        )
        administrators = {administrator.email: administrator for administrator in listed.administrators}
    newest = max((administrator.administrator_id for administrator in administrators.values()), default=0)

    def step(declared: Administrator) -> Step | None:
        email = declared.email.lower()
        administrator = administrators.get(email)
        name = (declared.name or email.partition("@")[0]).strip()

        async def invite() -> None:
            # The same for runs at the same time: the company then gets one administrator and no refusal.
            once = _once("administrator", place.company_id, email, name, newest)
            request = administrators_pb2.InviteAdministratorRequest(idempotency_key=once, email=email, name=name)
            await operator.call(
                "gateway", request, administrators_pb2.InviteAdministratorResponse, company_id=place.company_id
            )

        async def rename() -> None:
            assert administrator is not None
            who = administrator.administrator_id
            once = _once("name", who, administrator.name, name)
            request = administrators_pb2.UpdateAdministratorRequest(
                idempotency_key=once, administrator_id=who, name=name
            )
            await operator.call(
                "gateway", request, administrators_pb2.UpdateAdministratorResponse, company_id=place.company_id
            )

        external_id = place.declared.external_id
        if administrator is None:
            return Step(external_id, "administrator", email, "create", {"name": name}, invite)
        if declared.name is not None and administrator.name != name:
            return Step(external_id, "administrator", email, "change", {"name": name}, rename)
        return None

    return [difference for difference in map(step, place.declared.administrators) if difference is not None]


async def _keys(operator: Operator, place: _Place, keys: KeysFile | None) -> list[Step]:
    declared = place.declared
    listed = await _all_keys(operator, place.company_id) if declared.keys and place.company_id else []
    opening = {key.id for key in await _all_keys(operator, place.company_id, True)} if listed else set()
    return [
        step
        for declaration in declared.keys
        if (step := _key(operator, place, declaration, _named(listed, declaration.name), opening, keys))
    ]


def _named(keys: list[pb.Key], name: str) -> list[pb.Key]:
    return [key for key in keys if key.name == name]


def _key(
    operator: Operator, place: _Place, declared: Key, named: list[pb.Key], opening: set[int], keys: KeysFile | None
) -> Step | None:
    """opening: the ids of keys that are neither revoked nor expired."""
    if declared.expires_at is not None and declared.expires_at <= datetime.datetime.now(datetime.UTC):
        return None  # its time is over
    external_id = place.declared.external_id
    entry = f"{external_id}.{declared.name}"
    email = declared.administrator.lower()
    active = [key for key in named if key.id in opening]
    for key in active:
        if (_SCOPES[key.scope], key.administrator_email) != (declared.scope, email):
            raise CommandError(
                f"Key {key.id} ({entry}) has another scope or another administrator than the file says: write into the "
                f"file who took it over, revoke it with `makeready key revoke {key.id}`, or give the new key another "
                "name."
            )
    noted = keys.minting(entry) if keys else ""
    stored = keys.key(entry) if keys else ""
    if active and (keys is None or any(stored.startswith(key.prefix) for key in active)):
        return None
    if active and not noted:
        raise CommandError(
            f"Key {active[-1].id} ({entry}) exists, and its secret is not in {keys and keys.path}: put it there, or "
            f"revoke it with `makeready key revoke {active[-1].id}` and run this again."
        )
    ended = max((key.id for key in named if key.id not in opening), default=0)
    request = pb.MintKeyRequest(
        company_id=place.company_id,
        scope=pb.Scope.ValueType(_SCOPE_NUMBERS[declared.scope]),
        name=declared.name,
        administrator_email=email,
    )
    if declared.expires_at is not None:
        request.expires_at.FromDatetime(declared.expires_at)

    async def mint() -> None:
        assert keys is not None, "the command asks for a file where a company has keys"
        request.company_id = place.company_id
        # A key that has ended has its successor; runs at the same time mint one key.
        once = _once("key", place.company_id, declared.name, declared.scope, email, declared.expires_at, ended)
        request.idempotency_key = noted if active else once
        keys.begin(entry, request.idempotency_key)
        minted = await operator.call("gateway", request, pb.MintKeyResponse)
        if not minted.key:
            raise CommandError(
                f"Key {minted.key_id} ({entry}) was minted more than a day ago, by a run that was killed, and nobody "
                f"has its secret: revoke it with `makeready key revoke {minted.key_id}` and run this again."
            )
        keys.store(entry, minted.key)

    values = {"scope": declared.scope} | ({"administrator": email} if email else {})
    return Step(external_id, "key", declared.name, "store" if active else "create", values, mint)


async def _all_keys(operator: Operator, company_id: int, active_only: bool = False) -> list[pb.Key]:
    """Ascending by id."""
    request = pb.ListKeysRequest(company_id=company_id, active_only=active_only)
    keys: list[pb.Key] = []
    while True:
        page = await operator.call("gateway", request, pb.ListKeysResponse)
        keys += page.keys
        if not page.HasField("next_after_id"):
            return keys
        request.after_id = page.next_after_id


def _once(*values: object) -> str:
    """An idempotency key, the same for the same values."""
    return hashlib.sha256(repr(values).encode()).hexdigest()[:32]
