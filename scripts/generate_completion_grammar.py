"""Write the grammar by which lines are completed: `python -m quorate.scripts.generate_completion_grammar`.

A test compares the file with what this makes.
"""

from __future__ import annotations

from quorate.scripts.cli.shell.completion_grammar import grammar_text
from quorate.scripts.terminal.completing.grammar import GRAMMAR_FILE


def main() -> None:
    """Write it."""
    GRAMMAR_FILE.write_text(grammar_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
