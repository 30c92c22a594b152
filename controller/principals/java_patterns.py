"""Regular expressions of Java (``java.util.regex.Pattern`` of JDK 17) as Python's, where both mean the same.

What Java reads in another way is written so that Python reads it likewise: classes are ASCII, a dot stops at five line
terminators, an end may stand before the last one, flags inside hold for the rest of a group. What Python has no words
for, or where the two would go different ways, is refused by its name, before any text is matched.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Final

from quorate.metadata_log.errors import QuorateError

#: Characters of a pattern.
PATTERN_CHARS_MAX: Final = 2_000
#: Groups in groups.
_DEPTH_MAX: Final = 50
#: Of one part; Python takes more, and a mapping rule needs none.
_REPETITIONS_MAX: Final = 1_000

_ANY: Final = r"[^\n\r\x85\u2028\u2029]"
_END: Final = r"(?:(?=(?:\r\n|[\r\x85\u2028\u2029])\Z)|(?=(?<!\r)\n\Z)|\Z)"
#: By the letter behind the backslash: the insides of a class. Upper case is the class without them.
_CLASSES: Final = {
    "d": "0-9",
    "w": "a-zA-Z_0-9",
    "s": r" \t\n\x0b\f\r",
    "h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n\x0b\f\r\x85\u2028\u2029",
}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_QUANTIFIERS: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}
#: What Java has and this does not, by how it begins.
_UNKNOWN_ESCAPES: Final = {
    "b": r"the word boundary \b",
    "B": r"the word boundary \B",
    "p": r"the class \p",
    "P": r"the class \P",
    "G": r"the boundary \G",
    "R": r"the line break \R",
    "X": r"the cluster \X",
    "N": r"the named character \N",
    "c": r"the control character \c",
    "0": r"the octal character \0",
    "k": r"the back reference \k",
}


class BadJavaPattern(QuorateError, ValueError):
    """A pattern that Java would refuse, or that cannot be said in Python; says which, where in it, and why."""

    def __init__(self, pattern: str, at: int, reason: str) -> None:
        super().__init__(f"pattern {pattern!r}, character {at + 1}: {reason}")


def java_pattern(pattern: str) -> re.Pattern[str]:
    """A compiled pattern that matches what Java's does, with the same groups.

    Raises:
        BadJavaPattern: it is none of Java's, or cannot be translated.
    """
    if len(pattern) > PATTERN_CHARS_MAX:
        raise BadJavaPattern(pattern[:40], PATTERN_CHARS_MAX, f"longer than {PATTERN_CHARS_MAX} characters")
    translated = _Translation(pattern).whole()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(translated)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise BadJavaPattern(pattern, 0, f"cannot be translated: {error}") from error


@dataclass(slots=True)
class _Part:
    """Something that a quantifier may follow."""

    text: str
    #: Whether it can match without a character.
    is_empty: bool = False
    is_anchor: bool = False
    has_groups: bool = False


@dataclass(frozen=True, slots=True)
class _Flags:
    """As they hold at a place: characters without regard to case (ASCII only), dots for every character."""

    is_caseless: bool = False
    is_dotall: bool = False


class _Translation:
    """One pattern, read from its beginning to its end, once."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0
        self._flags = _Flags()
        #: Groups that are closed, so that a back reference to them means something.
        self._closed: set[int] = set()
        self._opened = 0

    def whole(self) -> str:
        """All of it."""
        part = self._alternatives()
        if self._at < len(self._pattern):
            raise self._bad("a parenthesis is closed that was not opened")
        return part.text

    # --- reading ----------------------------------------------------------------------------------------

    def _peek(self, length: int = 1) -> str:
        return self._pattern[self._at : self._at + length]

    def _take(self, length: int = 1) -> str:
        taken = self._peek(length)
        if len(taken) < length:
            raise self._bad("the pattern breaks off")
        self._at += length
        return taken

    def _skipped(self, text: str) -> bool:
        if not self._pattern.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _bad(self, reason: str, at: int | None = None) -> BadJavaPattern:
        return BadJavaPattern(self._pattern, self._at if at is None else at, reason)

    # --- structure --------------------------------------------------------------------------------------

    def _alternatives(self) -> _Part:
        """Up to the end of the group; flags set inside hold up to there."""
        flags = self._flags
        branches = [self._sequence()]
        while self._skipped("|"):
            branches.append(self._sequence())
        self._flags = flags
        return _Part(
            "|".join(branch.text for branch in branches),
            any(branch.is_empty for branch in branches),
            has_groups=any(branch.has_groups for branch in branches),
        )

    def _sequence(self) -> _Part:
        parts = []
        while self._at < len(self._pattern) and self._peek() not in "|)":
            part = self._atom()
            if part is not None:
                parts.append(self._quantified(part))
        return _Part(
            "".join(part.text for part in parts),
            all(part.is_empty for part in parts),
            has_groups=any(part.has_groups for part in parts),
        )

    def _quantified(self, part: _Part) -> _Part:
        start = self._at
        bounds = self._bounds()
        if bounds is None:
            return part
        least, most = bounds
        if part.is_anchor:
            raise self._bad("the repetition of a boundary cannot be translated", start)
        if part.is_empty and part.has_groups and most != 1:
            # The two keep different texts for a group that is repeated without a character.
            raise self._bad("the repetition of a group that may be empty cannot be translated", start)
        text = self._pattern[start : self._at]
        if self._peek() in ("?", "+") and self._peek():
            text += self._take()
        return _Part(part.text + text, part.is_empty or least == 0, has_groups=part.has_groups)

    def _bounds(self) -> tuple[int, int | None] | None:
        """The least and the most of a quantifier that stands here."""
        sign = self._peek()
        if sign in _QUANTIFIERS:
            self._at += 1
            return _QUANTIFIERS[sign]
        if sign != "{":
            return None
        start = self._at
        self._at += 1
        least = self._number()
        most: int | None = least
        if self._skipped(","):
            most = None if self._peek() == "}" else self._number()
        if not self._skipped("}") or (most is not None and most < least):
            raise self._bad("a repetition that is none; write { as \\{", start)
        if max(least, most or 0) > _REPETITIONS_MAX:
            raise self._bad(f"more than {_REPETITIONS_MAX} repetitions cannot be translated", start)
        return least, most

    def _number(self) -> int:
        start = self._at
        while self._peek() and self._peek() in "0123456789":
            self._at += 1
        digits = self._pattern[start : self._at]
        if not 1 <= len(digits) <= 9:
            raise self._bad("a repetition that is none; write { as \\{", start)
        return int(digits)

    def _atom(self) -> _Part | None:
        start = self._at
        char = self._peek()
        if char == "{":
            # Java takes a second quantifier in braces for one of nothing.
            self._bounds()
            if self._peek() in ("?", "+") and self._peek():
                self._at += 1
            return None
        self._at += 1
        if char == "(":
            return self._group()
        if char == "[":
            return self._cased(self._character_class(start))
        if char == "\\":
            return self._escape()
        if char == ".":
            return _Part("(?s:.)" if self._flags.is_dotall else _ANY)
        if char == "^":
            return _Part(r"\A", is_empty=True, is_anchor=True)
        if char == "$":
            return _Part(_END, is_empty=True, is_anchor=True)
        if char in _QUANTIFIERS:
            raise self._bad(f"{char} repeats nothing", start)
        return self._cased(re.escape(char))

    def _cased(self, text: str, *, is_empty: bool = False) -> _Part:
        return _Part(f"(?ai:{text})" if self._flags.is_caseless else text, is_empty)

    # --- groups -----------------------------------------------------------------------------------------

    def _group(self) -> _Part | None:
        start = self._at - 1
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise self._bad(f"more than {_DEPTH_MAX} groups in each other")
        for opening in ("?=", "?!", "?<=", "?<!"):
            if self._skipped(opening):
                body = self._closing(start)
                return _Part(f"({opening}{body.text})", is_empty=True, is_anchor=True, has_groups=body.has_groups)
        for opening in ("?:", "?>"):
            if self._skipped(opening):
                body = self._closing(start)
                return _Part(f"({opening}{body.text})", body.is_empty, has_groups=body.has_groups)
        if self._peek() == "?" and self._peek(2) != "?<":
            return self._flag_group(start)
        opening = self._group_name(start) if self._skipped("?<") else ""
        self._opened += 1
        number = self._opened
        body = self._closing(start)
        self._closed.add(number)
        return _Part(f"({opening}{body.text})", body.is_empty, has_groups=True)

    def _closing(self, start: int) -> _Part:
        body = self._alternatives()
        if not self._skipped(")"):
            raise self._bad("a group that is not closed", start)
        self._depth -= 1
        return body

    def _group_name(self, start: int) -> str:
        end = self._pattern.find(">", self._at)
        name = self._pattern[self._at : end] if end > 0 else ""
        if not (name.isascii() and name.isalnum() and name[0].isalpha()):
            raise self._bad("a group whose name is not letters and digits, with a letter first", start)
        self._at = end + 1
        return f"?P<{name}>"

    def _flag_group(self, start: int) -> _Part | None:
        """``(?i)``, which holds for the rest of the group around it, or ``(?i:...)``."""
        self._take()
        outside, is_set = self._flags, True
        while (flag := self._take()) not in ":)":
            if flag == "-" and is_set:
                is_set = False
            elif flag == "i":
                self._flags = _Flags(is_set, self._flags.is_dotall)
            elif flag == "s":
                self._flags = _Flags(self._flags.is_caseless, is_set)
            else:
                raise self._bad(f"the flag {flag} of a group cannot be translated", start)
        if flag == ")":
            self._depth -= 1
            return None
        body = self._closing(start)
        self._flags = outside
        return _Part(f"(?:{body.text})", body.is_empty, has_groups=body.has_groups)

    # --- characters -------------------------------------------------------------------------------------

    def _escape(self) -> _Part:
        start = self._at - 1
        letter = self._take()
        if letter == "Q":
            return self._quotation()
        if letter in ("A", "z", "Z"):
            text = {"A": r"\A", "z": r"\Z", "Z": _END}[letter]
            return _Part(text, is_empty=True, is_anchor=True)
        if letter.lower() in _CLASSES:
            return _Part(f"[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}]")
        if letter in "123456789":
            return self._back_reference(start, int(letter))
        return self._cased(re.escape(self._escaped_char(start, letter)))

    def _quotation(self) -> _Part:
        """``\\Q...\\E``: as it stands. A quantifier behind it would repeat the last character only."""
        end = self._pattern.find("\\E", self._at)
        text = self._pattern[self._at :] if end < 0 else self._pattern[self._at : end]
        self._at = len(self._pattern) if end < 0 else end + 2
        if len(text) != 1 and self._peek() and self._peek() in "*+?{":
            raise self._bad("the repetition of a quotation cannot be translated")
        return self._cased(re.escape(text), is_empty=not text)

    def _back_reference(self, start: int, number: int) -> _Part:
        if number not in self._closed or (self._peek() and self._peek() in "0123456789"):
            raise self._bad("this back reference cannot be translated", start)
        return self._cased(f"(?:\\{number})", is_empty=True)

    def _escaped_char(self, start: int, letter: str) -> str:
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "u":
            return self._hexadecimal(start, self._take(4))
        if letter == "x":
            if not self._skipped("{"):
                return self._hexadecimal(start, self._take(2))
            end = self._pattern.find("}", self._at)
            digits = self._pattern[self._at : end] if end > 0 else ""
            self._at = end + 1
            return self._hexadecimal(start, digits)
        if letter in _UNKNOWN_ESCAPES:
            raise self._bad(f"{_UNKNOWN_ESCAPES[letter]} cannot be translated", start)
        if letter.isascii() and letter.isalnum():
            raise self._bad(f"\\{letter} means nothing", start)
        return letter

    def _hexadecimal(self, start: int, digits: str) -> str:
        if 1 <= len(digits) <= 6 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
            number = int(digits, 16)
            if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
                return chr(number)
        raise self._bad("a character number that is none", start)

    # --- classes ----------------------------------------------------------------------------------------

    def _character_class(self, start: int) -> str:
        text = "[^" if self._skipped("^") else "["
        is_first = True
        while is_first or self._peek() != "]":
            text += self._class_member(start)
            is_first = False
        self._take()
        return f"{text}]"

    def _class_member(self, start: int) -> str:
        if not self._peek():
            raise self._bad("a class that is not closed", start)
        if self._peek() == "[":
            raise self._bad("a class in a class cannot be translated")
        if self._peek(2) == "&&":
            raise self._bad("the intersection of classes cannot be translated")
        char, is_set = self._class_char()
        if is_set or self._peek() != "-" or self._peek(2) in ("-]", "-"):
            return char if is_set else re.escape(char)
        if self._peek(2) == "-[":
            raise self._bad("a class in a class cannot be translated")
        self._at += 1
        last, is_set = self._class_char()
        if is_set or last < char:
            raise self._bad("a range that ends before it begins, or at a class", start)
        return f"{re.escape(char)}-{re.escape(last)}"

    def _class_char(self) -> tuple[str, bool]:
        """A character, or the insides of a class that an escape stands for."""
        start = self._at
        char = self._take()
        if char != "\\":
            return char, False
        letter = self._take()
        if letter in _CLASSES:
            return _CLASSES[letter], True
        if letter.lower() in _CLASSES or letter == "Q":
            raise self._bad(f"\\{letter} in a class cannot be translated", start)
        return self._escaped_char(start, letter), False
