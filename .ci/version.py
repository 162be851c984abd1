"""The version of a release, which every artefact bears: `python .ci/version.py check`, or `… X.Y.Z` writes another one.

Its one source is the workspace's pyproject.toml. The projects, the client libraries, the image's labels, the manifests
and the handbook's commands repeat it. The API's document does not: the contract has a date of its own.

`… images NAME=sha256:DIGEST …` writes digests of images into the manifests, once the release's image is pushed: a tag
can be moved, a digest cannot. Another version takes the digest of our image away, which is that of the last release.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = "pyproject.toml"
NUMBER = r"\d+\.\d+\.\d+"
# By place below the root: what stands before the version.
PLACES = {
    "sdk/typescript/package.json": '^  "version": "',
    "sdk/typescript/src/core.ts": '^export const VERSION = "',
    "sdk/python/makeready_client/exchange.py": '^__version__ = "',
    "docs/clients.md": "/makeready_client-|/makeready-client-",
    "sdk/python/README.md": "/makeready_client-",
    "sdk/typescript/README.md": "/makeready-client-",
    "deploy/Dockerfile": "^ARG VERSION=|-t makeready:",
    "deploy/README.md": r"registry\.example/makeready:",
    "deploy/k8s/base/**/*.yaml": r"^ +app\.kubernetes\.io/version: ",
    "deploy/k8s/components/**/*.yaml": r"^ +app\.kubernetes\.io/version: ",
    "deploy/k8s/overlays/**/kustomization.yaml": r"newName: registry\.example/makeready\n    newTag: ",
}
# The version in these is that of another program.
OTHERS = {"deploy/k8s/base/nats.yaml"}
OWN_IMAGE = "makeready"
DIGEST = r"sha256:[0-9a-f]{64}"
# An image in a kustomization, as the manifests write it.
IMAGE = re.compile(
    r"(?P<head>^  - name: (?P<name>[a-z]+)\n    newName: .+\n    newTag: .+\n)(?:    digest: (?P<digest>.*)\n)?",
    re.MULTILINE,
)


def main(words: list[str], root: Path) -> int:
    """Checks or writes; returns the exit status."""
    if words[:1] == ["images"]:
        return _pin_images(root, words[1:])
    if words != ["check"]:
        if len(words) != 1 or not re.fullmatch(NUMBER, words[0]):
            sys.stderr.write(f"{__doc__}")
            return 2
        write(root, words[0])
        return 0
    current = tomllib.loads((root / SOURCE).read_text())["project"]["version"]
    mentions = list(places(root))
    different = [
        f"{path.relative_to(root)}: {version} instead of {current}" for path, version in mentions if version != current
    ]
    different += [
        f"{pattern}: names no version"
        for pattern, before in patterns(root).items()
        if not _found(root, pattern, before)
    ]
    different += [
        f"{name}: has {' and '.join(sorted(digest or 'no digest' for digest in digests))} in the kustomizations"
        for name, digests in images(root).items()
        if len(digests) > 1 or not all(digest is None or re.fullmatch(DIGEST, digest) for digest in digests)
    ]
    sys.stdout.write("".join(f"{line}\n" for line in different))
    return 1 if different else 0


def images(root: Path) -> dict[str, set[str | None]]:
    """By the name of an image: its digests in all kustomizations; None where it has none."""
    digests: dict[str, set[str | None]] = {}
    for path in _kustomizations(root):
        for match in IMAGE.finditer(path.read_text()):
            digests.setdefault(match["name"], set()).add(match["digest"])
    return digests


def _kustomizations(root: Path) -> list[Path]:
    return sorted((root / "deploy/k8s").rglob("kustomization.yaml"))


def _pin_images(root: Path, words: list[str]) -> int:
    current, digests = images(root), dict[str, str]()
    for word in words:
        name, _, digest = word.partition("=")
        if name not in current or not re.fullmatch(DIGEST, digest):
            sys.stderr.write(f"{word}: not NAME=sha256:… with a NAME of {', '.join(sorted(current))}\n")
            return 2
        digests[name] = digest
    if not digests:
        sys.stderr.write(f"{__doc__}")
        return 2
    pin(root, digests)
    return 0


def pin(root: Path, digests: Mapping[str, str]) -> None:
    """Writes the digests of images into all kustomizations. An empty one goes; an image that is not named stays."""

    def image(match: re.Match[str]) -> str:
        digest = digests.get(match["name"], match["digest"])
        return match["head"] + (f"    digest: {digest}\n" if digest else "")

    for path in _kustomizations(root):
        text = path.read_text()
        new = IMAGE.sub(image, text)
        if new != text:
            path.write_text(new)


def patterns(root: Path) -> dict[str, str]:
    """By place: what stands before the version. The places that may have none are left out."""
    workspace = tomllib.loads((root / SOURCE).read_text())
    projects = [SOURCE, *(f"{member}/pyproject.toml" for member in workspace["tool"]["uv"]["workspace"]["members"])]
    optional = ("deploy/k8s/components/**/*.yaml",)
    return dict.fromkeys(projects, '^version = "') | {path: PLACES[path] for path in PLACES if path not in optional}


def places(root: Path) -> Iterator[tuple[Path, str]]:
    """Every place that repeats the version, with what it says."""
    for pattern, before in {**PLACES, **patterns(root)}.items():
        yield from _found(root, pattern, before)


def _files(root: Path, pattern: str) -> list[Path]:
    return [path for path in sorted(root.glob(pattern)) if path.relative_to(root).as_posix() not in OTHERS]


def _found(root: Path, pattern: str, before: str) -> list[tuple[Path, str]]:
    return [
        (path, match["version"])
        for path in _files(root, pattern)
        for match in re.finditer(rf"(?:{before})(?P<version>{NUMBER})", path.read_text(), re.MULTILINE)
    ]


def write(root: Path, version: str) -> None:
    """Writes the version everywhere."""
    for pattern, before in {**PLACES, **patterns(root)}.items():
        for path in _files(root, pattern):
            text = path.read_text()
            new = re.sub(rf"({before}){NUMBER}", rf"\g<1>{version}", text, flags=re.MULTILINE)
            if new != text:
                path.write_text(new)
    pin(root, {OWN_IMAGE: ""})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parents[1]))
