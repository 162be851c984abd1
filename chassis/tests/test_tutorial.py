"""The tutorial works as printed: the test writes its files, runs its commands and compares their output."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest
import sqlalchemy as sa
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis.db.database import Database
from chassis.db.statements import Statement
from testkit.patience import eventually
from testkit.plugin import PostgresServer, Server
from testkit.processes import READY_SECONDS, Process, free_port

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
OURS = "lint.isort.known-first-party = ['chassis', 'makeready', 'parcels', 'svc_parcels']"
SERVE = "python -m svc_parcels\n"
BLOCK = re.compile(r"(?:^\*\*`(?P<file>[^`]+)`\*\*\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """A block of code: a file if the text above names one, else a command or a command's output."""

    file: str
    kind: str
    text: str


def blocks() -> list[Block]:
    matches = BLOCK.finditer(TUTORIAL.read_text())
    return [Block(match["file"] or "", match["kind"], match["text"]) for match in matches]


class Folder:
    """The reader's folder, shell by shell."""

    def __init__(self, path: Path, database_url: str, nats_url: str) -> None:
        self.path = path
        self.target = f"127.0.0.1:{free_port()}"
        # The reader's environment: the programs, the servers, and free ports.
        self.environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"} | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "MAKEREADY": str(ROOT),
            "MAKEREADY_GRPC_LISTEN": self.target,
            "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
        }
        self.own = {"MAKEREADY_DATABASE_URL": database_url, "MAKEREADY_NATS_URL": nats_url}

    def write(self, block: Block) -> None:
        path = self.path / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)

    def run(self, command: str) -> str:
        """Runs the command in a shell; returns its output."""
        done = subprocess.run(
            ["sh", "-eu"],
            input=command,
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=READY_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def export(self, command: str) -> None:
        exported = dict(line.removeprefix("export ").split("=", 1) for line in command.splitlines())
        assert self.own.keys() <= exported.keys()
        self.environment |= exported | self.own

    def serve(self) -> Process:
        """Starts the service and waits until it reports that it is ready."""
        process = Process(["sh", "-euc", f"cd '{self.path}'; exec {SERVE}"], self.path / "log", self.environment)
        process.launch()
        process.wait_until(self._is_ready)
        return process

    def _is_ready(self) -> bool:
        with grpc.insecure_channel(self.target) as channel:
            try:
                stub = health_pb2_grpc.HealthStub(channel)
                answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=2)  # short: asked again
            except grpc.RpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


@pytest.fixture
def folder(postgres_server: PostgresServer, nats_server: Server, tmp_path: Path) -> Iterator[Folder]:
    yield Folder(tmp_path, postgres_server.create_database("parcels"), nats_server.url)


# The differences between the migration and the tables.
DIFFERENCES = """
import asyncio, os
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from chassis.db.migrations import is_a_contexts, with_connection
from svc_parcels.tables import metadata

def compare(connection):
    return compare_metadata(MigrationContext.configure(connection, opts={"include_name": is_a_contexts}), metadata)

print(asyncio.run(with_connection(os.environ["MAKEREADY_DATABASE_URL"], compare)))
"""


async def published(url: str) -> list[str]:
    """The subjects of all events, once each has been published."""
    database = Database(url, application="tests")
    await database.open()

    async def nothing_waits() -> bool:
        waiting = await database.rows(Statement(sa.text("SELECT FROM outbox WHERE published_at IS NULL")))
        return not list(waiting)

    await eventually(nothing_waits)
    rows = await database.rows(Statement(sa.text("SELECT subject FROM outbox")))
    await database.close()
    return [row["subject"] for row in rows]


def test_the_tutorial_works_as_it_is_printed(folder: Folder) -> None:
    service: Process | None = None
    printed = ""
    try:
        for block in blocks():
            if block.file:
                folder.write(block)
            elif block.kind == "text":
                assert printed == block.text
            elif block.text == SERVE:
                assert folder.run(f"python -c '{DIFFERENCES}'") == "[]\n"
                service = folder.serve()
            elif block.text.startswith("export "):
                folder.export(block.text)
            else:
                assert block.kind == "sh"
                printed = folder.run(block.text)
        assert service is not None and printed
        subjects = asyncio.run(published(folder.own["MAKEREADY_DATABASE_URL"]))
        assert subjects == ["events.svc-parcels.public.property.notice.published"]
        assert service.end() == 0, service.log_tail()
    finally:
        if service is not None:
            service.kill()


def test_the_tutorials_code_is_in_the_style_of_all_other_code() -> None:
    ruff = Path(sys.executable).with_name("ruff")
    python = [block for block in blocks() if block.kind == "python"]
    assert len(python) > 8
    for block in python:
        for command in (["check", "--quiet", "--config", OURS], ["format", "--diff", "--quiet"]):
            name = ["--stdin-filename", str(ROOT / "docs" / "parcels" / block.file)]
            done = subprocess.run(
                [ruff, *command, *name, "-"], input=block.text, cwd=ROOT, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{block.file}\n{done.stdout}{done.stderr}"
