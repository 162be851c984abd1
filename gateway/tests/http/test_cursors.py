"""Cursors over their whole space: an issued one verifies, everything else is no cursor."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from gateway.http.cursors import Cursors

ids = st.integers(0, 2**63 - 1)
bindings = st.binary(max_size=60)
rings = st.dictionaries(
    st.text("abcXYZ019", min_size=1, max_size=5), st.binary(min_size=16, max_size=40), min_size=1, max_size=4
)


@given(rings, ids, bindings)
def test_a_cursor_contains_the_id_that_it_was_issued_for(
    ring: dict[str, bytes], after_id: int, bound_to: bytes
) -> None:
    cursors = Cursors(ring)
    assert cursors.after_id(cursors.issue(after_id, bound_to), bound_to) == after_id


@given(rings, ids, bindings, bindings)
def test_a_cursor_is_bound(ring: dict[str, bytes], after_id: int, bound_to: bytes, other: bytes) -> None:
    cursors = Cursors(ring)
    decoded = cursors.after_id(cursors.issue(after_id, bound_to), other)
    assert decoded == (after_id if other == bound_to else None)


@given(rings, ids, bindings, st.data())
def test_no_change_of_a_single_character_makes_another_cursor(
    ring: dict[str, bytes], after_id: int, bound_to: bytes, data: st.DataObject
) -> None:
    cursors = Cursors(ring)
    issued = cursors.issue(after_id, bound_to)
    place = data.draw(st.integers(0, len(issued) - 1))
    character = data.draw(st.characters().filter(lambda other: other != issued[place]))
    changed = issued[:place] + character + issued[place + 1 :]
    assert cursors.after_id(changed, bound_to) is None
    assert cursors.after_id(issued[:place] + issued[place + 1 :], bound_to) is None
    assert cursors.after_id(issued[:place] + character + issued[place:], bound_to) is None


@given(rings, st.text(max_size=60) | st.from_regex(r"[a-c019]{1,3}\.[A-Za-z0-9_+/=-]{0,40}", fullmatch=True))
def test_no_other_text_is_a_cursor(ring: dict[str, bytes], text: str) -> None:
    assert Cursors(ring).after_id(text, b"") is None


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16), ids, bindings)
def test_keys_rotate(old: bytes, new: bytes, after_id: int, bound_to: bytes) -> None:
    """The old key moves behind the new one; its cursors verify until it leaves the ring."""
    before = Cursors({"1": old}).issue(after_id, bound_to)
    both = Cursors({"2": new, "1": old})
    assert both.after_id(before, bound_to) == after_id
    assert both.issue(after_id, bound_to).startswith("2.")
    assert Cursors({"2": new}).after_id(before, bound_to) is None


@given(ids, bindings)
def test_a_cursor_fits_a_query_unencoded_and_shows_no_binding(after_id: int, bound_to: bytes) -> None:
    issued = Cursors({"1": b"k" * 32}).issue(after_id, bound_to)
    assert all(character.isalnum() or character in "._-" for character in issued)
    assert len(base64.urlsafe_b64decode(issued[2:])) == 24


@given(rings, st.binary(min_size=1, max_size=64), bindings)
def test_a_cursor_contains_the_position_that_it_was_issued_for(
    ring: dict[str, bytes], position: bytes, bound_to: bytes
) -> None:
    cursors = Cursors(ring)
    issued = cursors.issue_at(position, bound_to)
    assert cursors.position(issued, bound_to) == position
    assert cursors.position(issued, bound_to + b"x") is None
    assert all(character.isalnum() or character in "._-" for character in issued)
    # A list has no position but an id of 8 bytes.
    assert (cursors.after_id(issued, bound_to) is None) == (len(position) != 8)
    for changed in (issued + "=", issued[:-1] + chr(ord(issued[-1]) ^ 1), issued[:-1], issued + "A"):
        assert cursors.position(changed, bound_to) is None
