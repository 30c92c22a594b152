"""Ctrl-C while a command imports its libraries: the process ends at once, for there is nothing yet to put in order.

As an exception it would leave some library as a stack trace; or be lost, where it strikes in a callback of the
interpreter, and the command would go on as if nobody had wanted it to end.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from quorate.scripts.terminal import exit_codes


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Ctrl-C ends the process while the block lasts; where it is ignored, as in a shell's background, it stays so."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(exit_codes.INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
