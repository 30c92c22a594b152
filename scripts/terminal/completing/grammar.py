"""The grammar of all commands, as a file that is read in a millisecond: to import them takes a third of a second.

`python -m quorate.scripts.generate_completion_grammar` makes it of the commands; a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

GRAMMAR_FILE: Final = Path(__file__).with_name("grammar.json")


@dataclass(frozen=True, slots=True)
class OptionForm:
    """An option of a command."""

    names: tuple[str, ...]
    #: Words, or a kind of names, for its value; None: it has none.
    value: Sequence[str] | None
    is_repeated: bool


@dataclass(frozen=True, slots=True)
class ArgumentForm:
    """An argument of a command, or all that follow where it takes several."""

    value: Sequence[str]
    is_repeated: bool


@dataclass(frozen=True, slots=True)
class CommandForm:
    """A command, or a group of them."""

    options: Sequence[OptionForm]
    arguments: Sequence[ArgumentForm]
    #: Names of those below it.
    below: Sequence[str]

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        """The command that a part of the file tells."""
        return cls(
            [OptionForm(tuple(names.split("/")), value, more) for names, value, more in told["options"]],
            [ArgumentForm(value, more) for value, more in told["arguments"]],
            told["below"],
        )

    def option(self, name: str) -> OptionForm | None:
        """The option of this name."""
        return next((one for one in self.options if name in one.names), None)

    def argument(self, place: int) -> ArgumentForm | None:
        """The argument at a place, of those that are typed."""
        if place < len(self.arguments):
            return self.arguments[place]
        last = self.arguments[-1] if self.arguments else None
        return last if last is not None and last.is_repeated else None


@dataclass(frozen=True, slots=True)
class Grammar:
    """All of it."""

    #: By its words, as `topics describe`; the empty one is `quorate` itself.
    commands: Mapping[str, Any]
    #: Names of configs by the kind of resource that has them.
    configs: Mapping[str, Sequence[str]]

    @classmethod
    def read(cls) -> Self:
        """The one of this version."""
        told = json.loads(GRAMMAR_FILE.read_bytes())
        return cls(told["commands"], told["configs"])

    def command(self, words: Sequence[str]) -> CommandForm:
        """The command that these words name, each of which is ``below`` the one before."""
        return CommandForm.of(self.commands[" ".join(words)])
