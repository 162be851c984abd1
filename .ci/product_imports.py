"""Imports every module of the product, where only requirements.lock is installed: no test package may be needed."""

import importlib
import importlib.util
import pkgutil
import sys

PACKAGES = (
    "chassis",
    "gateway",
    "svc_catalog",
    "svc_tickets",
    "svc_occupancy",
    "svc_webhooks",
    "makeready_cli",
    "makeready_local",
)


def main() -> None:
    """Raises what an import raises."""
    if importlib.util.find_spec("pytest"):
        sys.stdout.write("skipped: .venv holds the test packages too; a fresh clone shows it\n")
        return
    for name in PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            # A package's migrations and its __main__ do their work when they are imported.
            if not module.name.endswith("__main__") and ".migrations" not in module.name:
                importlib.import_module(module.name)
    sys.stdout.write("every module can be imported without the test packages\n")


if __name__ == "__main__":
    main()
