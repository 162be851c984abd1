"""The contract as the fake reads it: `contract.json`, which `make openapi` makes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any

import msgspec

Schema = Mapping[str, Any]


@functools.cache
def contract() -> Schema:
    """All of it."""
    schema: Schema = msgspec.json.decode((resources.files(__package__) / "contract.json").read_bytes())
    return schema


def example(model: str) -> dict[str, Any]:
    """A new copy of the contract's example of a model. Raises ValueError if it has none."""
    examples = contract()["examples"]
    if model not in examples:
        raise ValueError(f"the contract has no example of {model}; there are {', '.join(sorted(examples))}")
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(examples[model]))
    return fields
