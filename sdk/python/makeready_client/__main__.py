"""`python -m makeready_client`: the command line, where its script is not on the PATH."""

import sys

from makeready_client.cli import main

sys.exit(main())
