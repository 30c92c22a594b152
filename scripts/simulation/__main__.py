"""``python -m scripts.simulation``."""

from scripts.simulation.command import app

if __name__ == "__main__":
    app()
