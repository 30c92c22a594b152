"""``python -m scripts.fuzzing``."""

from scripts.fuzzing.command import app

if __name__ == "__main__":
    app()
