"""What one connection takes of the limits of its port: a place of its client, and bytes of the budgets."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable

from chassis.http.connection_limits import ConnectionLimits
from chassis.http.framing import SMALL_HEAD_BYTES

# A connection holds this many bytes of an unfinished request without being counted, which costs usual requests nothing.
UNCOUNTED_BYTES = 1024
# With TLS each byte that arrives lies in several buffers, and the connection itself takes this much, as measured.
TLS_COPIES, TLS_BYTES = 3, 40 * 1024
# A burst of more than SMALL_BURST_BYTES lies in uvloop's buffer and in OpenSSL's, which never shrink.
SMALL_BURST_BYTES, BURST_COPIES = 16 * 1024, 2
# The parser's texts of a head take this many times its bytes. They stay until the request is answered.
PARSED_COPIES = 2.5


class Unfinished(enum.Enum):
    """How the bytes of an unfinished request are counted."""

    FEW = enum.auto()
    """So few that they are not counted."""
    COUNTED = enum.auto()
    EXEMPT = enum.auto()
    """Its body is read piece by piece, and whoever reads one bounds how many there are."""


_FEW, _COUNTED, _EXEMPT = Unfinished


class Tls(enum.Enum):
    """What a connection counts of the budget of TLS."""

    NONE = enum.auto()
    """It has none."""
    STRANGER = enum.auto()
    KNOWN = enum.auto()
    """It was known who sent the last request: only the buffers of a large burst count."""


_NONE, _STRANGER, _KNOWN = Tls


class Holder:
    """One connection in the budgets. `evict`: ends it, or the request under way, because all together hold too much."""

    __slots__ = (
        "_behind_proxy",
        "_burst_bytes",
        "_client",
        "_evict",
        "_limits",
        "_parsed_bytes",
        "_tls",
        "is_proxy",
        "unfinished",
    )

    def __init__(self, limits: ConnectionLimits, client: str) -> None:
        """The connection is counted by `client`, from `ConnectionLimits.enter`; it is empty for a trusted proxy's."""
        self._limits = limits
        self._client = client
        self.is_proxy = not client
        self._behind_proxy = ""
        """The client behind a trusted proxy whose request is under way."""
        self._evict: Callable[[], None] | None = None
        self.unfinished = _FEW
        self._parsed_bytes = 0
        """What the parser holds of a large head."""
        self._tls = _NONE
        self._burst_bytes = SMALL_BURST_BYTES
        """The most that has arrived at once, if it is more than a small burst."""

    def begin(self, evict: Callable[[], None], *, has_tls: bool) -> None:
        """The connection is open."""
        self._evict = evict
        if has_tls:
            self._tls = _STRANGER
            self._count_tls()

    def end(self) -> None:
        """The connection is lost."""
        self.uncount()
        if self._evict is not None:
            self._limits.tls.release(self._evict)
        self._evict = None
        self.leave_proxy()
        self._limits.leave(self._client)

    # Bytes of an unfinished request

    def count_parsed(self, head_bytes: int) -> None:
        """A head has gone to the parser: what it holds of a large one counts until the request is answered."""
        self._parsed_bytes = int(PARSED_COPIES * head_bytes) if head_bytes > SMALL_HEAD_BYTES else 0
        self.uncount()
        self.count(0)

    def count(self, size: int) -> None:
        """Of unfinished requests `size` bytes have arrived."""
        if self._tls is not _NONE:
            size *= TLS_COPIES
        size += self._parsed_bytes
        if size > UNCOUNTED_BYTES and self._evict is not None and self.unfinished is not _EXEMPT:
            self.unfinished = _COUNTED
            self._limits.unfinished.hold(self._evict, size)

    def uncount(self) -> None:
        if self.unfinished is _COUNTED and self._evict is not None:
            self.unfinished = _FEW
            self._limits.unfinished.release(self._evict)

    def exempt(self) -> None:
        """The body of the request under way is read piece by piece."""
        self.uncount()
        self.unfinished = _EXEMPT

    def finish(self) -> None:
        """The answer is ready: nothing of its request is held any more."""
        self._parsed_bytes = 0
        self.uncount()

    def sent(self) -> None:
        """The answer is sent."""
        self.uncount()
        self.unfinished = _FEW
        self.leave_proxy()

    # TLS

    def arrived(self, size: int) -> None:
        """So many bytes have arrived at once."""
        if size > self._burst_bytes and self._tls is not _NONE:
            self._burst_bytes = size
            self._count_tls()

    def know(self, *, is_known: bool) -> None:
        """Whether it is known who sent the last request, of a connection with TLS."""
        tls = _KNOWN if is_known else _STRANGER
        if tls is not self._tls:
            self._tls = tls
            self._count_tls()
            if is_known:
                self._limits.recognise(self._client)

    def _count_tls(self) -> None:
        size = 0 if self._tls is _KNOWN else TLS_BYTES
        if self._burst_bytes > SMALL_BURST_BYTES:
            size += BURST_COPIES * self._burst_bytes
        if self._evict is None:
            return
        if size:
            self._limits.tls.hold(self._evict, size)
        else:
            self._limits.tls.release(self._evict)

    # The client

    def enter_from_proxy(self, forwarded_for: Iterable[str]) -> bool:
        """Counts a request for the client that a trusted proxy speaks for; False if it is one too many.

        The lines of X-Forwarded-For are `forwarded_for`.
        """
        client = self._limits.client_behind_proxy(forwarded_for)
        if client and not self._limits.count(client):
            return False
        self._behind_proxy = client
        return True

    def leave_proxy(self) -> None:
        """The request that `enter_from_proxy` counted is over."""
        if self._behind_proxy:
            self._limits.uncount(self._behind_proxy)
            self._behind_proxy = ""

    def client_address(self, peer: str, forwarded_for: Iterable[str]) -> str:
        """See `ConnectionLimits.client_address`."""
        return self._limits.client_address(peer, forwarded_for)
