"""``python -m quorate.scripts.conformance_runner``."""

import sys

from quorate.scripts.conformance_runner.command import app
from quorate.scripts.terminal.command_line import run

if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/conformance")
