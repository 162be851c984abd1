"""An installation's manifests with freshly made secrets: as read from the files, and as rendered."""

import shutil
import sys
from pathlib import Path

import pytest

from testkit.requirements import lacks

sys.path.insert(0, str(Path(__file__).parent))  # for the tests' own modules

from .manifests import K8S, Bundle, build, make_secrets, read, render, renderer

PARTS = ("migrations", "operator", "bootstrap", ".")


@pytest.fixture(scope="session")
def k8s(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of deploy/k8s whose example overlay has secrets."""
    return with_secrets(tmp_path_factory.mktemp("deploy") / "k8s")


@pytest.fixture(scope="session")
def k8s_ha(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, with secrets for three servers of NATS; the overlay `tls` is example-ha with TLS."""
    folder = with_secrets(tmp_path_factory.mktemp("deploy-ha") / "k8s", "--nats-servers", "3")
    (folder / "overlays/tls").mkdir()
    (folder / "overlays/tls/kustomization.yaml").write_text(TLS)
    return folder


# As an operator would have it, but for the Secret, which cert-manager or the operator makes.
TLS = """apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: makeready
resources: [../example-ha]
components: [../../components/nats-tls]
secretGenerator:
  - name: nats-tls
    literals: [tls.crt=1, tls.key=2, ca.crt=3]
"""


def with_secrets(folder: Path, *arguments: str) -> Path:
    shutil.copytree(K8S, folder, ignore=shutil.ignore_patterns("tests", "secrets", "__pycache__"))
    (folder / "ca.pem").write_text("-- some certificate --\n")
    options = ["--database-host", "db.example:5432", "--database-ca", str(folder / "ca.pem"), *arguments]
    done = make_secrets(folder / "overlays/example/settings/secrets", *options)
    assert done.returncode == 0, done.stderr
    ring = folder / "overlays/example/settings/secrets/identity/ring.jwks"
    shutil.copy(ring, folder / "overlays/example-external-secrets/settings")
    return folder


@pytest.fixture(scope="session")
def ha(k8s_ha: Path) -> Bundle:
    """The example installation with three servers of NATS, as built here."""
    return build(
        *(
            k8s_ha / "overlays" / part
            for part in ("example/migrations", "example/operator", "example/bootstrap", "example-ha")
        )
    )


@pytest.fixture(scope="session")
def tls(k8s_ha: Path) -> Bundle:
    """The same, with TLS."""
    return build(*(k8s_ha / "overlays" / part for part in ("example/migrations", "example/operator", "tls")))


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


@pytest.fixture(scope="session", params=["as_read", "as_rendered", "ha"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    """The example installation, both ways, and with three servers of NATS."""
    installation: Bundle = request.getfixturevalue(request.param)
    return installation
