"""Who may call an RPC, as the options of its proto say: kinds of callers, the scope of a key, names of services."""

from __future__ import annotations

from google.protobuf.descriptor import MethodDescriptor

from chassis.auth.identity import INTEGRATION, KINDS, SERVICE, Identity, IdentityError
from makeready.common.v1 import options_pb2

_SCOPES = options_pb2.AskedScope.DESCRIPTOR.values_by_number
# The scopes of keys that open what asks for a scope (spec 5.4), by the asked scope's name.
OPENED_BY: dict[str, frozenset[str]] = {
    value.GetOptions().Extensions[options_pb2.label]: frozenset(value.GetOptions().Extensions[options_pb2.opened_by])
    for number, value in _SCOPES.items()
    if number
}


def asked_scope(rpc: MethodDescriptor) -> str:
    """The scope that an RPC asks of an integration: a key of `OPENED_BY`; empty if no integration may call it."""
    found: str = _SCOPES[rpc.GetOptions().Extensions[options_pb2.scope]].GetOptions().Extensions[options_pb2.label]
    return found


class Access:
    """The rules of one RPC. Its proto must name kinds, a scope for integrations, and names for services."""

    def __init__(self, rpc: MethodDescriptor) -> None:
        options = rpc.GetOptions().Extensions
        self.kinds = frozenset(kind for kind, number in KINDS.items() if number in options[options_pb2.allowed])
        self.services = frozenset(options[options_pb2.services])
        self._scope = asked_scope(rpc)
        assert self.kinds, f"{rpc.full_name} names no kind that may call it"
        assert (INTEGRATION in self.kinds) == bool(self._scope), f"{rpc.full_name}: a scope is for integrations"
        assert (SERVICE in self.kinds) == bool(self.services), f"{rpc.full_name}: names of services are for services"

    def check(self, who: Identity) -> None:
        """Raises IdentityError if the caller may not call the RPC."""
        if who.kind not in self.kinds:
            raise IdentityError(f"a {who.kind} may not call this")
        if who.kind == SERVICE and who.issuer not in self.services:
            raise IdentityError(f"{who.issuer} may not call this")
        if who.kind == INTEGRATION and who.scope not in OPENED_BY[self._scope]:
            raise IdentityError(f"a key of this scope may not call this; it asks for {self._scope}")
