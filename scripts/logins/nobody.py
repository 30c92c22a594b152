"""Words for whoever asks without being logged in: few things are shown to him, and not that there are more."""

from __future__ import annotations

import sys
from typing import Final

from quorate.controller.decisions.origin import ANONYMOUS

HOW_TO_LOG_IN: Final = "nobody is logged in: quorate login USER"


def is_refused_to_nobody(sentence: str) -> bool:
    """Whether a refusal names a right that nobody in particular lacks."""
    return f"{ANONYMOUS} needs" in sentence


def say_what_is_hidden(shown_to: str | None, *, is_empty: bool) -> None:
    """A line for people where others may be shown more: always to who is not logged in, else where nothing is shown.

    ``shown_to``: the principal that is shown what it may describe; None: all is shown.
    """
    if shown_to is None or (shown_to != ANONYMOUS and not is_empty):
        return
    how = f"; {HOW_TO_LOG_IN}" if shown_to == ANONYMOUS else ""
    sys.stderr.write(f"quorate: only topics that {shown_to} may describe are shown{how}\n")
