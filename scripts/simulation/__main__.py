"""``python -m quorate.scripts.simulation``."""

import sys

from quorate.scripts.command_line import run
from quorate.scripts.simulation.command import app

if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/simulate")
