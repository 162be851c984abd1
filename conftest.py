"""Loads the plugin that gives every test real servers."""

# Two folders bear the names of the packages in them: pytest would take the folder for the package.
import chassis  # noqa: F401
import gateway  # noqa: F401

pytest_plugins = ["makeready_local.testing"]
