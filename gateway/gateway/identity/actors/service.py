"""The RPCs about a company's actors: tokens, so that the operator's command line can act as one of its people, and
names."""

from __future__ import annotations

import time
from collections.abc import Sequence

from asyncpg import Record

from chassis.auth.identity import (
    ADMINISTRATOR,
    INTEGRATION,
    REUSE_SECONDS,
    STAFF,
    Call,
    Identity,
    TokenSigner,
    company_id,
)
from chassis.db.database import Database
from chassis.refusals import Refusal, invalid_request
from gateway.identity.actors import queries
from gateway.identity.administrators import queries as administrators
from gateway.identity.companies import queries as companies
from gateway.identity.staff import queries as staff
from makeready.identity.v1 import actors_pb2 as pb

ACTORS_MAX = 500
_ID_DIGITS_MAX = 18
# Kinds of actors by the words that records and audit entries have for them.
_KINDS = {ADMINISTRATOR: ADMINISTRATOR, STAFF: STAFF, INTEGRATION: "key", "api_key": "key"}


class ActorsService:
    """Tokens for administrators and staff, signed by the gateway, which owns both; and the names of all actors."""

    def __init__(self, database: Database, issuer: TokenSigner) -> None:
        self.database = database
        self.issuer = issuer

    async def IssueActorToken(self, request: pb.IssueActorTokenRequest, _call: Call) -> pb.IssueActorTokenResponse:
        if request.WhichOneof("actor") == "staff_id":
            who = await self._member(request.company_id, request.staff_id)
        else:
            who = await self._administrator(request.company_id, request.administrator_email)
        return pb.IssueActorTokenResponse(token=self.issuer.token(request.audience, who))

    async def BatchGetActors(self, request: pb.BatchGetActorsRequest, call: Call) -> pb.BatchGetActorsResponse:
        actors = await self._find(company_id(call), request.actors)
        answer = pb.BatchGetActorsResponse()
        for actor, row in actors.items():
            answer.actors.add(
                actor=actor,
                name=row["name"],
                active=row["active"],
                administrator_name=row["administrator_name"],
                administrator_active=row["administrator_active"],
            )
        return answer

    async def ListActivePeople(self, request: pb.ListActivePeopleRequest, _call: Call) -> pb.ListActivePeopleResponse:
        people = [actor for actor in request.actors if actor.startswith((f"{ADMINISTRATOR}:", f"{STAFF}:"))]
        actors = await self._find(request.company_id, people)
        return pb.ListActivePeopleResponse(actors=[actor for actor, row in actors.items() if row["active"]])

    async def _find(self, of_company: int, actors: Sequence[str]) -> dict[str, Record]:
        """The rows of those who exist, in their order. Raises Refusal for too many."""
        if len(actors) > ACTORS_MAX:
            raise invalid_request(f"actors must be at most {ACTORS_MAX}.", "actors")
        keys_by_actor = {actor: parsed for actor in actors if (parsed := _parsed(actor)) is not None}
        ids: dict[str, list[int]] = {kind: [] for kind in _KINDS.values()}
        for kind, actor_id in keys_by_actor.values():
            ids[kind].append(actor_id)
        rows = await queries.actors(self.database, of_company, ids[ADMINISTRATOR], ids[STAFF], ids["key"])
        rows_by_key = {(row["kind"], row["id"]): row for row in rows}
        return {actor: rows_by_key[key] for actor, key in keys_by_actor.items() if key in rows_by_key}

    async def _administrator(self, company_id: int, email: str) -> Identity:
        address = email.strip().lower()
        # NUL can't be stored, so no email contains it.
        row = None if "\0" in address else await administrators.administrator(self.database, address)
        if row is None or not row["active"]:
            raise _no_administrator()
        sandbox = None
        if company_id not in (0, row["company_id"]):
            sandbox = await companies.company(self.database, company_id)
            if sandbox is None or sandbox["sandbox_of"] != row["company_id"]:
                raise _no_administrator()
        return self._confirmed(row, ADMINISTRATOR, administrator_id=row["id"], sandbox=sandbox)

    async def _member(self, company_id: int, staff_id: int) -> Identity:
        row = await staff.member(self.database, company_id, staff_id)
        if row is None or not row["active"]:
            raise Refusal(404, "not_found", "No member of that company's staff has that id.")
        return self._confirmed(row, STAFF, staff_id=staff_id)

    def _confirmed(
        self,
        person: Record,
        kind: str,
        *,
        administrator_id: int | None = None,
        staff_id: int | None = None,
        sandbox: Record | None = None,
    ) -> Identity:
        """The person as the operator acts for them: the operator's key is the confirmation. sandbox: where they work;
        None: in their own company."""
        now = int(time.time())
        return Identity(
            kind,
            self.issuer.name,
            person["company_id"] if sandbox is None else sandbox["id"],
            administrator_id=administrator_id,
            staff_id=staff_id,
            stepped_up_at=now - now % REUSE_SECONDS,
            is_sandbox=person["is_sandbox"] or sandbox is not None,
        )


def _no_administrator() -> Refusal:
    return Refusal(404, "not_found", "No administrator of that company has that email; create one first.")


def _parsed(actor: str) -> tuple[str, int] | None:
    """The kind and id of "administrator:7"; None if it is no such text."""
    word, _, number = actor.partition(":")
    if word not in _KINDS or not (number.isascii() and number.isdigit()) or len(number) > _ID_DIGITS_MAX:
        return None
    return _KINDS[word], int(number)
