"""Names of the people and keys that records and audit entries spell `administrator:7` and `caller:3`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from console.kit.rpcs import PageRpcs
from console.kit.texts import _
from makeready.identity.v1 import actors_pb2

RPC = "identity.ActorsService/BatchGetActors"
ACTORS_MAX = 500
_UNKNOWN = actors_pb2.NamedActor()
_WORDS = {"operator": _("Operator"), "": "Makeready"}


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something. kind: "administrator", "staff", "caller" for an API key, else "service" or "operator"."""

    name: str
    kind: str
    key_id: int = 0
    """The key's id, for a caller."""
    minter: str = ""
    """The name of the key's administrator, if that one is deactivated."""


class Names:
    """Actors by how records spell them; each has a name, at worst what the record says."""

    def __init__(self, actors: Mapping[str, actors_pb2.NamedActor]) -> None:
        self._actors = actors

    def __getitem__(self, actor: str) -> Actor:
        kind, _, number = actor.partition(":")
        named = self._actors.get(actor, _UNKNOWN)
        name = named.name or _WORDS.get(actor) or (f"{kind} {number}".strip() if number else actor)
        if kind in ("caller", "api_key"):
            is_left = named.HasField("administrator_active") and not named.administrator_active
            key_id = int(number) if number.isdigit() else 0
            return Actor(named.name or f"key {number}", "caller", key_id, named.administrator_name if is_left else "")
        if kind in ("administrator", "staff"):
            return Actor(name, kind)
        return Actor(name, "operator" if actor == "operator" else "service")


async def names_of(rpcs: PageRpcs, actors: Iterable[str]) -> Names:
    """One call for all; where it fails, the actors stand as the records spell them. The page's line lists RPC."""
    spelled = sorted({actor for actor in actors if ":" in actor})[:ACTORS_MAX]
    if not spelled:
        return Names({})
    response = await rpcs.panel(RPC, actors_pb2.BatchGetActorsRequest(actors=spelled))
    return Names({named.actor: named for named in response.actors} if response.ok else {})
