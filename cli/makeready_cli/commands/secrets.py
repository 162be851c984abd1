"""`makeready secrets …`: the secrets of an installation on Kubernetes. They need no running system."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from makeready_cli.errors import CommandError, UsageError
from makeready_cli.installation import making, manifests, rotation
from makeready_cli.installation.folder import secrets_of, write
from makeready_cli.output import Answer, Record
from makeready_cli.parsers import Commands, Parser, command, group

PREFIX = re.compile(r"((?!pg_)[a-z][a-z0-9_]{0,31})?")
NAMESPACE = "makeready"


def add(commands: Commands) -> None:
    verbs = group(commands, "secrets", "make, rotate and hand over the secrets of an installation on Kubernetes")
    _add_init(verbs)
    _add_rotate(verbs)
    _add_manifests(verbs)


def _add_init(verbs: Commands) -> None:
    parser = _verb(
        verbs,
        "init",
        "make the secrets that a folder lacks",
        "Makes keys, passwords, URLs, and databases.sql for the administrator of the PostgreSQL server, in a folder "
        "that kustomize reads. What the folder has stays as it is, so a second run needs no options and adds only what "
        "is missing. Options change what is there: servers, certificates and limits, never a password or a key. It "
        "prints no secret.",
    )
    parser.add_argument("--database-host", metavar="HOST[:PORT]", help="of the PostgreSQL server, or of its pooler")
    parser.add_argument(
        "--database-direct-host", metavar="HOST[:PORT]", help="of the PostgreSQL server, if the other is a pooler's"
    )
    parser.add_argument("--database-ca", type=Path, metavar="FILE", help="certificates that vouch for it, in PEM")
    parser.add_argument(
        "--database-prefix",
        metavar="PREFIX",
        help="of the names of databases and roles, so that installations can share a server; it cannot change",
    )
    parser.add_argument(
        "--role-connections",
        metavar="N",
        type=int,
        help=f"the connection limit of each service's role (default {making.CONNECTIONS}, or as it is)",
    )
    parser.add_argument(
        "--nats-servers",
        metavar="N",
        type=int,
        choices=tuple(making.PLACES),
        help="1, or 3 with the component nats-ha (default 1, or as they are)",
    )
    parser.set_defaults(run=init)


def _add_rotate(verbs: Commands) -> None:
    parser = _verb(
        verbs,
        "rotate",
        "take the next step of a rotation",
        "Takes the next step of a rotation and says what to do then. Keys take three steps, each with a roll-out: the "
        "next key is added, is used, and with --drop-old the old one goes. No request is refused meanwhile. Passwords "
        "take one step. It prints no secret. deploy/README.md has the order.",
    )
    parser.add_argument("name", metavar="NAME", choices=rotation.names(), help=f"one of: {', '.join(rotation.names())}")
    parser.add_argument("--drop-old", action="store_true", help="the last step: the old key goes")
    parser.add_argument(
        "--at-once", action="store_true", help="all steps, for a key that was stolen; what it made is refused at once"
    )
    parser.set_defaults(run=rotate)


def _add_manifests(verbs: Commands) -> None:
    parser = _verb(
        verbs,
        "manifests",
        "print Secrets of Kubernetes, or write them to a file",
        "Prints all Secrets, and the ConfigMap with the public keys, as manifests: for `kubectl apply -f -`, or for a "
        "tool that seals or encrypts them. With --name, the keys and values of one Secret as JSON: for a secret store.",
    )
    parser.add_argument("--name", metavar="SECRET", help="one Secret alone, as a JSON object")
    parser.add_argument(
        "--namespace", metavar="NAME", default=NAMESPACE, help=f"of the manifests (default {NAMESPACE})"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="a new file, which only its owner can read")
    parser.set_defaults(run=hand_over)


def _verb(verbs: Commands, name: str, brief: str, description: str) -> Parser:
    parser = command(verbs, name, brief, description)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder of secrets")
    parser.set_defaults(needs_system=False)
    return parser


async def init(_operator: None, arguments: argparse.Namespace) -> Answer:
    """Says where the secrets are, and none of them."""
    folder: Path = arguments.folder
    if not PREFIX.fullmatch(arguments.database_prefix or ""):
        raise UsageError(
            "--database-prefix must be a to z, 0 to 9 and _, at most 32, and begin with a letter, not with pg_"
        )
    if not 2 <= (arguments.role_connections or making.CONNECTIONS) <= 10_000:
        raise UsageError("--role-connections must be from 2 to 10000")
    try:
        making.make_missing(
            folder,
            making.Wanted(
                database_host=arguments.database_host,
                database_direct_host=arguments.database_direct_host,
                database_ca=arguments.database_ca,
                database_prefix=arguments.database_prefix,
                role_connections=arguments.role_connections or making.connections_of(folder),
                nats_servers=arguments.nats_servers,
            ),
        )
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}.") from None
    sql = folder / "databases.sql"
    text = f"The secrets are in {folder}; the databases' administrator runs {sql}."
    return Answer({"folder": str(folder), "databases_sql": str(sql)}, text)


async def rotate(_operator: None, arguments: argparse.Namespace) -> Answer:
    """Says which step was taken, and what is to be done."""
    if arguments.drop_old and arguments.at_once:
        raise UsageError("give either --drop-old or --at-once")
    try:
        done = rotation.rotate(arguments.folder, arguments.name, drop_old=arguments.drop_old, at_once=arguments.at_once)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}.") from None
    step = {
        rotation.ADDED: "the next key is added",
        rotation.USED: "the next key is in use, and the old one is still accepted",
        rotation.DROPPED: "the old key is gone",
        rotation.CHANGED: "changed",
    }[done.step]
    return Answer({"name": done.name, "step": done.step, "next": done.next}, f"{done.name}: {step}. {done.next}")


async def hand_over(_operator: None, arguments: argparse.Namespace) -> Answer:
    """The only command that prints secrets."""
    value: Record
    if arguments.name is None:
        manifest_list = manifests.manifests(arguments.folder, arguments.namespace)
        value, text = {"items": manifest_list}, manifests.as_yaml(manifest_list)
    else:
        secrets = secrets_of(arguments.folder)
        if arguments.name not in secrets:
            raise CommandError(f"There is no Secret {arguments.name}; there are {', '.join(secrets)}.")
        value = dict(secrets[arguments.name])
        text = Answer(value, "").as_json()
    if arguments.output is None:
        return Answer(value, text.rstrip("\n"))
    if arguments.output.exists():
        raise CommandError(f"{arguments.output} exists already.")
    try:
        write(arguments.output, text)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}.") from None
    return Answer({"file": str(arguments.output)}, f"The secrets are in {arguments.output}.")
