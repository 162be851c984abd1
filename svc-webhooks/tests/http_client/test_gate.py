"""Which receiver a URL and an address are, and attempts whose address is refused before it is dialled."""

from ipaddress import ip_address

import pytest

from svc_webhooks.http_client.client import receiver_of
from svc_webhooks.http_client.sockets import Endpoint

from ..receivers import Authority, answering, receiver
from ..wire import URL, Resolver, http_client


class Gate:
    """Refuses these addresses, and records those that it is asked about."""

    def __init__(self, *refused: str, is_at_new_receiver: bool = False) -> None:
        self.refused = refused
        self.asked: list[str] = []
        self.is_at_new_receiver = is_at_new_receiver

    async def admits(self, address: str) -> bool:
        self.asked.append(address)
        return address not in self.refused


@pytest.mark.parametrize(
    ("address", "port", "receiver_name"),
    [
        ("8.8.8.8", 443, "8.8.8.8"),
        ("::ffff:8.8.8.8", 443, "8.8.8.8"),
        ("64:ff9b::8.8.8.8", 443, "8.8.8.8"),
        ("2600:1f18:1:2:3:4:5:6", 443, "2600:1f18:1:2::/64"),
        ("2600:1f18:1:2::", 443, "2600:1f18:1:2::/64"),
        ("2600:1f18:1:3::1", 443, "2600:1f18:1:3::/64"),
        ("127.0.0.1", 9443, "127.0.0.1:9443"),
    ],
)
def test_an_address_is_one_receiver_in_all_its_forms(address: str, port: int, receiver_name: str) -> None:
    assert receiver_of(Endpoint(ip_address(address), port)) == receiver_name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://hooks.acme.com/a?b", "hooks.acme.com"),
        ("HTTPS://Hooks.ACME.com:443/c", "hooks.acme.com"),
        ("https://bücher.com/", "xn--bcher-kva.com"),
        ("https://BÜCHER.com/", "xn--bcher-kva.com"),
        ("https://8.8.8.8/", "8.8.8.8"),
        ("https://[2600:1f18:1:2::7]/", "2600:1f18:1:2::/64"),
        ("https://hooks.acme.com./", "hooks.acme.com"),
    ],
)
async def test_a_host_is_one_receiver_in_all_its_spellings(url: str, name: str) -> None:
    async with http_client(None, {}) as out:
        assert out.name_of(url) == name


async def test_an_address_that_is_refused_is_not_dialled_and_is_no_failure(authority: Authority) -> None:
    async with receiver(authority.context(), answering(200)) as endpoint:
        gate = Gate(f"127.0.0.1:{endpoint.port}")
        async with http_client(authority, endpoint.override) as out:
            outcome = await out.post(URL, b"", {}, gate=gate)
            assert (outcome.was_admitted, outcome.succeeded, outcome.is_internal_fault) == (False, False, False)
            assert endpoint.connections == 0
            assert (await out.post(URL, b"", {}, gate=Gate())).succeeded
            assert not (await out.post(URL, b"", {}, gate=gate)).was_admitted  # with a pooled connection
            assert len(endpoint.requests) == 1
            assert (await out.post(URL, b"", {}, gate=Gate())).succeeded
            assert endpoint.connections == 1


async def test_of_several_addresses_one_that_is_admitted_is_dialled(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.client.is_public", lambda _: True)
    async with receiver(authority.context("two.example.com"), answering(200)) as endpoint:
        for module in ("client", "destinations"):
            monkeypatch.setattr(f"svc_webhooks.http_client.{module}.HTTPS_PORT", endpoint.port)
        receiver_of.cache_clear()
        both = Gate("127.0.0.9", "127.0.0.1")
        async with http_client(authority, {}, resolve=Resolver(["127.0.0.9", "127.0.0.1"])) as out:
            refused = await out.post("https://two.example.com/", b"", {}, gate=both)
            outcome = await out.post("https://two.example.com/", b"", {}, gate=Gate("127.0.0.9"))
        receiver_of.cache_clear()
    assert (refused.was_admitted, both.asked) == (False, ["127.0.0.9", "127.0.0.1"])
    assert (outcome.error, outcome.address) == ("", "127.0.0.1")


@pytest.mark.parametrize(
    ("status", "is_at_new_receiver", "connections"), [(500, True, 2), (500, False, 1), (200, True, 1)]
)
async def test_a_receiver_that_never_answered_is_left_no_idle_connection(
    authority: Authority, status: int, is_at_new_receiver: bool, connections: int
) -> None:
    async with (
        receiver(authority.context(), answering(status)) as endpoint,
        http_client(authority, endpoint.override) as out,
    ):
        for _ in range(2):
            await out.post(URL, b"", {}, gate=Gate(is_at_new_receiver=is_at_new_receiver))
        assert endpoint.connections == connections
