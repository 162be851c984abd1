"""The names in deploy/README.md exist: files, Secrets and their keys, metrics."""

import re
from pathlib import Path

from makeready_cli import program
from makeready_cli.installation import rotation

from .manifests import Bundle

ROOT = Path(__file__).parents[3]
HANDBOOK = (ROOT / "deploy/README.md").read_text()
SOURCES = ("chassis", "gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")


def test_every_metric_of_the_handbook_is_in_the_code() -> None:
    code = {
        name
        for project in SOURCES
        for path in (ROOT / project).rglob("*.py")
        if "tests" not in path.parts
        for name in re.findall(r'"(makeready_[a-z_]+)"', path.read_text())
    }
    named = set(re.findall(r"\bmakeready_[a-z_]+", HANDBOOK))
    assert named
    assert named - code == set()


def test_the_table_of_secrets_is_what_the_example_makes(as_read: Bundle) -> None:
    rows = re.findall(r"^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \| (.+) \|$", HANDBOOK.split("## The ingress")[0], re.MULTILINE)
    environment = {
        name: set(re.findall(r"`([a-z.-]+)`", keys.split(";")[0]))
        for names, keys in rows
        for name in re.findall(r"`([a-z-]+)`", names)
        if name not in ("base", "base/bootstrap", "base/migrations", "base/operator")
    }
    of_the_example = {
        manifest["metadata"]["name"]: set(as_read.values("Secret", manifest["metadata"]["name"]))
        for manifest in as_read.of("Secret")
    }
    (ingress,) = as_read.of("Ingress")
    of_the_ingress = {entry["secretName"]: {"tls.crt", "tls.key"} for entry in ingress["spec"]["tls"]}
    assert environment == of_the_example | of_the_ingress


def blocks() -> list[str]:
    """The commands of each block, with continued lines as one."""
    fenced = re.findall(r"^```\n(.*?)^```$", HANDBOOK, re.MULTILINE | re.DOTALL)
    return [re.sub(r" \\\n *", " ", block) for block in fenced]


def test_files_of_the_handbook_exist() -> None:
    """A block's folder is the example's, unless it goes to another."""
    for block in blocks():
        place = re.search(r"^cd (\S+)", block, re.MULTILINE)
        folder = ROOT / (place[1] if place else "deploy/k8s/overlays/example")
        for name in re.findall(r"-k ([a-z./-]+)", block):
            assert (folder / name / "kustomization.yaml").exists(), name
    for name in re.findall(r"`((?:components|overlays|base)/[a-z/-]+)`", HANDBOOK):
        assert (ROOT / "deploy/k8s" / name / "kustomization.yaml").exists(), name


def test_the_handbooks_commands_about_secrets_are_understood() -> None:
    text = "\n".join([*blocks(), *re.findall(r"`(makeready [^`]+)`", HANDBOOK)])
    commands = [words.split("|")[0].split() for words in re.findall(r"makeready (secrets [a-z]+ [^\n#]+)", text)]
    assert {line[1] for line in commands} == {"init", "rotate", "manifests"}
    parser = program.parser()
    for line in commands:
        words = ["cursor-keys" if word == "NAME" else word for word in line]
        assert parser.parse_args(words).command == "secrets", words


def test_the_handbook_says_of_each_name_how_it_is_rotated() -> None:
    rows = HANDBOOK.split("| NAME | accepted at once")[1].split("\n\n")[0]
    named = set(re.findall(r"`([a-z-]+)`", rows))
    assert named <= set(rotation.names())
    groups = {"identity-", "database-g", "database-s", "database-c"}
    unnamed = {name for name in set(rotation.names()) - named if not name.startswith(tuple(groups))}
    assert unnamed == set()
    for ring in rotation.KEYS:
        assert HANDBOOK.count(f"| `{ring}` |") == 1, ring


def test_the_secrets_of_the_store_are_the_table(as_read: Bundle) -> None:
    (block,) = [command for command in blocks() if "vault kv put" in command]
    (names,) = re.findall(r"for name in (.*);", block)
    assert set(names.split()) == {secret["metadata"]["name"] for secret in as_read.of("Secret")} - {"valkey"}
