"""A line that is being typed, as the grammar of commands sees it: what its last word may be."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from quorate.scripts.terminal.completing.grammar import CommandForm, Grammar, OptionForm

#: A line longer than this is nobody's.
_LINE_MAX: Final = 65_536
_NO_MORE_OPTIONS: Final = "--"


@dataclass(slots=True)
class TypedLine:
    """Words before the last one, and what they mean."""

    command: CommandForm
    #: Its name.
    words: list[str] = field(default_factory=list)
    #: The last value of each option, by each of its names; flags have an empty one.
    options: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    #: The option whose value comes next.
    awaited: OptionForm | None = None
    #: Whether `--` has ended the options.
    is_ended: bool = False

    def take(self, word: str, grammar: Grammar) -> bool:
        """Go on by a word; False: there is no such command."""
        if self.awaited is not None:
            self._note(self.awaited, word)
            self.awaited = None
        elif word == _NO_MORE_OPTIONS and not self.is_ended:
            self.is_ended = True
        elif self._is_option(word) and word != "-":
            name, has_value, value = word.partition("=")
            found = self.command.option(name)
            if found is not None and found.value is not None and not has_value:
                self.awaited = found
            elif found is not None:
                self._note(found, value)
        elif self.command.below:
            if word not in self.command.below:
                return False
            self.words.append(word)
            self.command = grammar.command(self.words)
        else:
            self.arguments.append(word)
        return True

    def _is_option(self, word: str) -> bool:
        return word.startswith("-") and not self.is_ended

    def _note(self, option: OptionForm, value: str) -> None:
        self.options.update(dict.fromkeys(option.names, value))

    def next_words(self, last: str) -> tuple[Sequence[str], str]:
        """The words that the last one may be, or a kind of names, and its beginning: all of it, or behind `--set=`."""
        if self.awaited is not None:
            return self.awaited.value or (), last
        if self._is_option(last):
            name, has_value, value = last.partition("=")
            if not has_value:
                return self._options_left(), last
            found = self.command.option(name)
            return (found.value or () if found is not None else ()), value
        if self.command.below:
            return self.command.below, last
        found_argument = self.command.argument(len(self.arguments))
        return (() if found_argument is None else found_argument.value), last

    def _options_left(self) -> list[str]:
        left = (one for one in self.command.options if one.is_repeated or one.names[0] not in self.options)
        return [name for one in left for name in one.names]


def understood(before: Sequence[str], grammar: Grammar) -> TypedLine | None:
    """The words of a line before the last one, without the command's own name; None: there is no such command."""
    typed = TypedLine(grammar.command(()))
    return typed if all(typed.take(word, grammar) for word in before) else None


def taken_apart(line: str) -> list[str]:
    """The words of a line; the last is the one that is being typed, and may be empty. None where it is no line."""
    if len(line) > _LINE_MAX:
        return []
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token or "")  # within quotes, or behind a backslash
    else:
        if line[-1:].isspace():
            words.append("")
    return words if len(words) > 1 else []
