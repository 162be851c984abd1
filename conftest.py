"""Loads the plugin that gives every test real servers."""

pytest_plugins = ["makeready_local.testing"]
