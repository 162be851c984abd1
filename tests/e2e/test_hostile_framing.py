"""Requests with broken framing to every write, over raw sockets: an answer in the envelope, then the connection closes
or serves the next request. Nothing is written, and other clients are not affected."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from . import hostile_bodies as bad
from .hostile_writes import SUCCESS, WRITES, World, every_write
from .system import Answer, System
from .wire import Wire, lengthy

pytestmark = pytest.mark.usefixtures("no_faults")

CHUNKED = "Transfer-Encoding: chunked"
Sent = tuple[list[str], bytes]
SECONDS_BETWEEN_BYTES = 1.0
SECONDS_MAX = 120


def chunks(body: bytes, size: int = 7) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def cut_off(body: bytes) -> dict[str, Sent]:
    """Requests that end before their body is complete."""
    whole = chunks(body)
    return {
        "one byte short": ([f"Content-Length: {len(body) + 1}"], body),
        "half of it": ([lengthy(body)], body[: len(body) // 2]),
        "nothing of it": ([lengthy(body)], b""),
        "100 MB declared": (["Content-Length: 100000000"], body),
        "no last chunk": ([CHUNKED], whole[:-5]),
        "no end of the last chunk": ([CHUNKED], whole[:-2]),
        "half a chunk": ([CHUNKED], whole[: len(whole) // 2]),
        "a chunk's length alone": ([CHUNKED], b"5"),
        "no chunk": ([CHUNKED], b""),
    }


def malformed(body: bytes) -> dict[str, Sent]:
    """Requests whose body two servers could read differently or not at all."""
    length, requests = len(body), {}
    for value in (
        "-1", f"-{length}", f"+{length}", f"{length}.0", f"0x{length:x}", f"{length} {length}", f"{length},{length}",
        f"{length}, {length + 1}", "ten", "", "1e2", "9" * 30, f"{length};", f"{length}\x0b", "\xb2",
    ):  # fmt: skip
        requests[f"length {value!r}"] = ([f"Content-Length: {value}"], body)
    requests |= {
        "two lengths": ([f"Content-Length: {length}", f"Content-Length: {length + 1}"], body + b" "),
        "the same length twice": ([lengthy(body), lengthy(body)], body),
        "length, then chunks": ([lengthy(body), CHUNKED], chunks(body)),
        "chunks, then length": ([CHUNKED, lengthy(body)], chunks(body)),
        "chunks and no length": ([CHUNKED, "Content-Length: 0"], chunks(body)),
        "a blank before the colon": ([f"Content-Length : {length}"], body),
        "a folded length": (["Content-Length:", f" {length}"], body),
        "a folded encoding": (["Transfer-Encoding:", " chunked"], chunks(body)),
    }
    for value in ("gzip", "chunked, gzip", "identity", "xchunked", "chunked;x", '"chunked"', "chunked\x0b", ""):
        requests[f"encoding {value!r}"] = ([f"Transfer-Encoding: {value}"], chunks(body))
    for name, junk in {
        "no number": b"zz\r\n{}\r\n0\r\n\r\n",
        "a negative number": b"-1\r\n{}\r\n0\r\n\r\n",
        "a prefix": b"0x2\r\n{}\r\n0\r\n\r\n",
        "a blank in front": b" 2\r\n{}\r\n0\r\n\r\n",
        "a number beyond counting": b"F" * 17 + b"\r\n{}\r\n0\r\n\r\n",
        "a length that is too short": b"1\r\n{}\r\n0\r\n\r\n",
        "a length that is too long": b"3\r\n{}\r\n0\r\n\r\n",
        "a bare line feed": b"2\n{}\n0\n\n",
        "a bare line feed behind": b"2\r\n{}\n0\r\n\r\n",
        "a line feed in an extension": b"2;x\ny\r\n{}\r\n0\r\n\r\n",
        "nothing": b"\r\n\r\n",
    }.items():
        requests[f"chunks: {name}"] = ([CHUNKED], junk)
    return requests


def send(wire: Wire, world: World, write: str, path: str, sent: Sent, once: str) -> Answer:
    method = write.partition(" ")[0]
    lines, body = sent
    wire.send(wire.head(method, path, world.key(1), f"Idempotency-Key: {once}", *lines) + body)
    return wire.receive(method, path)


def refused(answer: Answer) -> bool:
    return (answer.status, answer.code) == (400, "invalid_request")


def is_first(answer: Answer, write: str) -> None:
    assert answer.status == SUCCESS[write] and "X-Idempotent-Replay" not in answer.headers, answer


@every_write
def test_requests_that_end_before_their_bodies(world: World, write: str) -> None:
    """Afterwards the whole body is a first write with their Idempotency-Key."""
    method, body = write.partition(" ")[0], bad.raw(world.bodies(write)[0])
    path, once = world.path(write), next(world.once)
    before = world.state(path)
    for name, sent in cut_off(body).items():
        with Wire(world.system) as wire:
            wire.send(wire.head(method, path, world.key(1), f"Idempotency-Key: {once}", *sent[0]) + sent[1])
            wire.end()
            assert refused(wire.receive(method, path)), name
            assert wire.is_closed(), name
        with Wire(world.system) as wire:  # and a client that leaves without waiting for an answer
            wire.send(wire.head(method, path, world.key(1), f"Idempotency-Key: {once}", *sent[0]) + sent[1])
        world.tried[write] += 2
    assert world.state(path) == before
    is_first(world.send(write, path, world.key(1), body, once), write)


@every_write
def test_requests_that_could_be_read_in_two_ways(world: World, write: str) -> None:
    """Afterwards the body with one length is a first write with their Idempotency-Key."""
    body, path, once = bad.raw(world.bodies(write)[0]), world.path(write), next(world.once)
    before = world.state(path)
    for name, sent in malformed(body).items():
        with Wire(world.system) as wire:
            answer = send(wire, world, write, path, sent, once)
            assert refused(answer), (name, answer)
            assert wire.is_closed(), name
        world.tried[write] += 1
    assert world.state(path) == before
    is_first(world.send(write, path, world.key(1), body, once), write)


def test_chunks_with_bare_carriage_returns_are_waited_for_and_refused(world: World) -> None:
    """More may come until the body's deadline. All writes wait at once."""
    paths = {write: world.path(write) for write in WRITES}
    before = world.state(*paths.values())
    waiting = []
    for write, path in paths.items():
        once, wire = next(world.once), Wire(world.system)
        head = wire.head(write.partition(" ")[0], path, world.key(1), f"Idempotency-Key: {once}", CHUNKED)
        wire.send(head + b"2\r{}\r0\r\r")
        waiting.append((write, path, once, wire))
    for write, path, _, wire in waiting:
        with wire:
            assert refused(wire.receive(write.partition(" ")[0], path)), write
            assert wire.is_closed(), write
        world.tried[write] += 1
    assert world.state(*paths.values()) == before
    for write, path, once, _ in waiting:
        is_first(world.send(write, path, world.key(1), bad.raw(world.bodies(write)[0]), once), write)


@every_write
def test_a_body_in_chunks_is_one_body(world: World, write: str) -> None:
    for body in map(bad.raw, world.bodies(write)):
        for sent in (chunks(body, 1), chunks(body), chunks(body, 10**6).replace(b"\r\n", b";name=value\r\n", 1)):
            with Wire(world.system) as wire:
                for again in (sent, sent[:-2] + b"Trailer: x\r\n\r\n"):
                    answer = send(wire, world, write, world.path(write), ([CHUNKED], again), next(world.once))
                    assert answer.status == SUCCESS[write], answer


@every_write
def test_a_connection_goes_on_after_a_refused_body(world: World, write: str) -> None:
    """Each answer belongs to its request: a refused body does not spill into the next request."""
    method, _, _ = write.partition(" ")
    body = bad.raw(world.bodies(write)[0])
    junk = [body[:-1], b"[" * 100_000, b"\xff" * 300_000, body.ljust(bad.LONGEST + 1), body * 2, b"x" * 1_000_000]
    path, once, key = world.path(write), next(world.once), world.key(20)
    before = world.state(path)
    with Wire(world.system) as wire:
        for wrong in junk:
            head = wire.head(method, path, key, f"Idempotency-Key: {once}", lengthy(wrong))
            wire.send(head + wrong + wire.head("GET", "/whoami", key))
            assert refused(wire.receive(method, path))
            assert wire.receive("GET", "/whoami").status == 200
            head = wire.head(method, path, key, f"Idempotency-Key: {once}", CHUNKED)
            if len(wrong) < bad.LONGEST:  # the end of a longer chunked body stays unknown, so the server closes
                wire.send(head + chunks(wrong, 1000) + wire.head("GET", "/whoami", key))
                assert refused(wire.receive(method, path))
                assert wire.receive("GET", "/whoami").status == 200
        assert world.state(path) == before
        wire.send(wire.head(method, path, key, f"Idempotency-Key: {once}", lengthy(body)) + body)
        is_first(wire.receive(method, path), write)
    world.tried[write] += 2 * len(junk)


@every_write
def test_a_request_inside_a_body_is_no_request(world: World, write: str) -> None:
    """A body is never taken for the next request, with any answer to the request around it."""
    method, _, _ = write.partition(" ")
    path, once, key = world.path(write), next(world.once), world.key(20)
    body = bad.raw(world.bodies(write)[0])
    before = world.state(path)
    with Wire(world.system) as wire:
        inner = wire.head(method, path, key, f"Idempotency-Key: {once}", lengthy(body)) + body
        for around, status in {
            wire.head(method, path, "mk_nobody", f"Idempotency-Key: {once}", lengthy(inner)): 401,
            wire.head(method, path, key, lengthy(inner)): 400,
            wire.head(method, path, key, f"Idempotency-Key: {once}", lengthy(inner)): 400,
            wire.head(method, path + "?x=1", key, f"Idempotency-Key: {once}", lengthy(inner)): 400,
            wire.head("DELETE", path, key, lengthy(inner)): 405,
            wire.head("GET", "/whoami", key, lengthy(inner)): 200,
        }.items():
            wire.send(around + inner + wire.head("GET", "/whoami", key))
            around_method = around.partition(b" ")[0].decode()
            answer = wire.receive(around_method, "/whoami" if status == 200 else path)
            assert answer.status == status
            assert "company" in wire.receive("GET", "/whoami").json
            world.tried[write] += status != 200
    assert world.state(path) == before


@every_write
def test_a_client_that_asks_before_it_sends(world: World, write: str) -> None:
    method, _, _ = write.partition(" ")
    body = bad.raw(world.bodies(write)[0])
    path, once, key = world.path(write), next(world.once), world.key(20)
    expect = "Expect: 100-continue"
    with Wire(world.system) as wire:  # refused before the server requests the body
        wire.send(wire.head(method, path, key, expect, lengthy(body)))
        assert wire.receive(method, path).code == "idempotency_key_required"
        assert wire.is_closed()
    with Wire(world.system) as wire:  # sends no body after 100 Continue
        wire.send(wire.head(method, path, key, expect, f"Idempotency-Key: {once}", lengthy(body)))
        wire.end()
        assert refused(wire.receive(method, path))
        assert wire.is_closed()
    with Wire(world.system) as wire:
        wire.send(wire.head(method, path, key, expect, f"Idempotency-Key: {once}", lengthy(body)) + body)
        assert wire.receive(method, path).status == SUCCESS[write]
    world.tried[write] += 2


@pytest.fixture
def trickling(world: World) -> Iterator[list[tuple[str, Wire, str]]]:
    """Clients of every write that trickle a byte a second, with a length and in chunks, and one that sends no body."""
    connections = []
    for write in WRITES:
        method, _, _ = write.partition(" ")
        for line in ("Content-Length: 1000", CHUNKED, "Content-Length: 1"):
            path, wire = world.path(write), Wire(world.system)
            wire.send(wire.head(method, path, world.key(1), f"Idempotency-Key: {next(world.once)}", line))
            connections.append((line, wire, f"{method} {path}"))
    yield connections
    for _, wire, _ in connections:
        wire.close()


def test_bodies_that_trickle_end_by_a_deadline_and_delay_no_other(
    system: System, world: World, trickling: list[tuple[str, Wire, str]]
) -> None:
    before = world.state()
    open_ones, started = list(trickling), time.monotonic()
    while open_ones and time.monotonic() < started + SECONDS_MAX:
        time.sleep(SECONDS_BETWEEN_BYTES)
        for line, wire, write in list(open_ones):
            if wire.has_answer():
                answer = wire.receive(*write.split(" "))
                assert refused(answer) and "slowly" in answer.json["error"]["message"]
                assert wire.is_closed()
                open_ones.remove((line, wire, write))
            elif line != "Content-Length: 1":
                wire.send(b" " if line != CHUNKED else b"1\r\n \r\n")
        assert system.get("/whoami", world.key(1)).status == 200
    assert not open_ones
    assert world.state() == before
    world.tried.update(write for write in WRITES for _ in range(3))
