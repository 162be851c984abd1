"""Hostile fields for every write: values of every type, texts at their caps, dates that do not exist."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.examples import is_whole

from . import hostile_bodies as bad
from .hostile_bodies import Body, Case, Path
from .hostile_writes import SUCCESS, World, every_write, is_400, schema_at
from .system import Answer

pytestmark = pytest.mark.usefixtures("no_faults")


def literals(kind: str, number: int) -> tuple[bytes, ...]:
    """The literals of a JSON Schema type for a body's field of this number: every second one in the profile `ci`, the
    others for the field after it."""
    return bad.LITERALS[kind] if is_whole() else bad.LITERALS[kind][number % 2 :: 2] or bad.LITERALS[kind]


@every_write
def test_a_field_of_another_type(world: World, write: str) -> None:
    def cases() -> Iterator[Case]:
        for number, path in enumerate(bad.fields(body)):
            schema = schema_at(write, path)
            fitting = {schema["type"]} | ({"integer"} if schema["type"] == "number" else set())
            fitting |= {"null"} if path[-1] not in required(write, path) else set()
            for kind in bad.LITERALS:
                if kind not in fitting:
                    for literal in literals(kind, number):
                        if schema["type"] == "integer" and kind == "number" and is_whole_number(literal):
                            continue
                        yield f"{path} {literal[:30]!r}", bad.filled(body, path, literal)

    for body in world.bodies(write):
        world.refuses(write, body, cases(), is_400_or_names_no_event)


@every_write
def test_an_integer_written_as_a_number_with_a_point(world: World, write: str) -> None:
    """It is an integer to JSON Schema, and so to the published document; the same request as without the point."""
    bodies = world.bodies(write)
    for body in bodies:
        for path in bad.fields(body):
            if schema_at(write, path)["type"] != "integer" or bad.value_at(body, path) is None:
                continue
            number, once, at = bad.value_at(body, path), next(world.once), world.path(write)
            key = world.key(2)
            first = world.send(write, at, key, bad.filled(body, path, b"%d.0" % number), once)
            again = world.send(write, at, key, bad.filled(body, path, b"%de0" % number), once)
            assert (first.status, again.status) == (SUCCESS[write], SUCCESS[write]), (path, first, again)
            assert again.body == first.body and again.headers["X-Idempotent-Replay"] == "1"
            world.answered[write] += 1


def is_whole_number(literal: bytes) -> bool:
    """1.0 is an integer."""
    return literal.endswith(b".0") or float(literal).is_integer()


def required(write: str, path: Path) -> list[str]:
    """The required fields next to the path's last step; an array entry counts as required."""
    last = path[-1]
    return [str(last)] if isinstance(last, int) else schema_at(write, path[:-1])["required"]


def is_400_or_names_no_event(name: str, answer: Answer) -> bool:
    return is_400(name, answer) or ("events" in name and answer.code == "events_empty")


@every_write
def test_a_field_that_is_missing(world: World, write: str) -> None:
    def cases() -> Iterator[Case]:
        for path, members in bad.objects(body):
            for key in members.keys() & set(schema_at(write, path)["required"]):
                less = bad.raw({name: value for name, value in members.items() if name != key})
                yield f"{path} {key}", bad.filled(body, path, less) if path else less
        if schema_at(write, ())["required"]:
            yield "{}", b"{}"

    for body in filter(None, world.bodies(write)):
        world.refuses(write, body, cases(), is_400_or_names_no_event)


@every_write
def test_unknown_keys(world: World, write: str) -> None:
    def expected(name: str, answer: Answer) -> bool:
        return answer.code == "invalid_request" and answer.status == (422 if write.startswith("PATCH") else 400)

    for body in world.bodies(write):
        world.refuses(write, body, bad.unknown_keys(body), expected)


@every_write
def test_dates_and_instants_that_do_not_exist(world: World, write: str) -> None:
    def cases() -> Iterator[Case]:
        texts = {"date": bad.DATES, "date-time": bad.INSTANTS}
        for path in bad.fields(body):
            for text in texts.get(schema_at(write, path).get("format", ""), ()):
                yield f"{path} {text!r}", bad.filled(body, path, bad.raw(text))

    for body in world.bodies(write):
        world.refuses(write, body, cases(), is_400)


@every_write
@pytest.mark.parametrize("day", ["0001-01-01", "1582-10-10", "1900-02-28", "2000-02-29", "9999-12-31"])
def test_the_first_day_and_the_last_are_days(world: World, write: str, day: str) -> None:
    """They are served as they were sent."""
    for body in world.bodies(write):
        dates = [path for path in bad.fields(body) if schema_at(write, path).get("format") == "date"]
        if not dates:
            continue
        for date in dates:
            body[str(date[0])] = day
        key = world.key(2)
        answer = world.send(write, world.path(write), key, bad.raw(body), next(world.once))
        assert answer.status == 201, answer
        turn = world.system.get(f"/turns/{answer.json['entity_id']}", key).json
        answered = {name: answer.json[name] for name in ("move_in_date", "move_out_date")}
        assert answered == {name: turn[name] for name in answered} and day in answered.values()
        if answer.json["lease"]:
            assert (answer.json["lease"]["start_date"], answer.json["lease"]["end_date"]) == (day, day)


@every_write
def test_words_that_are_not_in_their_enum(world: World, write: str) -> None:
    def cases() -> Iterator[Case]:
        for path in bad.fields(body):
            for word in schema_at(write, path).get("enum", [])[:3]:
                for text in (word.upper(), word.lower(), f" {word}", f"{word} ", f"{word}\u200b", "", "\u202e" + word):
                    if text not in schema_at(write, path)["enum"]:
                        yield f"{path} {text!r}", bad.filled(body, path, bad.raw(text))

    def expected(_name: str, answer: Answer) -> bool:
        return answer.status == 422 and answer.code in ("invalid_request", "events_unknown_key")

    for body in world.bodies(write):
        world.refuses(write, body, cases(), expected)


@every_write
def test_titles_of_which_nothing_can_be_seen(world: World, write: str) -> None:
    """Blanks, control characters and zero-width characters alone."""
    texts = ("", " \t\n", "\x01\x1f\x7f", "\x85", "\u200b", "\u200b \u2060\ufeff", "\u00ad\u202e", "\x07 \u200d")

    def cases() -> Iterator[Case]:
        for path in bad.fields(body):
            if path[-1] == "title":
                for text in texts:
                    yield f"{path} {text!r}", bad.filled(body, path, bad.raw(text))

    for body in world.bodies(write):
        world.refuses(write, body, cases(), is_400)


@every_write
def test_values_of_the_right_type_are_answered(world: World, write: str) -> None:
    """They are accepted or refused, and never cause a fault."""
    for body in world.bodies(write):
        for number, path in enumerate(bad.fields(body)):
            kind = schema_at(write, path)["type"]
            for literal in (*literals(kind, number), *((b"null",) if path[-1] not in required(write, path) else ())):
                answer = world.send(
                    write, world.path(write), world.key(1), bad.filled(body, path, literal), next(world.once)
                )
                assert answer.status in (SUCCESS[write], 400, 404, 422), (path, literal[:50], answer)
                if kind == "integer" and literal != b"null" and not 0 < int(literal[:4000]) < 2**63:
                    assert answer.status in (404, 422), (path, literal[:50], answer)
                world.answered[write] += 1


@every_write
def test_a_text_may_have_as_many_characters_as_its_cap_says_whatever_they_are(world: World, write: str) -> None:
    """Characters are code points. One more is refused with a message that names the field and its cap."""
    for body in world.bodies(write):
        longest = {path: schema_at(write, path)["maxLength"] for path in bad.fields(body) if has_cap(write, path)}
        for path, most in longest.items():
            for name, sent in bad.long_texts(body, path, most):
                taken = world.send(write, world.path(write), world.key(1), sent, next(world.once))
                assert taken.status == SUCCESS[write], (path, name, taken)

        def cases(longest: dict[Path, int] = longest, body: Body = body) -> Iterator[Case]:
            for path, most in longest.items():
                yield from bad.long_texts(body, path, most + 1)

        def expected(name: str, answer: Answer, longest: dict[Path, int] = longest) -> bool:
            (path,) = (path for path in longest if name.startswith(f"{path}"))
            if path == ("destination_url",):
                return (answer.status, answer.code) == (422, "invalid_destination_url")
            message = f"{bad.spelled(path)} must be at most {longest[path]} characters."
            status = 422 if path == ("title",) else 400
            return (answer.status, answer.code, answer.json["error"]["message"]) == (status, "invalid_request", message)

        world.refuses(write, body, cases(), expected)


def has_cap(write: str, path: Path) -> bool:
    schema = schema_at(write, path)
    return "maxLength" in schema and "enum" not in schema
