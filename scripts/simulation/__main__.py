"""``python -m quorate.scripts.simulation``."""

import sys

from quorate.scripts.simulation.command import app
from quorate.scripts.terminal.command_line import run

if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/simulate")
