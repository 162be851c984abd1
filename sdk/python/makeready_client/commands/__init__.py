"""The commands of `makeready-client`: an entry each."""

from __future__ import annotations

from makeready_client.commands.command import Command
from makeready_client.commands.deliveries import TEST_DELIVERY
from makeready_client.commands.listen import LISTEN
from makeready_client.commands.sync import SYNC
from makeready_client.commands.whoami import WHOAMI

COMMANDS: tuple[Command, ...] = (
    WHOAMI,
    LISTEN,
    SYNC,
    TEST_DELIVERY,
)
