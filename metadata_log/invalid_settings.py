"""Settings that cannot be used, and the sentences that say why: of controllers, of brokers, and of programs' own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from reprlib import Repr
from typing import Any, Final

from quorate.metadata_log.errors import QuorateError

_SHORT: Final = Repr()
#: Characters of a wrong value that are shown.
_SHORT.maxstring = _SHORT.maxother = 100


class InvalidSettings(QuorateError, ValueError):
    """Settings that cannot be used. Names each setting, the value found and the rule."""


def problems_in(found: Iterable[Mapping[str, Any]], known: Collection[str] = ()) -> str:
    """The sentences for what pydantic found (its ``ErrorDetails``), for an ``InvalidSettings``.

    Args:
        known: names of all settings, ``group.name``: of a name in the wrong place the right one is told.
    """
    return "; ".join(_sentences(found, known))


def _sentences(found: Iterable[Mapping[str, Any]], known: Collection[str]) -> Iterator[str]:
    for problem in found:
        where = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            yield f"{where}: no setting has this name{_right_place(where, known)}"
        elif problem["type"] == "too_short" and len(problem["input"]) >= problem["ctx"]["min_length"]:
            # There are enough; those that are wrong were not counted, and are told of by themselves.
            continue
        elif problem["type"] in ("too_short", "too_long"):
            limit = "at least {min_length}" if problem["type"] == "too_short" else "at most {max_length}"
            yield f"{where}: must have {limit.format_map(problem['ctx'])}, not {_SHORT.repr(problem['input'])}"
        elif problem["type"] in ("tuple_type", "list_type"):
            yield f'{where}: must be a list, as ["a", "b"], not {_SHORT.repr(problem["input"])}'
        elif problem["type"] == "missing":
            yield f"{where}: must be set"
        elif problem["type"] == "value_error" and isinstance(problem["input"], dict):
            yield f"{where}: {message}" if where else message
        else:
            value = f"not {_SHORT.repr(problem['input'])}"
            yield f"{where}: {message}" + ("" if value in message else f", {value}")


def _right_place(where: str, known: Collection[str]) -> str:
    """The place where a name is a setting's: in TOML, whatever stands below a [table] belongs to it."""
    last = where.rpartition(".")[2]
    if last in known:
        return f" ({last} has, above the first [table] of a settings file)"
    meant = next((name for name in known if name.rpartition(".")[2] == last), None)
    return "" if meant is None else f" ({meant} has, in the table [{meant.rpartition('.')[0]}] of a settings file)"
