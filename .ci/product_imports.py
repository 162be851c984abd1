"""Imports every module of the product with only requirements.lock installed: it may need no test package."""

import importlib
import importlib.util
import pkgutil
import sys

PACKAGES = (
    "chassis",
    "gateway",
    "console",
    "svc_catalog",
    "svc_tickets",
    "svc_occupancy",
    "svc_webhooks",
    "importing",
    "makeready_cli",
    "makeready_local",
)


def main() -> None:
    """Imports the modules; raises the error of a failed import."""
    if importlib.util.find_spec("pytest"):
        sys.stdout.write("skipped: .venv holds the test packages too; a fresh clone shows it\n")
        return
    for name in PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            # Migrations and `__main__` run when they are imported.
            if not module.name.endswith("__main__") and ".migrations" not in module.name:
                importlib.import_module(module.name)
    sys.stdout.write("every module can be imported without the test packages\n")


if __name__ == "__main__":
    main()
