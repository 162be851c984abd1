"""Hostile bodies for every write: each is refused in the envelope, nothing is written, no Idempotency-Key is stored."""

from __future__ import annotations

import pytest

from . import hostile_bodies as bad
from .hostile_writes import DOCUMENT, SUCCESS, VALID, WRITES, World, every_write, is_400
from .system import System

pytestmark = pytest.mark.usefixtures("no_faults")


def test_no_write_is_forgotten(system: System) -> None:
    assert system.contract is not None
    assert system.contract.document["paths"].keys() == DOCUMENT["paths"].keys()
    assert set(WRITES) == set(VALID)


@every_write
def test_bodies(world: World, write: str) -> None:
    """Every kind of bad body in one run: reading all records before and after costs more than sending them."""
    for body in world.bodies(write):
        cases = [(f"{kind}: {name}", sent) for kind, make in bad.NOT_JSON.items() for name, sent in make(body)]
        world.refuses(write, body, cases, is_400)


@every_write
def test_what_headers_say_of_a_body_is_not_believed(world: World, write: str) -> None:
    """Content-Type and Content-Encoding are ignored: a valid body is accepted with any of them."""
    for name, values in {
        "Content_Type": ("text/plain", "application/xml", "x/y", "application/json; charset=utf-16", "", "json"),
        "Content_Encoding": ("gzip", "deflate", "br", "zstd", "identity", "gzip, gzip"),
    }.items():
        for value in values:
            body = bad.raw(world.bodies(write)[0])
            taken = world.send(write, world.path(write), world.key(1), body, next(world.once), **{name: value})
            assert taken.status == SUCCESS[write], (name, value, taken)


@every_write
def test_a_body_of_exactly_the_longest_size_is_taken(world: World, write: str) -> None:
    for body in world.bodies(write):
        for whole in (bad.raw(body).ljust(bad.LONGEST), bad.raw(body).rjust(bad.LONGEST)):
            taken = world.send(write, world.path(write), world.key(1), whole, next(world.once))
            assert taken.status == SUCCESS[write], taken
