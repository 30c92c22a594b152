"""Sentences for values that a model refuses: the place, the rule, and the value that was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from reprlib import Repr
from typing import Any, Final

from pydantic import ValidationError

_SHORT: Final = Repr()
#: Characters of a wrong value that are shown.
_SHORT.maxstring = _SHORT.maxother = 100
#: Rules about how many there are: their words say how many there were, and what they are does not matter.
_OF_COUNTS: Final = frozenset({"too_short", "too_long"})


def place_of(path: Sequence[int | str]) -> str:
    """The place of a value in a model."""
    return ".".join(str(part) for part in path)


def message_of(problem: Mapping[str, Any], *, shows_value: bool) -> str:
    """The rule that a value breaks (of pydantic's ``ErrorDetails``), with the value where it may be shown."""
    if problem["type"] == "extra_forbidden":
        return "is not known"
    if problem["type"] == "missing":
        return "must be given"
    if problem["type"] == "json_invalid":
        return str(problem["msg"])
    rule = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] in _OF_COUNTS or not shows_value:
        return rule
    return f"{rule}, not {_SHORT.repr(problem['input'])}"


def problem_of(error: ValidationError, *, shows_value: bool = True) -> str:
    """The first trouble with the values of a model in a line."""
    first = error.errors(include_url=False, include_context=False)[0]
    where, message = place_of(first["loc"]), message_of(first, shows_value=shows_value)
    return f"{where}: {message}" if where else message
