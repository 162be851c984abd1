"""`python -m makeready_local.webhook_demo`: the program of `make demo`."""

import argparse
import signal
import sys


def main() -> int:
    """Returns the exit status: 0 finished or stopped, 1 failed, 2 usage."""
    # Until the demo handles signals there is nothing to stop: end at once, without a stack trace.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from makeready_local.children import LocalError  # noqa: PLC0415 - only now, for the reason above
    from makeready_local.runner import complain, say  # noqa: PLC0415
    from makeready_local.signals import Interrupted, Signals  # noqa: PLC0415
    from makeready_local.webhook_demo.installation import Installation  # noqa: PLC0415
    from makeready_local.webhook_demo.screen import Screen  # noqa: PLC0415
    from makeready_local.webhook_demo.story import Story  # noqa: PLC0415

    parser = argparse.ArgumentParser(prog="make demo", description="Shows signed deliveries, a failure and its retry.")
    parser.add_argument("--once", action="store_true", help="end after the story")
    arguments = parser.parse_args()
    signals = Signals()
    installation: Installation | None = None
    status = 0
    try:
        installation = Installation()
        Story(Screen(), installation).run(once=arguments.once)
    except Interrupted:
        pass
    except LocalError as error:
        complain(str(error))
        status = 1
    except OSError as error:
        complain(f"{error.strerror}: {error.filename}" if error.filename else str(error))
        status = 1
    finally:
        signals.stopping = True
        if installation is not None:
            say("\nStopping." if status == 0 else f"\nStopping. What it wrote stays in {installation.folder} for now.")
            installation.stop(remove=status == 0)
    return status


if __name__ == "__main__":
    sys.exit(main())
