"""Runs one command in a process of its own, which a test kills: `python -m tests.writes.dying DATABASE_URL`."""

from __future__ import annotations

import asyncio
import os
import sys

from chassis.db.database import Database
from chassis.messaging.outbox import Outbox
from chassis.runtime import failpoints
from chassis.writes.audit import Audit
from chassis.writes.commands import Command, CommandRunner
from makeready.common.v1.documents_pb2 import Document

from ..contract import AddParcelRequest
from ..parcels import audit, claims, outbox, person

APPLICATION = "dying"
REQUEST = AddParcelRequest(idempotency_key="key", label="a box")


async def work(command: Command) -> Document:
    await command.audit("parcel.added", "parcel", 1, {}, {"label": "a box"})
    await command.publish_event("ticket.created", 1, command.now, b"{}")
    return Document(json=b"a document")


async def main(url: str) -> None:
    database = Database(url, application=APPLICATION)
    await database.open()
    commands = CommandRunner(database, claims, Audit(audit, database), Outbox("svc-parcels", outbox))
    await commands.run(person(), REQUEST, Document, work)


if __name__ == "__main__":
    failpoints.arm(os.environ["MAKEREADY_KILL_AT"], "")
    asyncio.run(main(sys.argv[1]))
