"""The RPC that issues tokens for a company's people, so that the operator's command line can act as one of them."""

from __future__ import annotations

from chassis.auth.identity import ADMINISTRATOR, STAFF, Call, Identity, TokenSigner
from chassis.db.database import Database
from chassis.refusals import Refusal
from gateway.identity.administrators import queries as administrators
from gateway.identity.staff import queries as staff
from makeready.identity.v1 import actors_pb2 as pb


class ActorsService:
    """Tokens for administrators and staff, signed by the gateway, which owns both."""

    def __init__(self, database: Database, issuer: TokenSigner) -> None:
        self.database = database
        self.issuer = issuer

    async def IssueActorToken(self, request: pb.IssueActorTokenRequest, _call: Call) -> pb.IssueActorTokenResponse:
        if request.WhichOneof("actor") == "staff_id":
            who = await self._member(request.company_id, request.staff_id)
        else:
            who = await self._administrator(request.company_id, request.administrator_email)
        return pb.IssueActorTokenResponse(token=self.issuer.token(request.audience, who))

    async def _administrator(self, company_id: int, email: str) -> Identity:
        address = email.strip().lower()
        # NUL can't be stored, so no email contains it.
        found = None if "\0" in address else await administrators.administrator(self.database, address)
        if found is None or company_id not in (0, found["company_id"]):
            raise Refusal(404, "not_found", "No administrator of that company has that email; create one first.")
        return Identity(ADMINISTRATOR, self.issuer.name, found["company_id"], administrator_id=found["id"])

    async def _member(self, company_id: int, staff_id: int) -> Identity:
        if not await staff.staff_references(self.database, company_id, [staff_id], []):
            raise Refusal(404, "not_found", "No member of that company's staff has that id.")
        return Identity(STAFF, self.issuer.name, company_id, staff_id=staff_id)
