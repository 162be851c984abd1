"""The npm package: what is in it, that its bytes are always the same, its types, and how it judges deliveries."""

from __future__ import annotations

import datetime
import gzip
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from testkit.processes import free_port
from testkit.typescript import deno, from_npm, installed, node, package, wheels_node

PROJECT = Path(__file__).resolve().parents[1]
ROOT = PROJECT.parents[1]
VECTORS: dict[str, Any] = json.loads((ROOT / "docs" / "webhooks" / "vectors.json").read_text())
OF_NPM = {"express.ts", "fastify.ts"}  # import packages of npm
PROGRAMS = [
    *(
        path
        for folder in ("src", "examples", "tests")
        for path in sorted(PROJECT.glob(f"{folder}/*.ts"))
        if path.name not in OF_NPM
    ),
    ROOT / "docs" / "quickstart" / "quickstart.ts",
]
# Strict, and the checks beyond it that users may have switched on.
OWN = {"allowImportingTsExtensions", "declaration", "isolatedDeclarations", "noEmit"}  # of sources, not of their users
OPTIONS = {
    name: value
    for name, value in json.loads((PROJECT / "tsconfig.json").read_text())["compilerOptions"].items()
    if value is True and name not in OWN
}


def test_the_package_has_the_same_bytes_each_time_and_nothing_of_this_machine(tmp_path: Path) -> None:
    first = package().read_bytes()
    command = [sys.executable, "-P", str(PROJECT / "pack.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    packed = Path(done.stdout.strip())
    assert packed.read_bytes() == first
    about = json.loads((PROJECT / "package.json").read_text())
    with tarfile.open(packed) as archive:
        texts = {member.name: archive.extractfile(member).read().decode() for member in archive}  # type: ignore[union-attr]
    modules = {path.stem for path in PROJECT.glob("src/*.ts")}
    assert set(texts) == {
        *(f"package/{name}" for name in ("CHANGELOG.md", "LICENSE", "README.md", "package.json")),
        *(f"package/dist/{module}{ending}" for module in modules for ending in (".js", ".d.ts")),
    }
    assert not [name for name, text in texts.items() if "file://" in text or str(ROOT) in text]
    assert not [name for name, text in texts.items() if "/dist/" in name and re.search(r'from "[^"]*\.ts"', text)]
    assert {"dependencies", "devDependencies", "scripts"}.isdisjoint(about)
    assert texts["package/LICENSE"] == (ROOT / "LICENSE").read_text()
    assert f'VERSION = "{about["version"]}"' in texts["package/dist/core.js"]
    assert f"## {about['version']}" in texts["package/CHANGELOG.md"]
    assert texts["package/README.md"].startswith("```ts\n") and texts["package/README.md"].splitlines()[3] == "```"


def test_the_client_has_20_kB_at_most(tmp_path: Path) -> None:
    """Bundled, minified and compressed by gzip, as pages that count packages show it."""
    bundled = tmp_path / "client.js"
    done = deno("bundle", "--minify", "--output", str(bundled), str(PROJECT / "src" / "index.ts"))
    assert done.returncode == 0, done.stderr
    assert 5_000 < len(gzip.compress(bundled.read_bytes())) <= 20_000


def test_an_error_has_the_field_and_the_page_that_the_headers_name(tmp_path: Path) -> None:
    program = tmp_path / "errors.ts"
    program.write_text(
        'import { Makeready, errors } from "@makeready/client";\n'
        'const body = JSON.stringify({ error: { code: "invalid_request", message: "No." } });\n'
        'for (const headers of [{}, { "Service-Error-Param": "title", Link: \'<https://h/d#e>; rel="help"\' }]) {\n'
        "  const fetch = async () => new Response(body, { status: 422, headers });\n"
        '  const client = new Makeready({ apiKey: "k", baseUrl: "https://h/api/v1", fetch });\n'
        "  const error: any = await client.whoami().catch((caught: unknown) => caught);\n"
        "  console.log(JSON.stringify([error instanceof errors.InvalidRequest, error.param, error.docUrl]));\n"
        "}\n"
    )
    done = node(tmp_path, program, runtime="the wheel's node")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        [True, None, None],
        [True, "title", "https://h/d#e"],
    ]


def test_sources_examples_and_the_readme_have_strict_types(tmp_path: Path) -> None:
    """As deno checks them, which has the compiler of TypeScript."""
    imports = {"@makeready/client": (PROJECT / "src" / "index.ts").as_uri()}
    imports |= {"@makeready/client/testing": (PROJECT / "src" / "testing.ts").as_uri()}
    config = tmp_path / "deno.json"
    config.write_text(json.dumps({"compilerOptions": OPTIONS, "imports": imports}))
    blocks = re.findall(r"```ts\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    readme = tmp_path / "readme.ts"
    body = "".join(re.sub(r"^import .*\n", "", program, flags=re.MULTILINE) + "}{\n" for program in blocks)
    readme.write_text(
        'import { DatabaseSync } from "node:sqlite";\n'
        'import { type Batch, Makeready, Mirror, SqliteStore, errors, webhooks } from "@makeready/client";\n'
        'import { SECRET, fakeApi, record, signed } from "@makeready/client/testing";\n'
        "const client = new Makeready();\n"
        "declare const [cursor, rawBody, request, secret]: [string, Uint8Array, Request, string];\n"
        "declare const snapshot: { resumeCursor: string };\n"
        "declare function handle(one: unknown): Promise<void>;\ndeclare function store(one: unknown): Promise<void>;\n"
        f"{{{body}}}\nvoid [DatabaseSync, Makeready, errors, webhooks, cursor, snapshot];\n"
        "void [SECRET, fakeApi, record, signed];\n"
    )
    done = deno("check", "--config", str(config), *map(str, PROGRAMS), str(readme))
    assert done.returncode == 0, done.stdout + done.stderr


def test_tsc_finds_the_packages_types_strict(tmp_path: Path) -> None:
    """With the compiler of npm, on the packed declarations."""
    # The first types of Node with node:sqlite.
    from_npm(tmp_path, "typescript@5", "@types/node@22", "express@5", "@types/express@5", "fastify@5")
    installed(tmp_path)
    programs = [*PROJECT.glob("examples/*.ts"), ROOT / "docs" / "quickstart" / "quickstart.ts"]
    programs.append(PROJECT / "tests" / "testing.ts")
    for program in programs:
        shutil.copy(program, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    options = OPTIONS | {"module": "nodenext", "target": "es2022", "noEmit": True, "types": ["node"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "include": ["*.ts"]}))
    command = [str(tmp_path / "node_modules" / ".bin" / "tsc"), "--project", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize("runtime", ["the wheel's node", "the machine's node", "deno"])
def test_every_vector_is_judged_right(tmp_path: Path, runtime: str) -> None:
    vectors = [*VECTORS["vectors"], *VECTORS["standard"]["vectors"]]
    lines = "".join(json.dumps(vector) + "\n" for vector in vectors)
    program = PROJECT / "tests" / "judge.ts"
    done = node(tmp_path, program, runtime=runtime, stdin=lines)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {vector["name"]: vector["accept"] for vector in vectors}
    assert len(vectors) > 40


@pytest.mark.parametrize("runtime", ["the wheel's node", "deno"])
def test_a_mirror_gives_its_store_batches_and_begins_again_where_it_must(tmp_path: Path, runtime: str) -> None:
    done = node(tmp_path, PROJECT / "tests" / "mirror.ts", runtime=runtime)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "gone records go": [[2, 2, 0, 0], [2, 3], 1],
        "an expired cursor": [1, [3], {"units": "9"}],
        "a batch that fails": ["RangeError: full", {}, 0, 2, 2],
        "following ends with what repeating would not change": [
            "KeyRevoked: 401 key_revoked: Ask for a new one.",
            [1, 2, 3, 3],
        ],
        "an outage is outlasted": ["Error: enough", [1, 2, 3]],
        "kinds": ["units,tickets", "TypeError: no such kinds: cats"],
        "read in part": [True, [True]],
    }


def test_programs_are_given_records_deliveries_and_an_api_for_their_tests(tmp_path: Path) -> None:
    done = node(tmp_path, PROJECT / "tests" / "testing.ts")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "records": [
            ["Tap", "Elm Court", 1, None, "Kitchen tap drips"],
            [3, "On Hold"],
            "TypeError: Ticket.property has no field nam",
            "TypeError: the contract has no example of Tickets",
        ],
        "deliveries": [True, "ticket.created", "ticket.created", "SignatureInvalid", "SignatureInvalid"],
        "what is written is read again": [
            ["Tap", "Open", "Loft", 7],
            [True, True],
            [True, True, None, [True]],
            [True, False, "NotFound"],
        ],
        "lists have pages and mirrors copies": [[3, 3, 2], 8, {"units": 2}, None, 9],
        "events": 10,
        "refusals": [
            [2, {"unit_id": 4, "title": "Tap", "category": "Leak"}],
            [True, True],
            "TypeError: no such code: nonsense",
            "TypeError: no list has records of the type cat",
            ["read", "InsufficientScope"],
            "Unauthorized",
            "AbortError",
        ],
    }


def test_an_unknown_format_of_a_body_or_no_secret_is_a_mistake_of_the_program(tmp_path: Path) -> None:
    program = tmp_path / "mistakes.ts"
    program.write_text(
        'import { webhooks } from "@makeready/client";\n'
        "const of = (...given: any[]) =>\n"
        "  (webhooks.verify as any)(...given).then(String, (error: Error) => error.name);\n"
        'console.log(JSON.stringify([await of({}, "", "s"), await of("", "", ""), await of("", "", []), '
        'await of("", {}, "s"), await of(new ArrayBuffer(0), new Headers(), "s"), await of("", null, "s"), '
        'await of("", 7, "s"), await of("", [7, ["a"]], "s"), await of("", { "service-signature": 7 }, "s")]));\n'
    )
    done = node(tmp_path, program, runtime="the wheel's node")
    assert json.loads(done.stdout) == ["TypeError"] * 3 + ["SignatureInvalid"] * 6


def test_headers_are_taken_as_programs_have_them(tmp_path: Path) -> None:
    """A Map, pairs, those of another fetch, and those of node:http, whose values may be lists."""
    vector = next(vector for vector in VECTORS["vectors"] if vector["accept"])
    program = tmp_path / "headers.ts"
    program.write_text(
        'import { webhooks } from "@makeready/client";\n'
        f"const vector = {json.dumps(vector)};\n"
        "const pairs: [string, string][] = "
        '[["Content-Type", "application/json"], ["Service-Signature", vector.header]];\n'
        "class Foreign { *[Symbol.iterator]() { yield* pairs; } }\n"
        "const taken = [new Headers(pairs), new Map(pairs), pairs, new Foreign(), Object.fromEntries(pairs), "
        '{ "service-signature": [vector.header] }, vector.header];\n'
        "for (const headers of taken) {\n"
        "  const event = await webhooks.verify(vector.body, headers, vector.secret, vector.received_at);\n"
        "  console.log(event.event);\n"
        "}\n"
    )
    done = node(tmp_path, program, runtime="the wheel's node")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [json.loads(vector["body"])["event"]] * 7


def test_the_environment_is_not_needed(tmp_path: Path) -> None:
    program = tmp_path / "without.ts"
    program.write_text(
        'import { Makeready } from "@makeready/client";\n'
        'const named = (f: () => unknown) => { try { f(); return ""; } catch (error) { return String(error); } };\n'
        'console.log(JSON.stringify([named(() => new Makeready()), named(() => new Makeready({ apiKey: "k", '
        'baseUrl: "http://x/api/v1" }))]));\n'
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKEREADY_")}
    done = node(tmp_path, program, runtime="the wheel's node", environment=environment)
    missing, present = json.loads(done.stdout)
    assert missing == "TypeError: no API key: give apiKey, or set MAKEREADY_API_KEY" and present == ""


def test_the_example_of_a_receiver_takes_what_is_genuine_once(tmp_path: Path) -> None:
    installed(tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copy(PROJECT / "examples" / "receive.ts", tmp_path)
    port = free_port()
    vector = next(vector for vector in VECTORS["standard"]["vectors"] if vector["name"] == "standard_non_ascii")
    command = [wheels_node(), str(tmp_path / "receive.ts"), str(port)]
    environment = os.environ | {"WEBHOOK_SECRET": vector["secret"]}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "listening\n"
            body = vector["body"].encode()
            at = datetime.datetime.now(datetime.UTC)
            signature = Webhook(vector["secret"]).sign(vector["headers"]["webhook-id"], at, vector["body"])
            headers = vector["headers"] | {
                "webhook-timestamp": str(int(at.timestamp())),
                "webhook-signature": signature,
            }
            answers = [post(port, body, headers), post(port, body, headers), post(port, body + b" ", headers)]
        finally:
            process.terminate()
        assert answers == [204, 204, 401]
        assert process.stdout.read().splitlines() == ["ticket.created Wasserhahn tropft \u2013 \u6f0f\u6c34 \U0001f6bf"]


def post(port: int, body: bytes, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()
