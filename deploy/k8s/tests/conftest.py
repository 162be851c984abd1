"""An installation's manifests with freshly made secrets: as read from the files, and as rendered."""

import shutil
import sys
from pathlib import Path

import pytest

from testkit.requirements import lacks

sys.path.insert(0, str(Path(__file__).parent))  # for the tests' own modules

from .manifests import K8S, Bundle, make_secrets, read, render, renderer

PARTS = ("migrations", "operator", "bootstrap", ".")


@pytest.fixture(scope="session")
def k8s(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of deploy/k8s whose example overlay has secrets."""
    folder = tmp_path_factory.mktemp("deploy") / "k8s"
    shutil.copytree(K8S, folder, ignore=shutil.ignore_patterns("tests", "secrets", "__pycache__"))
    (folder / "ca.pem").write_text("-- some certificate --\n")
    secrets = folder / "overlays/example/settings/secrets"
    done = make_secrets(secrets, "--database-host", "db.example:5432", "--database-ca", str(folder / "ca.pem"))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def base(k8s: Path) -> Bundle:
    """The base alone, as read."""
    return read(*(k8s / "base" / part for part in PARTS))


@pytest.fixture(scope="session")
def as_read(k8s: Path) -> Bundle:
    """The example installation, without its patches."""
    return read(*(k8s / "overlays/example" / part for part in PARTS))


@pytest.fixture(scope="session")
def as_rendered(k8s: Path) -> Bundle:
    """The example installation as kubectl would apply it."""
    command = renderer()
    if command is None:
        lacks("kubectl", "neither kubectl nor kustomize is on this machine; the files were checked as read")
    return render(command, *(k8s / "overlays/example" / part for part in PARTS))


@pytest.fixture(scope="session", params=["as_read", "as_rendered"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    """The example installation, both ways."""
    found: Bundle = request.getfixturevalue(request.param)
    return found
