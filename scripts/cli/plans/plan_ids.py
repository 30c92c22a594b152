"""The ids of the requests by which plans are made; and by these ids, which requests were taken back."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from quorate.controller.api.answers.plan_models import ChangePlan

#: The ids of requests that take others back begin so.
_UNDO: Final = "undo:"
#: Of a request's id, of which a controller takes 64; a few are left for the number of a step.
_ID_CHARS_MAX: Final = 58
#: Digits that stand for the end of an id that is longer, so that it is still told from others that begin alike.
_DIGEST_CHARS: Final = 12


def run_id(plan: ChangePlan) -> str:
    """The id of the requests by which a plan is made, this time."""
    return f"plan:{secrets.token_hex(4)}" if plan.undoes is None else undo_id(plan.undoes)


def step_id(plan: ChangePlan, run: str, number: int) -> str:
    """The id of the request that makes a step, the first of which is number 0.

    A way back numbers a single step, too: ``undo:X:1`` begins to take X back, and is not all that takes X:1 back.
    """
    return run if len(plan.steps) == 1 and plan.undoes is None else f"{run}:{number + 1}"


def undo_id(request_id: str) -> str:
    """The id of the run that takes a request, or all steps of a plan, back."""
    whole = f"{_UNDO}{request_id}"
    if len(whole) <= _ID_CHARS_MAX:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{whole[: _ID_CHARS_MAX - _DIGEST_CHARS - 1]}-{digest}"


def without_number(request_id: str) -> str:
    """The id of the run that a step belongs to; the id itself, if it has no number."""
    run, _, number = request_id.rpartition(":")
    return run if run and number.isdecimal() else request_id


def last_change(request_ids: Sequence[str]) -> list[int]:
    """The places of the last request that was not taken back, and is no way back itself; empty: there is none.

    Of a step of a plan those of all its steps that were not taken back: the plan is one change. A way back that was
    taken back takes nothing back: what it was about stands again.

    Args:
        request_ids: of requests, in the order of the log.
    """
    standing = list(_standing(request_ids))
    if not standing:
        return []
    known = set(request_ids)
    run = plan_of(request_ids[standing[0]], known)
    if run is None:
        return standing[:1]
    return [place for place in reversed(standing) if plan_of(request_ids[place], known) == run]


def plan_of(request_id: str, request_ids: AbstractSet[str]) -> str | None:
    """The id of the plan whose step a request is; None: it is none. An id with a number is one's own where another
    request has it without.
    """
    run = without_number(request_id)
    return None if run == request_id or run in request_ids else run


def _standing(request_ids: Sequence[str]) -> Iterator[int]:
    """The places of requests that were not taken back, and are no way back themselves, from the last one on."""
    known = set(request_ids)
    taken_back: set[str] = set()
    for place in reversed(range(len(request_ids))):
        one = request_ids[place]
        plan = plan_of(one, known)
        # As ``quorate undo`` finds them: an id means all steps only where no request has it as its own.
        if undo_id(one) in taken_back or (plan is not None and undo_id(plan) in taken_back):
            continue
        if one.startswith(_UNDO):
            taken_back.add(without_number(one))
        else:
            yield place
