"""``python -m scripts.fuzzing``."""

import sys

from scripts.command_line import run
from scripts.fuzzing.command import app

if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/fuzz")
