"""Transcripts that show a session at a shell: their commands are run, and what they print is compared or written down.

A session is all fenced blocks of a document whose language is `console`, in one directory. A line that begins with
`$ ` is a command for bash; what follows up to the next one is what it prints. Standard error is there where it fails:
else it holds what is said while one waits, which depends on the machine. `[exit code N]` ends it where N is not 0. A
command that ends with ` &` goes on until the end of the session; the next one is run as soon as a line of it has the
word `ready`, which is all that is shown of it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol

_FENCE: Final = "```"
_BLOCK: Final = "```console"
_PROMPT: Final = "$ "

#: Words that are other ones in every run.
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)")
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,6})?")
_ID: Final = re.compile(r"(undo:)?[0-9a-f]{16}(:\d{1,3})?|plan:[0-9a-f]{8}|[A-Za-z0-9_-]{22}")
_ADDRESS: Final = re.compile(r"(https?://)?127\.0\.0\.1:\d{1,5}")
#: Behind a number that is another one in every run, and before one; so are offsets, beside a time.
_UNITS: Final = frozenset({"ms", "s", "min", "h"})
_COUNTED: Final = frozenset({"offset", "offsets", "after", "epoch", "watermark", "controller"})
_PUNCTUATION: Final = "()[],.;:"
_RULES: Final = frozenset("─-")


@dataclass(frozen=True, slots=True)
class Command:
    """A command and what it printed, line by line."""

    text: str
    output: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A document cut at its sessions: prose as lines, blocks as their commands."""

    parts: tuple[str | tuple[Command, ...], ...]

    @property
    def commands(self) -> Iterator[Command]:
        """All commands in order."""
        return chain.from_iterable(part for part in self.parts if not isinstance(part, str))

    def with_commands(self, commands: Sequence[Command]) -> Transcript:
        """The same document with other output. One for each of its commands, in order."""
        left = iter(commands)
        parts = (part if isinstance(part, str) else tuple(next(left) for _ in part) for part in self.parts)
        return Transcript(tuple(parts))

    @property
    def text(self) -> str:
        """The document as it is written down."""
        return "".join(f"{line}\n" for line in chain.from_iterable(map(_lines, self.parts)))


class SessionShell(Protocol):
    """Runs commands."""

    def run(self, command: str) -> Sequence[str]:
        """The lines that a command printed, with its exit code as the last one where it is not 0."""
        ...


def parse(text: str) -> Transcript:
    """A document from its text."""
    lines = iter(text.splitlines())
    return Transcript(tuple(_commands(lines) if line == _BLOCK else line for line in lines))


def replayed(document: Transcript, shell: SessionShell) -> Transcript:
    """The document with what its commands print now."""
    return document.with_commands([Command(one.text, tuple(shell.run(one.text))) for one in document.commands])


def differences(written: Transcript, now: Transcript) -> list[str]:
    """The lines by which two runs of the same commands differ; none: they are equal.

    Times, spans, offsets, epochs, ids, addresses and widths are another one in every run, and no difference.
    """
    found = []
    for before, after in zip(written.commands, now.commands, strict=True):
        old, new = map(_fixed, before.output), map(_fixed, after.output)
        lines = list(difflib.unified_diff(list(old), list(new), "written", "now", n=1, lineterm=""))
        if lines:
            found += [f"{_PROMPT}{before.text}", *lines[2:]]
    return found


def _commands(lines: Iterator[str]) -> tuple[Command, ...]:
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line == _FENCE:
            break
        if line.startswith(_PROMPT):
            found.append((line.removeprefix(_PROMPT), []))
        elif found:
            found[-1][1].append(line)
    return tuple(Command(text, _without_blank_end(output)) for text, output in found)


def _without_blank_end(lines: list[str]) -> tuple[str, ...]:
    while lines and not lines[-1].strip():
        lines.pop()
    return tuple(lines)


def _lines(part: str | tuple[Command, ...]) -> Iterator[str]:
    if isinstance(part, str):
        yield part
        return
    yield _BLOCK
    for number, command in enumerate(part):
        if number:
            yield ""
        yield _PROMPT + command.text
        yield from command.output
    yield _FENCE


def _fixed(line: str) -> str:
    """A line without what is another one in every run, and without widths."""
    words = line.split()
    cores = ["", *(word.strip(_PUNCTUATION) for word in words), ""]
    fixed = " ".join(
        word.replace(core, _shown(core, before, behind, is_second=place == 1)) if core else word
        for place, (word, before, core, behind) in enumerate(zip(words, cores, cores[1:], cores[2:], strict=False))
    )
    # A busy machine looks for the time no longer than it may.
    return fixed.replace(" since TIME", "")


def _shown(word: str, before: str, behind: str, *, is_second: bool) -> str:
    """The form of a word, between two others, that is the same in every run."""
    if _DATE.fullmatch(word) or _TIME.fullmatch(word):
        return "TIME"
    if _ADDRESS.fullmatch(word):
        return "ADDRESS"
    if _ID.fullmatch(word):
        return "ID"
    is_offset = _DATE.fullmatch(behind) or (is_second and _DATE.fullmatch(before))
    if _is_number(word) and (is_offset or before in _COUNTED or behind in _UNITS):
        return "N"
    if word in _UNITS and _is_number(before):
        return "s"
    return "-" if set(word) <= _RULES else word


def _is_number(word: str) -> bool:
    return word.replace(",", "").replace(".", "").isdecimal()
