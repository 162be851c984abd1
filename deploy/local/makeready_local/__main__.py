"""`python -m makeready_local`: the program of `make run`."""

import os
import signal
import sys


def main() -> int:
    """Returns the exit status: 0 stopped by a signal, 1 failed, 2 a bad setting."""
    # Until the runner handles signals there is nothing to stop: end at once, without a stack trace.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from makeready_local import config  # noqa: PLC0415 - only now, for the reason above
    from makeready_local.forks import Forks  # noqa: PLC0415
    from makeready_local.runner import Runner, complain  # noqa: PLC0415

    try:
        settings = config.read(os.environ)
    except config.SettingsError as error:
        complain(str(error))
        return 2
    return Runner(settings).run(Forks())


if __name__ == "__main__":
    sys.exit(main())
