"""``python -m quorate.scripts.exploration``."""

import sys

from quorate.scripts.exploration.command import app
from quorate.scripts.terminal.command_line import run

if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/test --explore")
