"""Loads the plugin that provides real servers to every test."""

import signal

# Some folders have the name of the package in them: pytest would import the folder as the package.
import chassis  # noqa: F401
import console  # noqa: F401
import gateway  # noqa: F401
import importing  # noqa: F401

pytest_plugins = ["testkit.plugin"]

# A script's background job ignores Ctrl-C, and its children inherit that: tests could not interrupt their processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
