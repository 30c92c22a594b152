"""One line on standard error about what takes long.

On a terminal it is there within a second and rewrites itself; elsewhere it is a line of its own every 10 s, and
nothing at all where the answer is for a program. Standard output is never touched. What is said meanwhile is said
through the line (``ProgressLine.say``), which goes on below.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from quorate.scripts.terminal.harmless import shown_name, terminal_of

#: Since the command began: what is over sooner is over before anybody wonders. What is begun later has a moment.
_FIRST_S: Final = 0.7
_MOMENT_S: Final = 0.2
#: About when that was: this is among the first that a command imports.
_BEGUN_S: Final = time.monotonic()
_REDRAW_S: Final = 0.25
#: In a file, or for a program that reads along.
_EACH_S: Final = 10.0
_COLUMNS_DEFAULT: Final = 80
#: Moves to the begin of the line and clears it (ECMA-48: EL).
_CLEAR: Final = "\r\x1b[K"

#: Whether the command's answer is for a program.
_IS_FOR_PROGRAMS: ContextVar[bool] = ContextVar("is_for_programs", default=False)
#: There is one line on a terminal: whoever waits within somebody's waiting says nothing.
_SHOWN: ContextVar[ProgressLine | None] = ContextVar("shown", default=None)


@contextmanager
def answering_programs(is_json: bool) -> Iterator[None]:
    """A block in which a command runs. ``is_json``: whether its answer is JSON, which programs read."""
    before = _IS_FOR_PROGRAMS.set(is_json)
    try:
        yield
    finally:
        _IS_FOR_PROGRAMS.reset(before)


class ProgressLine:
    """Drawn by a thread of its own, as what is waited for may keep the caller's busy."""

    def __init__(self, words: Callable[[], str]) -> None:
        """``words``: how far it is, on one line; called from another thread, so it only looks at numbers."""
        self._words = words
        self._stream = terminal_of(sys.stderr)
        self._is_terminal = sys.stderr.isatty()
        self._is_drawn = False
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._is_silent = not self._is_terminal and _IS_FOR_PROGRAMS.get()
        self._thread = threading.Thread(target=self._draw_again, name="progress", daemon=True)

    def say(self, sentence: str) -> None:
        """A sentence that stays, above the line: what somebody has to know, for whomever the answer is."""
        with self._writing:
            self._erase()
            self._write(f"quorate: {shown_name(sentence)}\n")

    def start(self) -> None:
        """Begin to look at the clock."""
        if not self._is_silent:
            self._thread.start()

    def end(self) -> None:
        """Take the line away, for good."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        with self._writing:
            self._erase()

    def _draw_again(self) -> None:
        pause_s = max(_FIRST_S - (time.monotonic() - _BEGUN_S), _MOMENT_S) if self._is_terminal else _EACH_S
        while not self._ended.wait(pause_s):
            with self._writing:
                self._draw()
            pause_s = _REDRAW_S if self._is_terminal else _EACH_S

    def _draw(self) -> None:
        words = f"quorate: {shown_name(self._words())}"
        if not self._is_terminal:
            self._write(f"{words}\n")
            return
        self._is_drawn = True
        self._write(f"{_CLEAR}{words[: _columns(self._stream.fileno()) - 1]}")

    def _erase(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._ended.set()  # nobody reads any more: what is waited for goes on


def _columns(fileno: int) -> int:
    try:
        return os.get_terminal_size(fileno).columns or _COLUMNS_DEFAULT
    except OSError:
        return _COLUMNS_DEFAULT


@contextmanager
def telling(words: Callable[[float], str]) -> Iterator[ProgressLine]:
    """While the block lasts, tell how far it is. ``words`` are given the seconds since it began.

    Within another such block nothing is drawn, and what is said is said through the line that is there.
    """
    outer = _SHOWN.get()
    if outer is not None:
        yield outer
        return
    began = time.monotonic()
    line = ProgressLine(lambda: words(time.monotonic() - began))
    shown = _SHOWN.set(line)
    line.start()
    try:
        yield line
    finally:
        _SHOWN.reset(shown)
        line.end()
