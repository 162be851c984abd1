"""Loads the plugin that gives every test real servers."""

import signal

# Two folders bear the names of the packages in them: pytest would take the folder for the package.
import chassis  # noqa: F401
import gateway  # noqa: F401

pytest_plugins = ["testkit.plugin"]

# A job that a script puts in the background ignores Ctrl-C, and so would every process that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
