"""Requests as they are sent: keys, retries, the deadline and the rate limit; once, for both kinds of client.

`Exchange.steps` is a generator: it yields seconds to sleep or a request to send, and gets the response or the error.
The clients only sleep and send, each in its own way.
"""

from __future__ import annotations

import logging
import platform
import random
import re
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace

import httpx

from makeready_client import errors
from makeready_client.refusals import GATEWAY_FAULTS, error_of
from makeready_client.requests import Request

__version__ = "0.2.0"
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 35.0  # the slowest operation waits 30 s for a receiver of webhooks
# With the default of 8 retries they last 20 to 40 seconds: longer than a release or a restart of the API.
BACKOFF_SECONDS, BACKOFF_SECONDS_MAX = 0.5, 8.0
# Repeating these sends cannot change what they fail with.
NEVER_RETRIED = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.TooManyRedirects)
REQUESTS_A_MINUTE = 120
IDEMPOTENCY_KEY = re.compile("[!-~](?:[ -~]{0,62}[!-~])?")
LIMIT = re.compile(r";\s*r=(\d+)\s*;\s*t=(\d+)")
Steps = Generator["float | httpx.Request", "httpx.Response | httpx.RequestError | None", httpx.Response]

log = logging.getLogger("makeready_client")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that was sent, and what came of it."""

    method: str
    path: str
    status: int | None
    """None where no answer came."""
    request_id: str | None
    number: int
    """1, and more for retries of the same call."""
    seconds: float
    """Until the answer was there, or failed."""
    remaining: int | None
    """The key's requests that are left in this minute; None where the answer does not say it."""


OnResponse = Callable[[Attempt], None]


@dataclass
class Allowance:
    """What is left of the key's requests, by the last answer. Shared by all threads of a client."""

    remaining: int | None = None
    """None until an answer has said it."""
    resets_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, now: float) -> float:
        """Takes one request: 0, or the seconds to wait before asking again."""
        with self.lock:
            if self.remaining:
                self.remaining -= 1
            elif self.remaining == 0:
                if now < self.resets_at:
                    return self.resets_at - now
                # The window has moved on by one request at least; its answer tells how many more.
                self.resets_at = now + 1
            return 0.0

    def forget(self) -> None:
        """Begins anew, in a forked process: another thread may have held the lock."""
        self.lock, self.remaining = threading.Lock(), None

    def is_short(self) -> bool:
        """Whether fewer than half of a minute's requests are left."""
        return self.remaining is not None and self.remaining < REQUESTS_A_MINUTE / 2

    def note(self, header: str, now: float) -> int | None:
        """Keeps what the header RateLimit says, such as `"key";r=119;t=60`. Returns the requests that are left."""
        match = LIMIT.search(header)
        if match is None:
            return None
        remaining = int(match[1])
        with self.lock:
            self.remaining, self.resets_at = remaining, now + int(match[2])
        return remaining


@dataclass
class Settings:
    """What a client was made with."""

    api_key: str = field(repr=False)  # it would end in logs
    base_url: str
    timeout: float
    retries: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent besides the client's own."""
    on_response: OnResponse | None = None
    allowance: Allowance = field(default_factory=Allowance, repr=False)

    def __post_init__(self) -> None:
        self.api_key = self.api_key.strip()  # a key that was read from a file ends with a newline
        if not re.fullmatch("[!-~]+", self.api_key):
            raise ValueError("api_key must be printable ASCII without blanks; it is empty or has other characters")
        if not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", self.base_url):
            raise ValueError("base_url must be like https://makeready.example/api/v1")
        if self.timeout <= 0 or self.retries < 0:
            raise ValueError("timeout must be more than 0 seconds, retries 0 or more")
        self.base_url = self.base_url.rstrip("/")

    def changed(self, timeout: float | None, retries: int | None, headers: Mapping[str, str] | None) -> Settings:
        """Other settings with the same key and allowance. None leaves what there is; headers are added."""
        all_headers = httpx.Headers(self.headers)  # whose names have no case
        all_headers.update(headers or {})
        return replace(
            self,
            timeout=self.timeout if timeout is None else timeout,
            retries=self.retries if retries is None else retries,
            headers=all_headers,
        )


class Exchange:
    """One request with all its retries."""

    def __init__(self, settings: Settings, request: Request) -> None:
        self._settings = settings
        self._request = request
        self._deadline = time.monotonic() + settings.timeout + request.wait_seconds
        self._content = request.content()
        self._headers = httpx.Headers(settings.headers)
        self._headers["Authorization"] = f"Bearer {settings.api_key}"
        self._headers["User-Agent"] = f"makeready-client/{__version__} python/{platform.python_version()}"
        if self._content is not None:
            self._headers.update(_headers_of_write(request))
        self._number = 0
        self._retries = 0
        self._faults = 0
        self._may_have_happened = False

    def steps(self) -> Steps:
        """The response. Raises errors.ApiError or errors.ConnectionFailed.

        Retried are 429 (after Retry-After), 503, 500 (once), 409 idempotency_in_progress, lost connections (section 7
        of the API's specification), and 502 and 504, which only proxies answer.
        """
        while True:
            yield from self._allowed()
            started = time.monotonic()
            outcome = yield self._to_send()
            assert outcome is not None
            self._number += 1
            self._report(outcome, time.monotonic() - started)
            if isinstance(outcome, httpx.Response):
                if outcome.is_success or self._is_gone_by_us(outcome.status_code):
                    return outcome
                failure, is_retried = self._refused(outcome)
            else:
                failure, is_retried = self._unreached(outcome)
            yield self._pause(failure, is_retried=is_retried)

    def _allowed(self) -> Generator[float, None, None]:
        """Waits for the rate limit."""
        while (pause := self._settings.allowance.take(time.monotonic())) > 0:
            if time.monotonic() + pause > self._deadline:
                text = "Not sent: no request is left before the deadline."
                raise errors.RateLimited(429, "rate_limited", text, retry_after=pause)
            yield pause

    def _to_send(self) -> httpx.Request:
        remaining = max(self._deadline - time.monotonic(), 0.001)
        longest = min(ANSWER_SECONDS + self._request.wait_seconds, remaining)
        timeout = httpx.Timeout(longest, connect=min(CONNECT_SECONDS, remaining))
        return httpx.Request(
            self._request.method,
            self._settings.base_url + self._request.path,
            params=self._request.parameters(),
            headers=self._headers,
            content=self._content,
            extensions={"timeout": timeout.as_dict(), "deadline": self._deadline},
        )

    def _report(self, outcome: httpx.Response | httpx.RequestError, seconds: float) -> None:
        """Tells the hook and the log, and notes what is left of the rate limit."""
        status, request_id, remaining = None, None, None
        if isinstance(outcome, httpx.Response):
            remaining = self._settings.allowance.note(outcome.headers.get("RateLimit", ""), time.monotonic())
            status, request_id = outcome.status_code, outcome.headers.get("X-Request-Id")
            result = str(status)
        else:
            result = words_of(outcome)
        attempt = Attempt(
            self._request.method, self._request.path, status, request_id, self._number, seconds, remaining
        )
        log.debug(
            "%s %s: %s in %.3f s, attempt %d, request %s, %s left",
            attempt.method,
            attempt.path,
            result,
            attempt.seconds,
            attempt.number,
            attempt.request_id,
            attempt.remaining,
        )
        if self._settings.on_response:
            self._settings.on_response(attempt)

    def _is_gone_by_us(self, status: int) -> bool:
        """Whether a deletion finds nothing because an earlier attempt had its effect."""
        return self._request.method == "DELETE" and self._may_have_happened and status == 404

    def _refused(self, response: httpx.Response) -> tuple[errors.MakereadyError, bool]:
        """The error of a refusal, and whether it may pass."""
        failure, status = error_of(response, self._settings.base_url), response.status_code
        self._faults += status == 500
        self._may_have_happened |= status in (500, 502, 504)
        is_retried = (
            status == 429
            or status in GATEWAY_FAULTS
            or (status == 500 and self._faults == 1)
            or isinstance(failure, errors.IdempotencyInProgress)
        )
        return failure, is_retried

    def _unreached(self, error: httpx.RequestError) -> tuple[errors.MakereadyError, bool]:
        """The error of an answer that did not come, and whether it may come."""
        address = f"{self._request.method} {self._settings.base_url}{self._request.path}"
        failure = errors.ConnectionFailed(f"{address}: {words_of(error)}")
        failure.__cause__ = error
        self._may_have_happened = True
        return failure, not isinstance(error, NEVER_RETRIED) and not _is_distrust(error)

    def _pause(self, failure: errors.MakereadyError, *, is_retried: bool) -> float:
        """The seconds before the next attempt. Raises the failure where there is none."""
        longest = min(BACKOFF_SECONDS * 2**self._retries, BACKOFF_SECONDS_MAX)
        pause = random.uniform(longest / 2, longest)  # noqa: S311 - no secret
        if isinstance(failure, errors.ApiError) and failure.retry_after is not None:
            pause += failure.retry_after
        # The API says when a refused request may come again, so those do not use up the retries.
        is_limited = self._settings.retries > 0 and isinstance(failure, errors.RateLimited)
        is_last = self._retries == self._settings.retries and not is_limited
        if not is_retried or is_last or time.monotonic() + pause > self._deadline:
            raise failure
        self._retries += not is_limited
        return pause


def _headers_of_write(request: Request) -> dict[str, str]:
    key = str(uuid.uuid4()) if request.idempotency_key is None else request.idempotency_key
    if not IDEMPOTENCY_KEY.fullmatch(key):  # an empty one must not become a new one each time
        raise ValueError("idempotency_key must be 1 to 64 characters of printable ASCII")
    return {"Content-Type": "application/json", "Idempotency-Key": key}


def _is_distrust(error: BaseException | None) -> bool:
    """Whether the server's certificate was refused, which the next attempt would do again."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def words_of(error: httpx.RequestError) -> str:
    """An error of the network, in words."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")
