"""The vault's RPC, and the hourly check of the keys in use."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import structlog
from prometheus_client import Gauge

from chassis.auth import identity
from chassis.db.database import Database
from chassis.writes.audit import Audit
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.vault import queries
from svc_webhooks.vault.keyring import Vault, VaultFault
from svc_webhooks.vault.rules import vault_unavailable

SECRETS_AT_ONCE = 500

log = structlog.stdlib.get_logger(__name__)
SECRETS = Gauge("makeready_webhooks_secrets", "Signing secrets by the key that seals them", ["key_id", "opens"])


class VaultService:
    """Seals all signing secrets with the current key."""

    def __init__(self, database: Database, audit: Audit, vault: Vault | None) -> None:
        self.database = database
        self.audit = audit
        self.vault = vault

    async def ResealSecrets(self, _request: pb.ResealSecretsRequest, call: identity.Call) -> pb.ResealSecretsResponse:
        """Several calls may run at once, and next to rotations: a secret is written only if it has not changed since it
        was read."""
        if self.vault is None:
            raise vault_unavailable("nothing was changed")
        response = pb.ResealSecretsResponse(key_id=self.vault.key_id)
        after_id = 0
        while rows := await queries.secrets_sealed(self.database, after_id, SECRETS_AT_ONCE):
            after_id = rows[-1].id
            resealed = []
            for row in rows:
                try:
                    secret = self.vault.open(*row)
                except VaultFault:
                    response.unopened += 1
                    continue
                if row.secret_key_id != self.vault.key_id:
                    anew = self.vault.seal(row.id, secret)
                    resealed.append(queries.Resealed(*row, anew.key_id, anew.sealed))
            if resealed:
                response.resealed += await self._save(call, resealed, self.vault.key_id)
        keys = [row.secret_key_id for row in await self.look()]
        response.keys_needed.extend(key_id for key_id in keys if key_id != self.vault.key_id)
        log.info("secrets_resealed", key_id=response.key_id, secrets=response.resealed, unopened=response.unopened)
        return response

    async def _save(self, call: identity.Call, resealed: Sequence[queries.Resealed], key_id: str) -> int:
        """Writes the secrets that have not changed since they were read, each with an audit entry; returns their
        number."""
        async with self.database.transaction() as connection:
            done = await queries.secrets_resealed(connection, resealed)
            for row in done:
                before, after = {"secret_key_id": row.old_key_id}, {"secret_key_id": key_id}
                await self.audit.add(
                    connection,
                    call,
                    row.company_id,
                    "subscription.secret_resealed",
                    "webhook_subscription",
                    row.id,
                    before,
                    after,
                )
        return len(done)

    async def every_hour(self, _slot: datetime.datetime) -> None:
        """Reports at every start and every hour which keys seal secrets: a key may have been removed from the ring too
        early."""
        await self.look()

    async def look(self) -> list[queries.KeyInUse]:
        """The keys in use; also reports them to logs and metrics."""
        keys = await queries.keys_in_use(self.database)
        SECRETS.clear()
        for row in keys:
            opens = self._opens(row)
            SECRETS.labels(row.secret_key_id, "yes" if opens else "no").set(row.secrets)
            if not opens:
                # Their deliveries wait: nothing is lost if the key returns within the thirty days.
                log.error("secrets_not_opened", key_id=row.secret_key_id, secrets=row.secrets)
            elif self.vault is not None and row.secret_key_id != self.vault.key_id:
                log.info("secrets_under_an_older_key", key_id=row.secret_key_id, secrets=row.secrets)
        return keys

    def _opens(self, row: queries.KeyInUse) -> bool:
        try:
            if self.vault is not None:
                self.vault.open(row.id, row.secret_key_id, row.secret_sealed)
        except VaultFault:
            return False
        return self.vault is not None
