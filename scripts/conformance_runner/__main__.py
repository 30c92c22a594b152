"""``python -m scripts.conformance_runner``."""

import sys

from scripts.command_line import run
from scripts.conformance_runner.command import app

if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/conformance")
