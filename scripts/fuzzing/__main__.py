"""``python -m quorate.scripts.fuzzing``."""

import sys

from quorate.scripts.fuzzing.command import app
from quorate.scripts.terminal.command_line import run

if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/fuzz")
