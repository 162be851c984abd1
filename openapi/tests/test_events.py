"""The described events equal those of the contract."""

from __future__ import annotations

from makeready.common.v1.options_pb2 import label
from makeready.events.v1.events_pb2 import EventKey
from reference.events import EVENTS


def test_every_event_of_the_contract_is_described_in_its_order() -> None:
    assert [event.key for event in EVENTS] == [
        value.GetOptions().Extensions[label] for value in EventKey.DESCRIPTOR.values[1:]
    ]
