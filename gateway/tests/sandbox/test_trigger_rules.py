"""The events of triggers, and the record that each may name."""

from __future__ import annotations

import typing

import pytest

from chassis.refusals import Refusal
from gateway.sandbox.triggers import rules
from gateway.sandbox.triggers.causes import CAUSES
from gateway.sandbox.triggers.records import TriggerCreate
from makeready.common.v1 import options_pb2
from makeready.events.v1 import events_pb2

KEYS = {value.GetOptions().Extensions[options_pb2.label] for value in events_pb2.EventKey.DESCRIPTOR.values[1:]}
RECORDS: tuple[str, ...] = typing.get_args(rules.RecordField)


def test_each_public_event_has_a_trigger() -> None:
    assert set(typing.get_args(rules.EventKey)) == set(rules.RECORD_FIELDS) == set(CAUSES) == KEYS
    assert {"event", *RECORDS} == set(TriggerCreate.__struct_fields__)


@pytest.mark.parametrize("event", typing.get_args(rules.EventKey))
def test_a_trigger_names_the_record_of_its_event_or_none(event: rules.EventKey) -> None:
    takes = rules.RECORD_FIELDS[event]
    rules.check_record(event, [])
    rules.check_record(event, [takes])
    for other in set(RECORDS) - {takes}:
        with pytest.raises(Refusal) as refused:
            rules.check_record(event, [takes, other])
        assert (refused.value.status, refused.value.field) == (400, other)
