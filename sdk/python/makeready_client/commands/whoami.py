"""`makeready-client whoami`."""

from __future__ import annotations

import argparse

from makeready_client.client import Makeready
from makeready_client.commands.command import Command, say


def whoami(client: Makeready, _: argparse.Namespace) -> int:
    """Prints the company and the key."""
    caller = client.whoami()
    company, key = caller.company, caller.key
    say(f"company  {company.id}  {company.name}  {company.timezone}")
    say(f"key      {key.id}  {key.name}  {key.prefix}…  scope {key.scope}")
    say(f"address  {client.settings.base_url}")
    return 0


WHOAMI = Command("whoami", "the key's company and scope", whoami)
