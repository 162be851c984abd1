"""`makeready-client sync`."""

from __future__ import annotations

import argparse
from pathlib import Path

from makeready_client import models
from makeready_client.client import Makeready
from makeready_client.commands.command import Command, UsageError, say, warn_of_retry
from makeready_client.mirror import Mirror
from makeready_client.sqlite import SqliteStore


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path)
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument("--sqlite", action="store_true", help="DIR/makeready.sqlite, a table for each kind")
    form.add_argument("--jsonl", action="store_true", help="beside that DIR/KIND.jsonl, a record on each line")
    parser.add_argument("--kinds", metavar="KIND,…", help=f"only these of {', '.join(models.KINDS)}")
    parser.add_argument("--follow", action="store_true", help="go on until Ctrl-C (with --sqlite)")


def sync(client: Makeready, arguments: argparse.Namespace) -> int:
    """Brings the copy in step."""
    if arguments.follow and not arguments.sqlite:
        raise UsageError("--follow goes with --sqlite")
    kinds = arguments.kinds.split(",") if arguments.kinds else models.KINDS
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    store = SqliteStore(folder / "makeready.sqlite")
    try:
        mirror = Mirror(client, store, kinds=kinds)
        company = client.whoami().company
        if not store.belongs_to(company.id):
            raise UsageError(f"{folder} has the records of another company; name another folder")
        came = mirror.run()
        for kind, count in came.items():
            say(f"{kind:12} {count:8} came  {store.count(kind):8} in all")
            file = folder / f"{kind}.jsonl"
            if arguments.jsonl and (count or not file.exists()):
                store.write_lines(kind, file)
        if arguments.follow:
            mirror.follow(on_retry=warn_of_retry)
    finally:
        store.close()
    return 0


SYNC = Command(
    "sync",
    "keep a copy of all records in a folder",
    sync,
    _arguments,
    "Brings a copy of the records in step: the first time whole, then only what has changed.",
)
