"""The commands of `makeready-client`: an entry each."""

from __future__ import annotations

from makeready_client.commands.assistants import MCP
from makeready_client.commands.clock import CLOCK
from makeready_client.commands.command import Command
from makeready_client.commands.deliveries import TEST_DELIVERY
from makeready_client.commands.forwarding import LISTEN, RESEND
from makeready_client.commands.logs import LOGS
from makeready_client.commands.records import RECORDS
from makeready_client.commands.sync import SYNC
from makeready_client.commands.tail import EVENTS_TAIL
from makeready_client.commands.trigger import TRIGGER
from makeready_client.commands.whoami import WHOAMI

COMMANDS: tuple[Command, ...] = (
    WHOAMI,
    *RECORDS,
    EVENTS_TAIL,
    LOGS,
    LISTEN,
    MCP,
    RESEND,
    SYNC,
    TEST_DELIVERY,
    TRIGGER,
    CLOCK,
)
GROUPS = {"list": "the records of a kind", "events": "events as they happen"}
"""The help of each first word that several commands share."""
