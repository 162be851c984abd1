"""Who may come in and how much they may hold: budgets of connections and of bytes, before anybody is authenticated.

Connections are counted in all and by client address. A trusted proxy has no cap of its own; the clients that it speaks
for have. Bytes that wait for a client (requests that have not arrived whole, answers that are not read, TLS handshakes,
and what TLS takes for clients without a valid key) have a budget for all connections together. If it is exceeded, the
connections that have held bytes for longest are evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import Counter, Gauge

from chassis.http import addresses
from chassis.http.addresses import Address
from chassis.runtime.settings import Network

CONNECTIONS_MAX = 8_000
CONNECTIONS_PER_ADDRESS_MAX = 1_000
# A connection in its TLS handshake holds this much, as measured: almost all of it is OpenSSL's.
HANDSHAKE_BYTES = 50 * 1024

KNOWN_CLIENTS_MAX = 4096

# Giving memory back takes milliseconds: only once so many connections have gone, and half of them all.
TRIM_AFTER_CONNECTIONS = 100
TRIM_SECONDS = 5.0

OPEN = Gauge("makeready_http_connections", "Open connections of clients")
REFUSED = Counter(
    "makeready_http_connections_refused_total", "Connections closed unanswered, because too many are open", ["cap"]
)
HELD = Gauge("makeready_http_held_bytes", "Bytes that wait for clients", ["budget"])
EXCEEDED = Counter(
    "makeready_http_budget_exceeded_total", "Connections evicted, because all together held too much", ["budget"]
)


class Budget:
    """Bytes that connections may hold together."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._held: dict[Callable[[], object], int] = {}
        """By the function that ends its holder; who has held for longest comes first."""
        self.total = 0
        self.has_been_exceeded = False
        """Since memory was last given back."""
        HELD.labels(name).set_function(lambda: self.total)
        EXCEEDED.labels(name)  # from the start, so that the first one counts as an increase

    def hold(self, evict: Callable[[], object], size: int) -> None:
        """Sets the bytes of one holder. If all hold too much, those that have held for longest are evicted."""
        self.total += size - self._held.get(evict, 0)
        self._held[evict] = size
        while self.total > self._most and len(self._held) > 1:
            self.evict(next(iter(self._held)))

    def has_room(self, size: int) -> bool:
        return self.total + size <= self._most

    def evict(self, evict: Callable[[], object]) -> None:
        """Ends a holder."""
        self.release(evict)
        EXCEEDED.labels(self._name).inc()
        self.has_been_exceeded = True
        evict()

    def release(self, evict: Callable[[], object]) -> None:
        self.total -= self._held.pop(evict, 0)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The budgets in bytes: the gateway's, unless a process says otherwise."""

    unfinished: int = 16 * 1024 * 1024
    unread: int = 12 * 1024 * 1024
    tls: int = 14 * 1024 * 1024
    handshakes: int = 8 * 1024 * 1024

    @property
    def total(self) -> int:
        return self.unfinished + self.unread + self.tls + self.handshakes


class ConnectionLimits:
    """The caps and the budgets of a port for HTTP."""

    def __init__(
        self,
        connections_max: int = CONNECTIONS_MAX,
        per_address_max: int = CONNECTIONS_PER_ADDRESS_MAX,
        trusted_proxies: Iterable[Network] = (),
        sizes: Sizes = Sizes(),
    ) -> None:
        self._connections_max = connections_max
        self._per_address_max = per_address_max
        self._trusted = tuple(trusted_proxies)
        self._by_address: dict[str, int] = {}
        self._known: dict[str, None] = {}
        """Clients that were recognised; the one for longest comes first."""
        self._trim_again_at = 0.0
        self._peak = 0
        """The most connections that were open since memory was last given back."""
        self._seen = 0
        """How many were open when `has_memory_to_give_back` was last asked."""
        self.refused = 0
        """How many were refused since the last call of `take_refused`."""
        self.connections = 0
        """How many are open."""
        self.unfinished = Budget("unfinished_requests", sizes.unfinished)
        self.unread = Budget("unread_answers", sizes.unread)
        self.tls = Budget("tls", sizes.tls)
        """Of connections with TLS whose last request had no valid key."""
        self.handshakes = Budget("handshakes", sizes.handshakes)
        self._budgets = (self.unfinished, self.unread, self.tls, self.handshakes)
        for cap in ("all", "address"):
            REFUSED.labels(cap)  # from the start, so that the first one counts as an increase

    def limit(self, connections_max: int) -> None:
        """Lowers the cap on all connections to what this process can have open."""
        self._connections_max = min(self._connections_max, connections_max)

    def enter(self, peer: str) -> str | None:
        """Counts a connection from an address. Returns the name to `leave` by; None if the connection is too many."""
        if self.connections >= self._connections_max:
            self._refuse("all")
            return None
        address = addresses.of_peer(peer)
        client = "" if self._is_trusted(address) else addresses.client_name(address)
        if client and not self.count(client):
            return None
        self.connections += 1
        self._peak = max(self._peak, self.connections)
        OPEN.set(self.connections)
        return client

    def leave(self, client: str) -> None:
        """The end of a connection that `enter` counted."""
        self.connections -= 1
        OPEN.set(self.connections)
        if client:
            self.uncount(client)

    def count(self, client: str) -> bool:
        """Counts one more connection of a client, or request that a proxy passes on; False if it is too many."""
        count = self._by_address.get(client, 0)
        if count >= self._per_address_max:
            self._refuse("address")
            return False
        self._by_address[client] = count + 1
        return True

    def uncount(self, client: str) -> None:
        remaining = self._by_address[client] - 1
        if remaining:
            self._by_address[client] = remaining
        else:
            del self._by_address[client]

    def recognise(self, client: str) -> None:
        """Notes that it was known who sent a request of a client: its handshakes come before those of strangers."""
        self._known.pop(client, None)
        self._known[client] = None
        if len(self._known) > KNOWN_CLIENTS_MAX:
            del self._known[next(iter(self._known))]

    def is_known(self, client: str) -> bool:
        """Whether the client was recognised not long ago, or is a trusted proxy."""
        return not client or client in self._known

    def client_behind_proxy(self, forwarded_for: Iterable[str]) -> str:
        """The client that a trusted proxy speaks for: the rightmost address of X-Forwarded-For that is not a trusted
        proxy's. Empty if there is none: then a proxy speaks for itself.

        The values of the header's lines, in order, are `forwarded_for`.
        """
        for address in addresses.forwarded(forwarded_for):
            if address is None:
                return "unknown"
            if not self._is_trusted(address):
                return addresses.client_name(address)
        return ""

    def client_address(self, peer: str, forwarded_for: Iterable[str]) -> str:
        """The address of a connection's peer or, if that is a trusted proxy, of the client that it speaks for."""
        client = addresses.of_peer(peer)
        for address in addresses.forwarded(forwarded_for):
            if address is None or not self._is_trusted(client):
                break
            client = address
        return str(client)

    def take_refused(self) -> int:
        refused, self.refused = self.refused, 0
        return refused

    def has_memory_to_give_back(self, now: float) -> bool:
        """Whether the system should get the memory of connections that have gone. To be asked once a second; the answer
        is yes once for all that have gone so far.

        While more connections close it is no: those that closed after a yes might be too few for a second one. The
        event loop's clock says `now`, in seconds.
        """
        are_closing = self.connections < self._seen
        self._seen = self.connections
        many_left = self._peak - self.connections >= max(TRIM_AFTER_CONNECTIONS, self._peak // 2)
        is_worth_it = (many_left and not are_closing) or any(budget.has_been_exceeded for budget in self._budgets)
        if not is_worth_it or now < self._trim_again_at:
            return False
        self._peak = self.connections
        self._trim_again_at = now + TRIM_SECONDS
        for budget in self._budgets:
            budget.has_been_exceeded = False
        return True

    def _refuse(self, cap: str) -> None:
        self.refused += 1
        REFUSED.labels(cap).inc()

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)
