"""The states of one broker, what happens to it, and the edges between: the table that docs/operations.md shows.

An edge that is not in ``TRANSITIONS`` does not exist: what happens in a state where it cannot is a mistake in the code
that reports it, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class LifecycleState(Enum):
    """A state of a broker; in brackets Kafka's name."""

    #: Asks for its registration (STARTING).
    REGISTERING = "registering"
    #: Registered; has not replayed its own registration yet (STARTING).
    CATCHING_UP = "catching up"
    #: Caught up; fenced (RECOVERY).
    FENCED = "fenced"
    #: Unfenced: may lead (RUNNING).
    RUNNING = "running"
    #: Asked to be relieved of its leaderships (PENDING_CONTROLLED_SHUTDOWN).
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    #: Over, as asked (SHUTTING_DOWN).
    STOPPED = "stopped"
    #: Over, for the reason in ``failure``.
    FAILED = "failed"


class LifecycleEvent(Enum):
    """An event in a broker's life, as docs/operations.md says it."""

    REGISTERED = "a controller registers it"
    REGISTERED_TO_LEAVE = "a controller registers it; it wants to leave by now"
    BEHIND = "answer to a heartbeat: fenced, and its own registration is not replayed yet"
    CAUGHT_UP = "answer to a heartbeat: fenced, and caught up"
    UNFENCED = "answer to a heartbeat: unfenced"
    MUST_REGISTER_AGAIN = "its registration lacks something"
    FORGOTTEN = "the controller does not know its registration"
    WANTS_TO_LEAVE = "it is asked to stop"
    LEAVES = "nothing depends on it, or its time to leave is over, or it is asked again"
    FAILS = "another process took its id, it is refused, its log directories failed, or its time to register is over"


_S = LifecycleState
_E = LifecycleEvent

#: What each state becomes by what happens in it; STOPPED and FAILED are for ever.
TRANSITIONS: Final[Mapping[LifecycleState, Mapping[LifecycleEvent, LifecycleState]]] = {
    _S.REGISTERING: {
        _E.REGISTERED: _S.CATCHING_UP,
        _E.REGISTERED_TO_LEAVE: _S.CONTROLLED_SHUTDOWN,
        _E.MUST_REGISTER_AGAIN: _S.REGISTERING,
        _E.WANTS_TO_LEAVE: _S.REGISTERING,  # a controller may know of it soon: its request is out
        _E.LEAVES: _S.STOPPED,
        _E.FAILS: _S.FAILED,
    },
    _S.CATCHING_UP: {
        _E.BEHIND: _S.CATCHING_UP,
        _E.CAUGHT_UP: _S.FENCED,
        _E.UNFENCED: _S.RUNNING,
        _E.MUST_REGISTER_AGAIN: _S.REGISTERING,
        _E.FORGOTTEN: _S.REGISTERING,
        _E.WANTS_TO_LEAVE: _S.CONTROLLED_SHUTDOWN,
        _E.FAILS: _S.FAILED,
    },
    _S.FENCED: {
        _E.BEHIND: _S.CATCHING_UP,
        _E.CAUGHT_UP: _S.FENCED,
        _E.UNFENCED: _S.RUNNING,
        _E.MUST_REGISTER_AGAIN: _S.REGISTERING,
        _E.FORGOTTEN: _S.REGISTERING,
        _E.WANTS_TO_LEAVE: _S.CONTROLLED_SHUTDOWN,
        _E.FAILS: _S.FAILED,
    },
    _S.RUNNING: {
        _E.BEHIND: _S.CATCHING_UP,
        _E.CAUGHT_UP: _S.FENCED,
        _E.UNFENCED: _S.RUNNING,
        _E.MUST_REGISTER_AGAIN: _S.REGISTERING,
        _E.FORGOTTEN: _S.REGISTERING,
        _E.WANTS_TO_LEAVE: _S.CONTROLLED_SHUTDOWN,
        _E.FAILS: _S.FAILED,
    },
    _S.CONTROLLED_SHUTDOWN: {
        _E.BEHIND: _S.CONTROLLED_SHUTDOWN,
        _E.CAUGHT_UP: _S.CONTROLLED_SHUTDOWN,
        _E.UNFENCED: _S.CONTROLLED_SHUTDOWN,
        _E.FORGOTTEN: _S.STOPPED,
        _E.LEAVES: _S.STOPPED,
        _E.FAILS: _S.FAILED,
    },
    _S.STOPPED: {},
    _S.FAILED: {},
}
