"""The public Structs: every record of every context, and the bodies of its writes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from types import ModuleType

import msgspec

from reference.events import Schema
from reference.structs import Structs
from reference.words import WRITES

# The package of each context's records, by the context's name in the protos.
CONTEXTS = {
    "identity": "gateway",
    "catalog": "svc_catalog",
    "tickets": "svc_tickets",
    "occupancy": "svc_occupancy",
    "webhooks": "svc_webhooks",
    # A report is the same in every context.
    "common": "chassis.reports",
}
WITHOUT_TYPE = {"ReadingResults", "Report", "SandboxClock", "SearchResults", "Whoami"}
# The command line prints it for administrators; no answer of the API contains it.
NOT_PUBLIC = {"AdministeredSubscription"}


def schemas(context: str) -> Schema:
    """The context's public shapes as JSON Schemas by name. Raises Undescribed."""
    structs = Structs()
    bodies = {write.body for write in WRITES.values()}
    # Records first: a schema that a record and a body share gets the record's name.
    for module in sorted(
        _modules(CONTEXTS[context]), key=lambda module: module.__name__.rpartition(".")[2] == "inputs"
    ):
        for name, kind in vars(module).items():
            if name in NOT_PUBLIC or not _is_struct_of(module, kind):
                continue
            if name in bodies:
                structs.body(kind)
            elif name in WITHOUT_TYPE or "entity_type" in kind.__struct_fields__:
                structs.record(kind)
    return structs.schemas


def bodies() -> dict[str, type[msgspec.Struct]]:
    """The Struct of each body of a write, by its name."""
    names = {write.body for write in WRITES.values()}
    return {
        name: kind
        for package in CONTEXTS.values()
        for module in _modules(package)
        for name, kind in vars(module).items()
        if name in names and _is_struct_of(module, kind)
    }


def document(context: str) -> Schema:
    """The file next to the context's proto."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": schemas(context)}


def _modules(package: str) -> list[ModuleType]:
    """Every `records` and `inputs` of the context, except modules of imports' rows, which are internal."""
    path = importlib.import_module(package).__path__
    module_names = sorted(module.name for module in pkgutil.walk_packages(path, f"{package}."))
    public_names = [
        name for name in module_names if re.match(r"(records|inputs)(?!\w*import)", name.rpartition(".")[2])
    ]
    return [importlib.import_module(name) for name in public_names]


def _is_struct_of(module: ModuleType, kind: object) -> bool:
    return inspect.isclass(kind) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__
