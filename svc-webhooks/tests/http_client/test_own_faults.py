"""Internal faults: attempts that say nothing about the receiver must not count against it."""

import asyncio
import errno
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

from svc_webhooks.http_client.sockets import fault_of

from ..receivers import HOST, Authority, answering, hanging, receiver
from ..wire import URL, Resolver, http_client

# Runs in a process of its own, whose descriptors run out: sends to a known address and to a name.
OUT_OF_DESCRIPTORS = """
import asyncio, resource, socket, sys
import uvloop
from svc_webhooks.http_client.client import HttpClient

async def attempts(port):
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    http = HttpClient(overrides={"receiver.test": ("127.0.0.1", port)}, ca_file=None, user_agent="x")
    held = []
    try:
        while True:
            held.append(socket.socket())
    except OSError:
        pass
    found = [await http.post(f"https://{host}/", b"{}", {}) for host in ("receiver.test", "makeready.dev")]
    for one in held:
        one.close()
    found.append(await http.post("https://receiver.test/", b"{}", {}))
    return [(outcome.status, outcome.error, outcome.is_internal_fault) for outcome in found]

print(uvloop.run(attempts(int(sys.argv[1]))))
"""


def test_no_descriptors_is_a_fault_of_ours_until_there_are_some() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but not listening
        port = str(closed.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-P", "-c", OUT_OF_DESCRIPTORS, port],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stdout == "[(None, 'egress', True), (None, 'resolver', True), (None, 'connect', False)]\n", done.stderr


@pytest.mark.parametrize("address", ["255.255.255.255", "224.0.0.1"])
async def test_no_route_of_our_own_is_a_fault_of_ours(address: str) -> None:
    """The kernel refuses to connect to these, so nothing leaves the machine."""
    async with http_client(None, {HOST: (address, 443)}) as out:
        outcome = await out.post(URL, b"{}", {})
    assert (outcome.status, outcome.error, outcome.is_internal_fault, outcome.address) == (
        None,
        "egress",
        True,
        address,
    )


async def test_one_address_without_a_route_is_no_fault_of_ours_where_another_refuses(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.client.is_public", lambda _: True)
    monkeypatch.setattr("svc_webhooks.http_client.destinations.HTTPS_PORT", 1)
    for addresses in (["255.255.255.255", "127.0.0.1"], ["127.0.0.1", "255.255.255.255"]):
        async with http_client(authority, {}, resolve=Resolver(addresses)) as out:
            outcome = await out.post("https://two.example.com/", b"{}", {})
        assert (outcome.error, outcome.is_internal_fault, outcome.address) == ("connect", False, "127.0.0.1")


async def test_one_address_without_a_route_is_no_fault_at_all_where_another_answers(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.client.is_public", lambda _: True)
    async with receiver(authority.context("two.example.com"), answering(200)) as endpoint:
        monkeypatch.setattr("svc_webhooks.http_client.destinations.HTTPS_PORT", endpoint.port)
        async with http_client(authority, {}, resolve=Resolver(["255.255.255.255", "127.0.0.1"])) as out:
            assert (await out.post("https://two.example.com/", b"{}", {})).succeeded


@pytest.mark.parametrize(
    ("code", "at_once", "ours"),
    [
        (errno.EMFILE, True, True),
        (errno.ENFILE, True, True),
        (errno.ENOBUFS, True, True),
        (errno.ENOMEM, True, True),
        (errno.EADDRNOTAVAIL, True, True),  # no port left
        (errno.EPERM, True, True),  # a local firewall
        (errno.EACCES, True, True),
        (errno.ENETDOWN, False, True),
        (errno.ENETUNREACH, True, True),
        (errno.ENETUNREACH, False, False),  # reported by a router on the way
        (errno.EHOSTUNREACH, True, True),
        (errno.EHOSTUNREACH, False, False),
        (errno.ECONNREFUSED, True, False),
        (errno.ECONNREFUSED, False, False),
        (errno.ECONNRESET, False, False),
        (errno.ETIMEDOUT, False, False),
    ],
    ids=lambda value: errno.errorcode.get(value) if value is not True and value is not False else str(value),
)
def test_whose_fault_it_is_that_no_connection_came_about(code: int, at_once: bool, ours: bool) -> None:
    failed = fault_of(code, at_once=at_once)
    assert (failed.error, failed.is_internal_fault) == (("egress", True) if ours else ("connect", False))


async def test_a_resolver_that_is_still_busy_at_the_deadline_is_a_fault_of_ours() -> None:
    async with http_client(None, {}, resolve=Resolver(30.0), deadline_seconds=0.2) as out:
        outcome = await out.post("https://somebody.example.com/", b"{}", {})
    assert (outcome.error, outcome.is_internal_fault, outcome.address) == ("resolver", True, None)


async def test_whatever_breaks_in_our_own_code_is_a_fault_of_ours() -> None:
    async def broken(_: str, _party: int) -> Sequence[str]:
        raise KeyError("a bug")

    async with http_client(None, {}, resolve=broken) as out:
        outcome = await out.post("https://somebody.example.com/", b"{}", {})
    assert (outcome.status, outcome.error, outcome.is_internal_fault) == (None, "egress", True)


async def test_an_attempt_that_we_slept_through_says_nothing_about_the_receiver(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example, the process was stopped or starved: the response may have arrived in time."""
    monkeypatch.setattr("svc_webhooks.http_client.client.STALLED_SECONDS", 0.3)
    async with (
        receiver(authority.context(), hanging) as endpoint,
        http_client(authority, endpoint.override, deadline_seconds=0.3) as out,
    ):
        attempt = asyncio.create_task(out.post(URL, b"{}", {}))
        await asyncio.sleep(0)  # it has begun
        time.sleep(0.8)  # noqa: ASYNC251 - stops the loop itself
        outcome = await attempt
        assert (outcome.error, outcome.is_internal_fault) == ("egress", True)
        monkeypatch.setattr("svc_webhooks.http_client.client.STALLED_SECONDS", 60.0)
        assert (await out.post(URL, b"{}", {})).error == "timeout"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Request-Id", "a\r\nX-Injected: yes"),
        ("X-Request-Id", "a\nX-Injected: yes"),
        ("X-Request-Id", "a\x00"),
        ("X-Request-Id", "a\r"),
        ("X-Request-Id", "\u2028"),
        ("X-Request-Id: a\r\nX-Injected", "yes"),
        ("X Request", "a"),
        ("", "a"),
    ],
)
async def test_a_header_never_becomes_two(authority: Authority, name: str, value: str) -> None:
    async with (
        receiver(authority.context(), answering(200)) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        outcome = await out.post(URL, b"{}", {name: value})
    assert (outcome.error, outcome.is_internal_fault, endpoint.connections) == ("egress", True, 0)
