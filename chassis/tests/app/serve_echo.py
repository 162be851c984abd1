"""`python serve_echo.py` runs `tests.app.echo`. It needs no PYTHONPATH, so a warm parent can fork it."""

import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
runpy.run_module("tests.app.echo", run_name="__main__", alter_sys=True)
