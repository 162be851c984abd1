"""How many files and connections a process may have open."""

from __future__ import annotations

import subprocess
import sys

MORE_FILES = """
import resource
from chassis.runtime import open_files

_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 128), most))
print(open_files.allow_many() in (most, open_files.UNLIMITED))
print(resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most))
"""


def test_as_many_files_are_asked_for_as_the_machine_grants() -> None:
    """With the usual limit, connections that hang would use up the descriptors of the others."""
    process = subprocess.run(
        [sys.executable, "-P", "-c", MORE_FILES], capture_output=True, text=True, timeout=60, check=False
    )
    assert process.stdout == "True\nTrue\n", process.stderr
