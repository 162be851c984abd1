"""What is overdue is announced by an event of the contract."""

from __future__ import annotations

from typing import Any

import pytest

from chassis.schedule.announcing import Announcer


def test_an_event_that_the_contract_does_not_name_is_refused_when_the_service_starts() -> None:
    nothing: Any = None
    with pytest.raises(ValueError, match="EventKey"):
        Announcer("ticket.reopened", nothing, nothing, nothing, nothing, nothing)
