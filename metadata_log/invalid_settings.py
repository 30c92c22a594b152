"""Settings that cannot be used, and the sentences that say why: of controllers, of brokers, and of programs' own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from reprlib import Repr
from typing import Any, Final

from quorate.metadata_log.errors import QuorateError

_SHORT: Final = Repr()
#: Characters of a wrong value that are shown.
_SHORT.maxstring = _SHORT.maxother = 100


class InvalidSettings(QuorateError, ValueError):
    """Settings that cannot be used. Names each setting, the value found and the rule."""


def problems_in(found: Iterable[Mapping[str, Any]]) -> str:
    """The sentences for what pydantic found (its ``ErrorDetails``), for an ``InvalidSettings``."""
    return "; ".join(_sentences(found))


def _sentences(found: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for problem in found:
        where = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            yield f"{where}: no setting has this name"
        elif problem["type"] == "missing":
            yield f"{where}: must be set"
        elif problem["type"] == "value_error" and isinstance(problem["input"], dict):
            yield f"{where}: {message}" if where else message
        else:
            yield f"{where}: {message}, not {_SHORT.repr(problem['input'])}"
