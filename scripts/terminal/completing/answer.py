"""The answer to a shell that asks for the words by which a line goes on.

This is all that the process does, and somebody who types waits for it: it imports what it needs for this line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.completing.grammar import Grammar
from quorate.scripts.terminal.completing.kinds import NameKind
from quorate.scripts.terminal.completing.typed_line import TypedLine, taken_apart, understood


def answer(line: str) -> NoReturn:
    """Write the words that may stand at the end of a line, one each, and end the process; in silence whatever happens.

    Args:
        line: with the command's own name, up to the cursor.
    """
    # Whatever is written there would stand in the line that somebody types.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    for word in words_for(line):
        sys.stdout.write(f"{word}\n")
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    # An end in order waits for threads: one may look a host name up that no resolver answers for.
    os._exit(exit_codes.DONE)


def words_for(line: str) -> list[str]:
    """The words, of a line that may be anything."""
    words = taken_apart(line)
    # A mistake in the line is no matter of ours before it is run.
    with suppress(Exception):
        grammar = Grammar.read()
        typed = understood(words[1:-1], grammar)
        if words and typed is not None:
            return _fitting(typed, words, grammar)
    return []


def _fitting(typed: TypedLine, words: Sequence[str], grammar: Grammar) -> list[str]:
    """The words that fit at the end of a line.

    Raises:
        Anything: there are none.
    """
    offered, begin = typed.next_words(words[-1])
    kind = next((one for one in NameKind if [one] == [*offered]), None)
    if kind is None:
        return [word for word in offered if word.startswith(begin)]
    from quorate.scripts.terminal.completing.names import names_of
    from quorate.scripts.terminal.places.chosen import chosen_environment, kept_contexts
    from quorate.scripts.terminal.places.environment import own_environment, replace_environment

    with own_environment():
        # As in a command: nothing of the environment is shown to a cluster that it is not for.
        replace_environment(chosen_environment(words[1:-1], os.environ, kept_contexts))
        return names_of(kind, typed, begin, grammar)
