"""``python -m quorate.scripts.conformance_runner``."""

import sys

from quorate.scripts.command_line import run
from quorate.scripts.conformance_runner.command import app

if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/conformance")
