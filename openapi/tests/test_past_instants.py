"""Which inputs may lie in the future: none that says when something happened."""

from __future__ import annotations

import datetime
import importlib
import pkgutil
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chassis.records import bodies
from makeready.common.v1 import options_pb2

PACKAGES = ("gateway", "svc_catalog", "svc_occupancy", "svc_tickets", "svc_webhooks")
HAPPENED = {"created_at", "updated_at", "completed_at", "cancelled_at", "onboarded_at", "retired_at"}
# Instants that an input may set ahead of the clock: the period of a bill, the publication of a notice, and the time
# that another system states for its feed.
MAY_LIE_AHEAD = {"period_start", "period_end", "published_at", "occupancy_fed_at"}


def structs() -> Iterator[type[msgspec.Struct]]:
    """The Structs of the services' request bodies, commands and import rows."""
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            if module.name.rpartition(".")[2] != "inputs":
                continue
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.name:
                    yield value


def instants_of(struct: type[msgspec.Struct]) -> set[str]:
    hints = typing.get_type_hints(struct)
    return {
        field.encode_name
        for field in msgspec.structs.fields(struct)
        if datetime.datetime in (hints[field.name], *typing.get_args(hints[field.name]))
    }


STRUCTS = [struct for struct in structs() if instants_of(struct)]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_every_instant_of_an_input_is_refused_in_the_future_or_named_here(struct: type[msgspec.Struct]) -> None:
    past = set(bodies.past_fields(struct))
    assert instants_of(struct) - MAY_LIE_AHEAD == past
    assert past <= HAPPENED


def test_the_walk_finds_the_inputs() -> None:
    assert {name for struct in STRUCTS for name in instants_of(struct)} == HAPPENED | MAY_LIE_AHEAD
    assert {"TicketRow", "PmTaskRow", "TurnRow", "TurnTaskRow", "VendorRow", "StaffRow", "ReadingRow"} <= {
        struct.__name__ for struct in STRUCTS
    }


def requests() -> Iterator[Any]:
    """The request messages of all RPCs."""
    folder = Path(options_pb2.__file__).parents[2]
    for file in sorted(folder.rglob("*_pb2.py")):
        module = importlib.import_module(".".join(("makeready", *file.relative_to(folder).with_suffix("").parts)))
        for service in module.DESCRIPTOR.services_by_name.values():
            yield from (rpc.input_type for rpc in service.methods)


def test_no_request_sets_such_an_instant_outside_the_structs() -> None:
    """Commands take their fields from the Structs above. A field of a message would need a check of its own."""
    messages = list(requests())
    assert len(messages) > 50
    assert [
        f"{message.full_name}.{name}" for message in messages for name in HAPPENED & {*message.fields_by_name}
    ] == []
