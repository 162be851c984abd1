"""Who may call an RPC, as the options of its proto say: kinds of callers, the scope of a key, names of services."""

from __future__ import annotations

import time

from google.protobuf.descriptor import MethodDescriptor

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, KINDS, SERVICE, STAFF, Identity, IdentityError
from chassis.refusals import Refusal
from makeready.common.v1 import options_pb2

STEP_UP_SECONDS = 600
"""How long a person's confirmation opens the RPCs that ask for one."""
STEP_UP_AHEAD_SECONDS = 300
"""How far a confirmation may be ahead: further, and it is of clocks that were set back since."""
_PEOPLE = (ADMINISTRATOR, STAFF)
_SCOPES = options_pb2.AskedScope.DESCRIPTOR.values_by_number
# The scopes of keys that open what asks for a scope (spec 5.4), by the asked scope's name.
OPENED_BY: dict[str, frozenset[str]] = {
    value.GetOptions().Extensions[options_pb2.label]: frozenset(value.GetOptions().Extensions[options_pb2.opened_by])
    for number, value in _SCOPES.items()
    if number
}


def asked_scope(rpc: MethodDescriptor) -> str:
    """The scope that an RPC asks of an integration: a key of `OPENED_BY`; empty if no integration may call it."""
    scope: str = _SCOPES[rpc.GetOptions().Extensions[options_pb2.scope]].GetOptions().Extensions[options_pb2.label]
    return scope


class Access:
    """The rules of one RPC. Its proto must name kinds, a scope for integrations, and names for services."""

    def __init__(self, rpc: MethodDescriptor) -> None:
        options = rpc.GetOptions().Extensions
        self.kinds = frozenset(kind for kind, number in KINDS.items() if number in options[options_pb2.allowed])
        self.services = frozenset(options[options_pb2.services])
        self.step_up: bool = options[options_pb2.step_up]
        self._service: str = rpc.containing_service.full_name
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

    def confirm(self, who: Identity) -> None:
        """Raises Refusal 403 if the caller is a person who has something to do before the call: add the second factor
        that the company requires, or confirm who they are."""
        if who.kind not in _PEOPLE:
            return
        if who.only_service and who.only_service != self._service:
            raise Refusal(
                403, "second_factor_required", "The company requires a second factor; add one to your account first."
            )
        if self.step_up and not -STEP_UP_AHEAD_SECONDS <= time.time() - who.stepped_up_at <= STEP_UP_SECONDS:
            raise Refusal(403, "step_up_required", "Confirm who you are first; a confirmation is good for 10 minutes.")
