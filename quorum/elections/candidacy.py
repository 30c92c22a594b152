"""The states of a voter on its way to standing for election, and the edges between: the table of docs/architecture.md.

An edge that is not in ``STEPS`` does not exist: what happens in a state where it cannot is a mistake in the code that
reports it, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Candidacy(Enum):
    """A state of a voter that does not lead."""

    #: Nothing is asked: a leader is heard, or its time has not come yet.
    WAITING = "waiting"
    #: A round of Pre-Vote is open.
    ASKING = "asking"
    #: A round was won: the library may stand for election, once.
    ALLOWED = "allowed"


class CandidacyEvent(Enum):
    """An event in a voter's candidacy, as docs/architecture.md says it."""

    ASKS = "it opens a round: would the others vote for it?"
    WINS = "a majority would"
    LOSES = "no majority can any more, or the round's time is over"
    STANDS = "the library takes the permission"
    CALLED_OFF = "a leader is heard, an epoch begins, it votes for another, it is elected; or a faster round is due"


_S = Candidacy
_E = CandidacyEvent

#: What each state becomes by what happens in it.
STEPS: Final[Mapping[Candidacy, Mapping[CandidacyEvent, Candidacy]]] = {
    _S.WAITING: {
        _E.ASKS: _S.ASKING,
        _E.CALLED_OFF: _S.WAITING,
    },
    _S.ASKING: {
        _E.WINS: _S.ALLOWED,
        _E.LOSES: _S.WAITING,
        _E.CALLED_OFF: _S.WAITING,
    },
    _S.ALLOWED: {
        _E.STANDS: _S.WAITING,
        _E.CALLED_OFF: _S.WAITING,
    },
}
