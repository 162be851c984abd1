"""`makeready replicas rebuild`: replaces a service's replica rows with their owners' current rows."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm

from chassis.auth.clients import ServiceUnavailable
from makeready.events.v1 import replicas_pb2 as pb
from makeready_cli.calls import Operator, is_unknown, unavailable_message
from makeready_cli.errors import CommandError, UsageError
from makeready_cli.output import Answer, table
from makeready_cli.parsers import Commands, command, group

PAGE_SECONDS = 60.0


def add(commands: Commands) -> None:
    verbs = group(commands, "replicas", "what services keep of each other's rows")
    rebuilding = command(
        verbs,
        "rebuild",
        "take all rows in from their owners anew",
        description="For a service whose database was lost, or went back to a backup: it asks the owners for every row "
        "that it keeps a replica of, and takes in what is newer than what it has. Services go on serving meanwhile, "
        "and it may be repeated and broken off at any time. With --overwrite the owners' rows count also where a "
        "replica is of a higher version: for when an owner went back to a backup. A second pass then takes in what "
        "changed meanwhile.",
    )
    rebuilding.add_argument("--service", metavar="NAME", help="only what this one keeps, for example svc-tickets")
    rebuilding.add_argument("--overwrite", action="store_true", help="an owner went back to an older backup")
    rebuilding.set_defaults(run=rebuild)


async def rebuild(operator: Operator, arguments: argparse.Namespace) -> Answer:
    services = list(operator.system.services)
    if arguments.service is not None and arguments.service not in services:
        raise UsageError(f"--service must be one of: {', '.join(services)}.")
    kinds = [
        (service, kind)
        for service in ([arguments.service] if arguments.service else services)
        for kind in await _kinds(operator, service)
    ]
    operator.trace()
    rows: dict[tuple[str, str], int] = {}
    for overwrite in [True, False] if arguments.overwrite else [False]:
        for service, kind in kinds:
            with _progress(f"{service}: {kind.kind}") as progress:
                rows[service, kind.kind] = await _take_in(operator, service, kind, overwrite, progress)
    replicas = [
        {"service": service, "kind": kind.kind, "owner": kind.owner, "rows": rows[service, kind.kind]}
        for service, kind in kinds
    ]
    lines = [list(replica.values()) for replica in replicas]
    text = table(("SERVICE", "KIND", "OWNER", "ROWS"), lines, "It keeps no rows of others.")
    return Answer({"overwrite": arguments.overwrite, "replicas": replicas}, text)


async def _kinds(operator: Operator, service: str) -> list[pb.ReplicaKind]:
    """The kinds of replicas that the service has; empty if it does not implement the RPC."""
    try:
        return list((await operator.ask(service, pb.ListReplicasRequest(), pb.ListReplicasResponse)).kinds)
    except ServiceUnavailable as error:
        if is_unknown(error):
            return []
        raise CommandError(unavailable_message(service, error)) from None


async def _take_in(operator: Operator, service: str, kind: pb.ReplicaKind, overwrite: bool, progress: Any) -> int:
    """Copies all rows of one kind from their owner; returns how many."""
    request = pb.RebuildReplicasRequest(kind=kind.kind, overwrite=overwrite)
    rows = 0
    while True:
        try:
            page = await operator.ask(service, request, pb.RebuildReplicasResponse, deadline_seconds=PAGE_SECONDS)
        except ServiceUnavailable as error:
            raise CommandError(
                f"{service} can't take in the {kind.kind.replace('_', ' ')} of {kind.owner} after {rows} rows: one of "
                "the two, or a database of theirs, does not answer; repeat it once `makeready status` shows both."
            ) from error
        rows += page.rows
        progress.update(page.rows)
        if not page.HasField("next"):
            return rows
        request.after.CopyFrom(page.next)


@contextlib.contextmanager
def _progress(title: str) -> Iterator[Any]:
    with tqdm(desc=title, unit=" rows", file=sys.stderr, disable=not sys.stderr.isatty(), leave=False) as progress:
        yield progress
