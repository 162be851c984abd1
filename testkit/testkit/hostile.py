"""Thousands of hostile connections at once: what they are, the processes that hold them, and what a server takes.

The suite opens 300 of them, MAKEREADY_HOSTILE_CONNECTIONS says how many (`make hostile`: 5,000).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import resource
import sys
import urllib.request
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import trustme

from testkit import hostile_clients as program
from testkit.hostile_clients import Kind
from testkit.requirements import lacks

CONNECTIONS = int(os.environ.get("MAKEREADY_HOSTILE_CONNECTIONS", "300"))
IS_FULL = CONNECTIONS >= 5000
MEMORY_BYTES_MAX = 200_000_000
# A connection costs less than this, besides the budgets.
BYTES_OF_A_CONNECTION = 20_000
# The heap stays larger by this at most: small objects lie between free ones.
KEPT_BYTES = max(20_000_000, CONNECTIONS * 8_000)
# Of 127.0.0.0/8: no one has as many connections as the cap by address.
ADDRESSES = 100
PROCESSES = 1 + CONNECTIONS // 2000
# How long the connections are held once all have been opened.
HELD_SECONDS = 5.0 if IS_FULL else 1.5
OTHER_FILES = 500
HEADER = "X-A: " + "x" * 8100 + "\r\n"


def resident_bytes(pid: int) -> int:
    """The memory of a process."""
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1]) * 1024


async def metric(address: str, name: str) -> float:
    """The sum over a metric's labels. address: host and port of a process's metrics."""

    def read() -> list[str]:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as page:
            lines: list[str] = page.read().decode().splitlines()
        return lines

    return sum(
        float(line.rsplit(" ", 1)[1]) for line in await asyncio.to_thread(read) if re.match(rf"{name}[{{ ]", line)
    )


def enough_files() -> None:
    """Skips the test where the machine allows too few connections."""
    if sys.platform != "linux":
        lacks("linux", "only Linux answers on all of 127.0.0.0/8 and shows a process's memory in /proc")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS + OTHER_FILES
    if hard != resource.RLIM_INFINITY and hard < needed:
        lacks("open-files", f"a process may open {hard} files here, and {CONNECTIONS} connections need {needed}")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def heads(path: str) -> Kind:
    """Heads that never end, greedy ones and small ones."""
    line = f"GET {path} HTTP/1.1\r\nHost: a\r\n"
    return {"name": "head", "first": [line + HEADER * 95, line + HEADER * 3], "more": "X-B: 1\r\n"}


def bodies(name: str, requests: Sequence[str], greedy_bytes: int = 100_000) -> Kind:
    """Bodies that never end behind each head, greedy ones and small ones."""
    first = [head + "x" * size for head in requests for size in (greedy_bytes, 100)]
    return {"name": name, "first": first, "more": "x"}


def unread(path: str) -> Kind:
    """Answers that nobody reads."""
    return {"name": program.UNREAD, "first": [f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"], "more": ""}


SILENT: Kind = {"name": program.SILENT, "first": [], "more": ""}


@contextlib.asynccontextmanager
async def hostile_clients(port: int, authority: str, kinds: Sequence[Kind]) -> AsyncIterator[int]:
    """Holds all connections, of each kind in turn; yields how many could not be opened."""
    async with contextlib.AsyncExitStack() as at_the_end:
        clients = []
        for number in range(PROCESSES):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                program.__file__,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdin is not None
            at_the_end.push_async_callback(process.wait)
            at_the_end.callback(process.stdin.close)
            plan: program.Plan = {
                "port": port,
                "first": number,
                "step": PROCESSES,
                "end": CONNECTIONS,
                "addresses": ADDRESSES,
                "authority": authority,
                "kinds": list(kinds),
            }
            process.stdin.write(json.dumps(plan).encode() + b"\n")
            clients.append(process)
        failed = 0
        for process in clients:
            assert process.stdout is not None
            failed += json.loads(await process.stdout.readline())["failed"]
        yield failed


def certificate(folder: Path) -> tuple[dict[str, str], str]:
    """A server's settings for TLS, and the authority that its clients trust."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "cert.pem").write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    settings = {
        "MAKEREADY_TLS_CERT_FILE": str(folder / "cert.pem"),
        "MAKEREADY_TLS_KEY_FILE": str(folder / "key.pem"),
    }
    return settings, authority.cert_pem.bytes().decode()
