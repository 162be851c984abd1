"""Name lookups: whose fault a missing answer is, and that a name that hangs delays no other."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence

import pytest

from svc_webhooks.http_client.resolver import Names, NoAddress, ResolverFault, SystemResolver
from testkit.patience import PATIENCE_SECONDS


class Servers:
    """Name servers that answer no name under `hangs` until `let_go` is set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.let_go = threading.Event()

    def getaddrinfo(self, host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        self.asked.append(host)
        if host.endswith("hangs.example."):
            self.let_go.wait(30)
        if host.startswith("nobody"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if host.startswith("passing"):
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in ("8.8.8.8", "8.8.4.4") * 2]


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    dns_servers = Servers()
    monkeypatch.setattr("svc_webhooks.http_client.resolver.socket.getaddrinfo", dns_servers.getaddrinfo)
    yield dns_servers
    dns_servers.let_go.set()


def names() -> Names[Sequence[str]]:
    return Names(SystemResolver(), lambda addresses: addresses)


async def test_addresses_come_once_each_and_the_name_is_meant_as_it_is_written(servers: Servers) -> None:
    assert await SystemResolver()("hooks.acme.com") == ["8.8.8.8", "8.8.4.4"]
    assert servers.asked == ["hooks.acme.com."]  # without a search list


async def test_a_name_that_is_missing_is_not_a_resolver_that_fails(servers: Servers) -> None:
    with pytest.raises(NoAddress):
        await names().find("nobody.acme.com")
    with pytest.raises(ResolverFault):
        await names().find("passing.acme.com")


async def test_an_answer_is_kept_for_a_moment_and_a_failure_is_not(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = names()
    for _ in range(3):
        assert await resolver.find("hooks.acme.com")
        with pytest.raises(NoAddress):
            await resolver.find("nobody.acme.com")
    assert servers.asked.count("hooks.acme.com.") == 1
    assert servers.asked.count("nobody.acme.com.") == 3
    monkeypatch.setattr("svc_webhooks.http_client.resolver.KEPT_SECONDS", 0.0)
    later = names()
    assert await later.find("hooks.acme.com") and await later.find("hooks.acme.com")
    assert servers.asked.count("hooks.acme.com.") == 3


async def test_names_that_hang_delay_no_other(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.resolver.LOOKUPS_MAX", 4)
    monkeypatch.setattr("svc_webhooks.http_client.resolver.SLOW_AFTER_SECONDS", 0.05)
    resolver = names()
    hanging = [asyncio.create_task(resolver.find(f"{number}.hangs.example")) for number in range(20)]
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert all(await asyncio.gather(*(resolver.find(f"{number}.acme.com") for number in range(20))))
    assert not any(task.done() for task in hanging)
    servers.let_go.set()
    assert all(await asyncio.gather(*hanging))


async def test_a_name_that_hangs_is_asked_for_once_however_many_give_it_up(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.resolver.RESOLVE_SECONDS_MAX", 0.05)
    resolver = names()
    for _ in range(5):
        with pytest.raises(ResolverFault):
            await resolver.find("one.hangs.example")
    assert servers.asked == ["one.hangs.example."]
    servers.let_go.set()
    monkeypatch.setattr("svc_webhooks.http_client.resolver.RESOLVE_SECONDS_MAX", 5.0)
    assert await resolver.find("one.hangs.example")


async def test_there_are_only_so_many_threads(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.resolver.THREADS_MAX", 3)
    resolver = names()
    hanging = [asyncio.create_task(resolver.find(f"{number}.hangs.example")) for number in range(3)]
    while len(servers.asked) < 3:  # noqa: ASYNC110 - threads set no event
        await asyncio.sleep(0.01)
    with pytest.raises(ResolverFault):
        await resolver.find("hooks.acme.com")
    servers.let_go.set()
    await asyncio.gather(*hanging)
    assert await resolver.find("hooks.acme.com")


async def test_a_party_whose_names_hang_holds_no_lookup_of_another_up(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.resolver.LOOKUPS_MAX", 6)
    monkeypatch.setattr("svc_webhooks.http_client.resolver.THREADS_MAX", 12)
    monkeypatch.setattr("svc_webhooks.http_client.resolver.SLOW_AFTER_SECONDS", 60.0)
    monkeypatch.setattr("svc_webhooks.http_client.resolver.RESOLVE_SECONDS_MAX", 60.0)
    resolver = names()
    hanging = [asyncio.create_task(resolver.find(f"{number}.hangs.example", party=1)) for number in range(20)]
    while len(servers.asked) < 6:  # noqa: ASYNC110 - threads set no event
        await asyncio.sleep(0.01)
    assert await asyncio.wait_for(resolver.find("hooks.acme.com", party=2), 30)
    assert len(servers.asked) == 7  # the other 14 wait
    servers.let_go.set()
    assert all(await asyncio.gather(*hanging))


async def test_a_party_whose_names_hang_leaves_threads_to_others(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_webhooks.http_client.resolver.THREADS_MAX", 3)
    resolver = SystemResolver()
    hanging = [asyncio.create_task(resolver(f"{number}.hangs.example", 1)) for number in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(ResolverFault):
        await resolver("hooks.acme.com", 1)
    assert await resolver("hooks.acme.com", 2)
    servers.let_go.set()
    await asyncio.gather(*hanging)
    assert await resolver("hooks.acme.com", 1)
