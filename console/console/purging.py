"""Deletes what the console keeps of ended sandboxes, and of people who have left: imports with their files, photos,
saved views."""

from __future__ import annotations

import asyncio
import itertools

import asyncpg
import sqlalchemy as sa
import structlog

from chassis.auth.clients import ServiceClient
from chassis.db.database import Database
from chassis.db.statements import Statement, param
from chassis.refusals import Refusal, Unavailable
from chassis.writes.purging import CompanyRows
from console import tables
from console.files import Files
from console.kit import photos
from console.saved_views import SavedViews
from makeready.identity.v1 import actors_pb2
from makeready.identity.v1 import identity_pb2 as pb

LOOK_SECONDS, LOOK_AT_PEOPLE_SECONDS = 30.0, 3600.0

log = structlog.stdlib.get_logger(__name__)
_FILES = Statement(
    sa.select(tables.job.c.stored_as).where(tables.job.c.company_id == param("company_id", sa.BigInteger))
)


class PeoplePurge:
    """Removes the saved views that only a person could see who is not active any more."""

    def __init__(self, gateway: ServiceClient, views: SavedViews) -> None:
        self._gateway, self._views = gateway, views

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            try:
                await self.purge()
            except (Refusal, Unavailable) as error:
                log.warning("purge_waits", reason=str(error))
            except Exception:  # it is tried again: nobody else would
                log.exception("purge_failed")
            await asyncio.sleep(LOOK_AT_PEOPLE_SECONDS)

    async def purge(self) -> None:
        """Asks the gateway who is active, of all who have views."""
        after = (0, "")
        while people := await self._views.people(after):
            after = people[-1]
            for company_id, rows in itertools.groupby(people, key=lambda row: row[0]):
                actors = [actor for _, actor in rows]
                request = actors_pb2.ListActivePeopleRequest(company_id=company_id, actors=actors)
                active = await self._gateway.call(request, actors_pb2.ListActivePeopleResponse)
                for actor in set(actors) - set(active.actors):
                    await self._views.forget(company_id, actor)


class SandboxPurge:
    """Asks the gateway which sandboxes have ended, and tells it how much of them was left. Any number of consoles may
    do so at once."""

    def __init__(self, gateway: ServiceClient, database: Database, files: Files) -> None:
        self._gateway, self._database, self._files = gateway, database, files
        self._rows = CompanyRows(database, tables.metadata)

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            try:
                await self.purge()
            except (Refusal, Unavailable, asyncpg.IntegrityConstraintViolationError) as error:
                log.warning("purge_waits", reason=str(error))
            except Exception:  # it is tried again: nobody else would
                log.exception("purge_failed")
            await asyncio.sleep(LOOK_SECONDS)

    async def purge(self) -> None:
        """Deletes the rows and files of the ended sandboxes, and reports how many there were: none is the proof."""
        listed = await self._gateway.call(pb.ListSandboxesToPurgeRequest(), pb.ListSandboxesToPurgeResponse)
        if not listed.company_ids:
            return
        photos_deleted = await photos.delete_of_companies(self._files, set(listed.company_ids))
        for company_id in listed.company_ids:
            # Files first: each has its name in a row.
            for row in await self._database.rows(_FILES, company_id=company_id):
                await self._files.delete(row["stored_as"])
            deleted = photos_deleted[company_id] + await self._rows.delete(company_id)
            if deleted:
                log.info("company_purged", company_id=company_id, rows=deleted)
            report = pb.ReportSandboxPurgeRequest(company_id=company_id, left=deleted)
            await self._gateway.call(report, pb.ReportSandboxPurgeResponse)
