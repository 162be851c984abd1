"""Filters by the type of their field: those of a list that has one of each, in its service's contract."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor

from chassis.refusals import Refusal
from gateway.http.filters import canonical, filters_of, read_filters

KINDS = descriptor_pb2.FieldDescriptorProto


def request_with(name: str, kind: Any) -> Descriptor:
    """The request of a list with one filter."""
    file = descriptor_pb2.FileDescriptorProto(name="sails.proto", package="sails", syntax="proto3")
    message = file.message_type.add(name="ListSailsRequest")
    for number, field in enumerate(("after_id", "limit", name), start=1):
        message.field.add(
            name=field, number=number, label=KINDS.LABEL_OPTIONAL, type=kind if field == name else KINDS.TYPE_INT64
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool.FindMessageTypeByName("sails.ListSailsRequest")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False)])
def test_a_boolean_is_true_or_false(text: str, value: bool) -> None:
    filters = filters_of(request_with("is_torn", KINDS.TYPE_BOOL))
    (query_filter,) = filters
    assert (query_filter.name, query_filter.is_boolean, query_filter.labels) == ("is_torn", True, ())
    values = read_filters(filters, {"is_torn": text})
    assert values == {"is_torn": value}
    assert canonical(values) == f"is_torn={value}"


@pytest.mark.parametrize("text", ["True", "TRUE", "1", "0", "yes", "true ", "null"])
def test_any_other_word_is_refused(text: str) -> None:
    filters = filters_of(request_with("is_torn", KINDS.TYPE_BOOL))
    with pytest.raises(Refusal) as refused:
        read_filters(filters, {"is_torn": text})
    answer = (refused.value.status, refused.value.code, refused.value.message, refused.value.field)
    assert answer == (400, "invalid_request", "is_torn must be true or false.", "is_torn")


@pytest.mark.parametrize(("text", "is_refused"), [("4xx", False), ("x" * 101, True), ("a\nb", True)])
def test_a_text_is_short_and_printable(text: str, is_refused: bool) -> None:
    filters = filters_of(request_with("colour", KINDS.TYPE_STRING))
    if is_refused:
        with pytest.raises(Refusal, match="printable"):
            read_filters(filters, {"colour": text})
    else:
        assert read_filters(filters, {"colour": text}) == {"colour": text}


@pytest.mark.parametrize("kind", [KINDS.TYPE_BYTES, KINDS.TYPE_DOUBLE, KINDS.TYPE_INT32])
def test_a_field_of_another_type_is_no_filter(kind: Any) -> None:
    with pytest.raises(AssertionError, match="colour: no such filter"):
        filters_of(request_with("colour", kind))
