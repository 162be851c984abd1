"""Which companies have what only sandboxes have. Pure."""

from __future__ import annotations

from chassis.refusals import Refusal


def no_sandbox() -> Refusal:
    return Refusal(404, "not_found", "The key's company is live, and only a sandbox has this; use a sandbox's key.")
