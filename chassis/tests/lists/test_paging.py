"""Lists that are refused when they are made: a list that would fail at a request fails when the service starts."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from google.protobuf.message import Message

from chassis.db.statements import TIME, param
from chassis.lists.paging import Inside, Pages, page_indexes

BERTH = sa.Table(
    "berth",
    sa.MetaData(),
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("company_id", sa.BigInteger, nullable=False),
    sa.Column("harbour_id", sa.BigInteger, nullable=False),
)
BERTHS = Inside("berth_id", "harbour_id", BERTH)
STATUSES = ("afloat", "ashore")
PLACES = ("harbour_id", "berth_id")
EVERY = (*PLACES, "status", "updated_since", "number")


def boats(*, indexed: tuple[str, ...] = PLACES, keys: tuple[tuple[str, ...], ...] = (("harbour_id", "number"),)) -> Any:
    """A table of boats; indexed: the places that have indexes; keys: the unique columns in a company."""
    table = sa.Table(
        "boat",
        sa.MetaData(),
        sa.Column("company_id", sa.BigInteger, primary_key=True),
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("harbour_id", sa.BigInteger, nullable=False),
        sa.Column("berth_id", sa.BigInteger),
        sa.Column("number", sa.Integer),
        sa.Column("colour", sa.Text),
        sa.Column("is_leaky", sa.Boolean),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        *(sa.UniqueConstraint("company_id", *key) for key in keys),
    )
    page_indexes(table, places=indexed)
    return table


def conditions(table: Any, *names: str) -> dict[str, Any]:
    """A condition for each of these filters."""
    columns = {name: table.c[name] for name in names if name != "updated_since"}
    by_name: dict[str, Any] = {name: column == param(name, column.type) for name, column in columns.items()}
    if "updated_since" in names:
        by_name["updated_since"] = table.c.updated_at >= param("updated_since", TIME)
    return by_name


def pages(table: Any, filters: dict[str, Any], **options: Any) -> Pages:
    arguments: dict[str, Any] = {"statuses": STATUSES, "places": PLACES, "inside": [BERTHS]} | options
    return Pages(sa.select(table.c.id), table.c.id, filters, **arguments)


def request_with(*names: str, statuses: int = len(STATUSES)) -> type[Message]:
    """The request message of a list with these filters."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="boats.proto", package="boats", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    file.enum_type.add(name="Status").value.extend(
        descriptor_pb2.EnumValueDescriptorProto(name=f"STATUS_{number}", number=number)
        for number in range(statuses + 1)
    )
    message = file.message_type.add(name="ListBoatsRequest")
    for number, name in enumerate(("after_id", "limit", *names), start=1):
        field = message.field.add(name=name, number=number, label=kinds.LABEL_OPTIONAL, type=kinds.TYPE_INT64)
        if name == "status":
            field.type, field.type_name = kinds.TYPE_ENUM, ".boats.Status"
        elif name == "updated_since":
            field.type, field.type_name = kinds.TYPE_MESSAGE, ".google.protobuf.Timestamp"
        message.oneof_decl.add(name=f"_{name}")
        field.oneof_index, field.proto3_optional = number - 1, True
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("boats.ListBoatsRequest"))


def test_a_list_that_has_all_it_needs_answers_every_set_of_its_filters() -> None:
    table = boats()
    listed = pages(table, conditions(table, *EVERY), request=request_with(*EVERY))
    for names in ((), ("harbour_id",), ("berth_id", "harbour_id", "status"), EVERY[:-1], ("harbour_id", "number")):
        assert listed.statement(frozenset(names)).parameters == {"company_id", "after_id", "rows", *names}
    # The table of berths decides, once, whether the berth lies in the harbour.
    assert "FROM berth" in listed.statement(frozenset(PLACES)).sql
    assert "berth" not in listed.statement(frozenset(["harbour_id"])).sql.replace("berth_id", "")


def test_a_request_s_filters_become_their_conditions_values() -> None:
    table, kind = boats(), request_with(*EVERY)
    listed = pages(table, conditions(table, *EVERY), request=kind)
    assert listed.filters_of(kind(after_id=7, limit=50)) == {}
    request: Any = kind(harbour_id=0, status=2)
    request.updated_since.FromJsonString("2026-03-01T12:00:00.000001Z")
    assert listed.filters_of(request) == {
        "harbour_id": 0,
        "status": "ashore",
        "updated_since": datetime.datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=datetime.UTC),
    }


def with_filters(*names: str, **options: Any) -> Callable[[], Pages]:
    table = boats(**{name: options.pop(name) for name in ("indexed", "keys") if name in options})
    return lambda: pages(table, conditions(table, *names), **options)


def with_condition(name: str, make: Callable[[Any], Any]) -> Callable[[], Pages]:
    table = boats()
    return lambda: pages(table, {name: make(table.c)})


def without_index(name: str, *filters: str) -> Callable[[], Pages]:
    table = boats()
    table.indexes.remove(next(index for index in table.indexes if index.name == name))
    return lambda: pages(table, conditions(table, *filters))


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (with_filters("colour"), "The list of boat has the filter colour, and no index for it: make it a place"),
        (with_filters("number"), "The list of boat has the filter number, and no index for it"),
        (
            with_filters("harbour_id", "number", keys=()),
            "The list of boat has the filter number, and no index for it",
        ),
        (
            with_filters("berth_id", indexed=("harbour_id",)),
            "The list of boat has no index for its filters berth_id: see `page_indexes`.",
        ),
        (without_index("boat_page_of_berth_and_status", "berth_id", "status"), "for its filters berth_id and status:"),
        (without_index("boat_page_of_status", "status"), "for its filters status:"),
        (without_index("boat_changes", "status", "updated_since"), "for its filters updated_since:"),
        (
            without_index("boat_changes_of_harbour", "harbour_id", "status", "updated_since"),
            "for its filters harbour_id and updated_since:",
        ),
        (without_index("boat_updated", "status", "updated_since"), "for its filters updated_since:"),
        # The index has the status before the instant: a list without known statuses could not walk it.
        (with_filters("updated_since"), "for its filters updated_since:"),
        (
            with_filters("status", "updated_since", statuses=()),
            "The list of boat has the filters status and updated_since: say which statuses there are.",
        ),
        (
            with_filters("is_leaky", "status", places=["is_leaky"]),
            "has the filter is_leaky, which is no id: with status or updated_since a place must be one.",
        ),
        (
            with_filters(*PLACES, inside=[]),
            "The list of boat has the filters berth_id and harbour_id: say which one lies inside the other.",
        ),
        (
            with_condition("status", lambda c: c.status == param("state", sa.Text)),
            "The list of boat has the filter status, whose condition asks for state.",
        ),
        (
            with_condition("status", lambda c: c.status == sa.literal_column("'afloat'")),
            "The list of boat has the filter status, whose condition asks for nothing.",
        ),
        (
            with_condition("harbour_id", lambda c: c.harbour_id > param("harbour_id", sa.BigInteger)),
            "The list of boat has the filter harbour_id, which is not a column of its own = a parameter.",
        ),
        (
            with_condition("berth_id", lambda _: BERTH.c.id == param("berth_id", sa.BigInteger)),
            "The list of boat has the filter berth_id, which is not a column of its own = a parameter.",
        ),
        (
            with_filters("harbour_id", request=request_with("harbour_id", "colour")),
            "ListBoatsRequest has the filter colour, and the list of boat has no condition for it.",
        ),
        (
            with_filters("harbour_id", "status", request=request_with("harbour_id")),
            "The list of boat has the filter status, and ListBoatsRequest has no field for it.",
        ),
        (
            with_filters("status", request=request_with("status", statuses=3)),
            "ListBoatsRequest has 3 values of status, and the list of boat has 2.",
        ),
    ],
)
def test_a_list_that_could_not_answer_is_refused_when_it_is_made(declare: Callable[[], Pages], sentence: str) -> None:
    with pytest.raises(TypeError) as refused:
        declare()
    assert sentence in str(refused.value)


def test_a_boolean_is_a_place_of_a_list_without_status_and_updated_since() -> None:
    table = sa.Table(
        "sail",
        sa.MetaData(),
        sa.Column("company_id", sa.BigInteger, primary_key=True),
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("is_torn", sa.Boolean, nullable=False),
    )
    page_indexes(table, places=("is_torn",))
    listed = pages(table, conditions(table, "is_torn"), places=("is_torn",), inside=[])
    assert listed.statement(frozenset(["is_torn"])).parameters == {"company_id", "after_id", "rows", "is_torn"}


def test_a_list_of_some_records_needs_indexes_of_these() -> None:
    table = boats()
    visible = table.c.colour.is_not(None)
    table.indexes.clear()
    page_indexes(table, visible=visible, places=())
    assert pages(table, conditions(table, "status"), visible=visible)
    with pytest.raises(TypeError, match="has no index for its filters status"):
        pages(table, conditions(table, "status"), visible=table.c.colour.is_(None))


def test_a_set_that_only_part_of_a_key_answers_is_refused_when_it_is_asked_for() -> None:
    table = boats()
    listed = pages(table, conditions(table, "harbour_id", "number"))
    with pytest.raises(TypeError, match="The list of boat cannot be filtered by number alone"):
        listed.statement(frozenset(["number"]))
