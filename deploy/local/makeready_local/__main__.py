"""`python -m makeready_local`: what `make run` runs."""

import os
import sys

from makeready_local import config
from makeready_local.runner import Runner, complain


def main() -> int:
    """Returns the exit status: 0 stopped when told, 1 failed, 2 a bad setting."""
    try:
        settings = config.read(os.environ)
    except config.SettingsError as error:
        complain(str(error))
        return 2
    return Runner(settings).run()


if __name__ == "__main__":
    sys.exit(main())
