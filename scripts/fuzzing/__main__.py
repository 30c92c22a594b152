"""``python -m quorate.scripts.fuzzing``."""

import sys

from quorate.scripts.command_line import run
from quorate.scripts.fuzzing.command import app

if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/fuzz")
