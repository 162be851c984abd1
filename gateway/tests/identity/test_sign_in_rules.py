"""The rules of signing in: delays, networks, ends of sessions, codes, lengths of passwords."""

from __future__ import annotations

import datetime

import pytest

from gateway.identity.accounts import rules

NOW = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
MINUTE, HOUR, DAY = (datetime.timedelta(**{unit: 1}) for unit in ("minutes", "hours", "days"))


def test_a_delay_begins_at_the_fifth_failure_doubles_and_ends_at_fifteen_minutes() -> None:
    seconds = [rules.delay(failures).total_seconds() for failures in range(1, 18)]
    assert seconds == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]
    assert rules.delay(10**9) == 15 * MINUTE


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.2.3.4", "10.2.3.0/24"),
        ("::ffff:10.2.3.4", "10.2.3.0/24"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("not an address", ""),
    ],
)
def test_a_network_is_a_24_or_a_64(address: str, network: str) -> None:
    assert rules.network(address) == network


@pytest.mark.parametrize(("kind", "idle", "longest"), [("administrator", 8 * HOUR, DAY), ("staff", 7 * DAY, 30 * DAY)])
def test_a_session_ends_idle_or_old(kind: str, idle: datetime.timedelta, longest: datetime.timedelta) -> None:
    second = datetime.timedelta(seconds=1)
    assert rules.idle_ends_at(kind, NOW) == NOW + idle
    assert rules.ends_at(kind, NOW) == NOW + longest
    assert not rules.has_ended(kind, last_seen_at=NOW - idle + second, ends_at=NOW + second, now=NOW)
    assert rules.has_ended(kind, last_seen_at=NOW - idle, ends_at=NOW + second, now=NOW)
    assert rules.has_ended(kind, last_seen_at=NOW, ends_at=NOW, now=NOW)


def test_a_password_alone_is_longer_than_one_with_a_second_factor() -> None:
    assert rules.password_characters("x" * 15, has_second_factor=False) == 15
    assert rules.password_characters("x" * 10, has_second_factor=True) == 10
    assert rules.password_characters("é" * 15, has_second_factor=False) == 15
    assert rules.password_characters("x" * 1000, has_second_factor=False) == 1000
    for value, has_second_factor in (("x" * 14, False), ("x" * 9, True), ("x" * 1001, True), ("", True)):
        with pytest.raises(ValueError, match="characters"):
            rules.password_characters(value, has_second_factor=has_second_factor)


def test_a_code_is_read_as_people_type_it() -> None:
    assert rules.plain_code(" 123 456 ") == "123456"
    assert rules.plain_code("abcd-EFGH-2345-6777") == "ABCDEFGH23456777"
    codes = [rules.new_recovery_code() for _ in range(200)]
    assert len(set(codes)) == 200
    for code in codes:
        assert len(rules.plain_code(code)) == 16 and len(code) == 19


def test_the_step_of_a_code_is_used_once_and_goes_only_forward() -> None:
    at = NOW.timestamp()
    step = int(at) // 30
    assert rules.totp_steps(at, last_used=0) == [step - 1, step, step + 1]
    assert rules.totp_steps(at, last_used=step) == [step + 1]
    assert rules.totp_steps(at, last_used=step + 1) == []


@pytest.mark.parametrize(
    ("password", "is_made_of"),
    [
        ("nia cole nia cole", True),
        ("Maple-Homes-2026!", True),
        ("NIA@EXAMPLE.COM1234567", True),
        ("three purple otters juggle", False),
        ("nia has eleven violins", False),
    ],
)
def test_a_password_is_more_than_what_others_know(password: str, is_made_of: bool) -> None:
    personal_words = ["nia@example.com", "nia", "cole", "maple", "homes", "Nia Cole", "Maple Homes"]
    assert rules.is_made_of(password, personal_words) == is_made_of
