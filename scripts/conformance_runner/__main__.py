"""``python -m scripts.conformance_runner``."""

from scripts.conformance_runner.command import app

if __name__ == "__main__":
    app(prog_name="scripts/conformance")
