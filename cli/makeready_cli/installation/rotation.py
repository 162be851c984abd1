"""The next generation of secrets, step by step.

Keys are in rings, which may have several: the next key joins (`add`), then is the one that signs or seals (`use`), then
the old one leaves (`drop`). Processes before and after a step accept each other's work, so a roll-out between two steps
refuses nothing. The files say which step is due. Passwords have one value at a time: they change in one step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chassis.auth.identity import make_key, make_keys
from makeready_cli.errors import CommandError
from makeready_cli.installation.folder import ISSUERS, RING_FILE, RINGS, WITH_DATABASES, lines, text, values, write
from makeready_cli.installation.making import connections_of, new_key, new_password, write_databases_sql

ADDED, USED, DROPPED, CHANGED = "added", "used", "dropped", "changed"
IDENTITY = "identity-"
KEYS = {ring: service for service, rings in RINGS.items() for ring in rings}
"""By ring, the service whose file has it."""
# Rings whose old keys open what backups hold.
NEEDED_BY_BACKUPS = ("totp-keys", "vault-keys")
# What must have happened before an old key may leave.
BEFORE_DROPPING = {
    "cursor-keys": "a day has passed",
    "key-check-secrets": "every pod has rolled",
    "totp-keys": "everybody has signed in with a code since, or may need a recovery code",
    "vault-keys": "`makeready vault reseal` has ended with 0",
}


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a step did. It names no value."""

    name: str
    step: str
    next: str
    """What the operator does now, a few sentences."""


def names() -> tuple[str, ...]:
    """What can be rotated."""
    passwords = ("nats", "valkey", *(f"database-{name}" for name in WITH_DATABASES), "database-owners")
    return (*(f"{IDENTITY}{name}" for name in ISSUERS), *KEYS, *passwords)


def rotate(folder: Path, name: str, *, drop_old: bool = False, at_once: bool = False) -> Rotated:
    """Takes the step that is due.

    drop_old: the step that ends a rotation is taken only with it. at_once: all steps, for a key that was stolen. Raises
    CommandError and OSError.
    """
    if name.startswith(IDENTITY):
        return _rotate_keys(name, _Identity(folder, name.removeprefix(IDENTITY)), drop_old, at_once)
    if name in KEYS:
        return _rotate_keys(name, _Ring(folder, name), drop_old, at_once)
    if drop_old:
        raise CommandError(f"{name} has one value at a time: there is no old one to drop.")
    if name == "nats":
        _change_passwords(folder, "nats")
        _change_passwords(folder, "nats-users")
        return Rotated(name, CHANGED, "Apply. Events wait while servers and clients roll; requests do not.")
    if name == "valkey":
        _change_passwords(folder, "valkey")
        return Rotated(name, CHANGED, "Apply. Each gateway counts by itself until it has rolled.")
    changed = (
        [f"{service}-owner" for service in WITH_DATABASES] if name == "database-owners" else [name.split("-", 1)[1]]
    )
    connections = connections_of(folder)
    for service in changed:
        _change_database(folder, service)
    write_databases_sql(folder, connections)
    if name == "database-owners":
        return Rotated(name, CHANGED, "Run databases.sql, then apply the migrations. No pod that serves has these.")
    return Rotated(
        name,
        CHANGED,
        "Run databases.sql and apply at once: until its pods have rolled they keep the connections that they have, "
        "and can open no others.",
    )


class _Identity:
    """The key of an issuer: its file, and those that are to sign next or have signed before."""

    backups_need_it = False
    before_dropping = "a minute has passed"
    works = "signs"

    def __init__(self, folder: Path, issuer: str) -> None:
        self._folder, self._issuer = folder / "identity", issuer
        self._now, self._next, self._old = (self._folder / f"{issuer}{suffix}.jwk" for suffix in ("", "-next", "-old"))
        text(self._now)

    @property
    def due(self) -> str:
        if self._next.exists():
            # A run that was killed before it had published the key goes on.
            is_published = json.loads(text(self._next))["kid"] in text(self._folder / RING_FILE)
            return USED if is_published else ADDED
        return DROPPED if self._old.exists() else ADDED

    def add(self) -> None:
        if not self._next.exists():
            make_key(self._next, self._issuer)
        self._publish()

    def use(self) -> None:
        # In this order a run that is killed in between can be repeated.
        write(self._old, text(self._now))
        self._next.rename(self._now)
        self._publish()

    def drop(self) -> None:
        self._old.unlink()
        self._publish()

    def _publish(self) -> None:
        make_keys(self._folder, [])


class _Ring:
    """A ring of keys in the file of a service: ID:KEY, separated by commas; the first one seals, all open."""

    works = "seals"

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name, self._service = folder, name, KEYS[name]
        self.backups_need_it = name in NEEDED_BY_BACKUPS
        self.before_dropping = BEFORE_DROPPING[name]
        ring = values(folder, self._service).get(name, "")
        self._keys = dict(entry.split(":", 1) for entry in ring.split(",") if ":" in entry)
        if not self._keys:
            raise CommandError(f"{folder / self._service}.env has no {name}; `makeready secrets init` makes one.")

    @property
    def due(self) -> str:
        if len(self._keys) == 1:
            return ADDED
        return DROPPED if next(iter(self._keys)) == self._newest else USED

    @property
    def _newest(self) -> str:
        return max(self._keys, key=_generation)

    def add(self) -> None:
        self._write({**self._keys, f"k{_generation(self._newest) + 1}": new_key()})

    def use(self) -> None:
        newest = self._newest
        self._write({newest: self._keys[newest]} | self._keys)

    def drop(self) -> None:
        (newest, key), *old = self._keys.items()
        if self.backups_need_it:
            path = self._folder / "retired.env"
            kept = path.read_text() if path.exists() else ""
            new = [f"{self._name}={identifier}:{value}\n" for identifier, value in old]
            write(path, kept + "".join(line for line in new if line not in kept))
        self._write({newest: key})

    def _write(self, keys: dict[str, str]) -> None:
        stored = values(self._folder, self._service)
        stored[self._name] = ",".join(f"{identifier}:{key}" for identifier, key in keys.items())
        write(self._folder / f"{self._service}.env", lines(stored))
        self._keys = keys


def _generation(key_id: str) -> int:
    """The number of an id k1, k2, …; 0 for an id that somebody chose otherwise."""
    return int(key_id[1:]) if key_id[:1] == "k" and key_id[1:].isdigit() else 0


def _rotate_keys(name: str, keys: _Identity | _Ring, drop_old: bool, at_once: bool) -> Rotated:
    steps: dict[str, Callable[[], None]] = {ADDED: keys.add, USED: keys.use, DROPPED: keys.drop}
    kept = " The old key is in retired.env: store it with the backups made before." if keys.backups_need_it else ""
    if at_once:
        if keys.backups_need_it:
            raise CommandError(f"{name}: what the old key has sealed must be sealed anew first. Take the three steps.")
        while keys.due != ADDED:  # of a rotation that has begun: any of its keys may be the stolen one
            steps[keys.due]()
        for each in steps.values():
            each()
        return Rotated(name, DROPPED, "Apply. What the old key has made is refused from then on.")
    step = keys.due
    if drop_old and step != DROPPED:
        raise CommandError(f"{name}: the old key is still in use. Run this without --drop-old, and apply.")
    if step == DROPPED and not drop_old:
        raise CommandError(f"{name}: the old key is still accepted. Once {keys.before_dropping}, add --drop-old.")
    steps[step]()
    follows = {
        ADDED: f"Apply, and wait for the roll-out. Then run this again: the next key then {keys.works}.",
        USED: f"Apply, and wait for the roll-out. Once {keys.before_dropping}, run this with --drop-old.",
        DROPPED: f"Apply.{kept}",
    }
    return Rotated(name, step, follows[step])


def _change_passwords(folder: Path, name: str) -> None:
    """Gives every user in NAME.env another password, there and in its URLs; hosts stay as they are."""
    stored = values(folder, name)
    for key in [key for key in stored if key.endswith("password")]:
        stored[key] = new_password()
        if (url := f"{key.removesuffix('password')}url") in stored:
            stored[url] = _with_password(stored[url], stored[key])
    write(folder / f"{name}.env", lines(stored))


def _change_database(folder: Path, name: str) -> None:
    """Gives a role another password, in each URL that it has."""
    password = new_password()
    stored = values(folder, name)
    of_role = {key: _with_password(url, password) for key, url in stored.items() if key.endswith("-url")}
    write(folder / f"{name}.env", lines(stored | of_role))


def _with_password(urls: str, password: str) -> str:
    """One URL, or several separated by commas, with another password."""
    return re.sub(r"(://[^:/@]*:)[^@]*@", rf"\g<1>{password}@", urls)
