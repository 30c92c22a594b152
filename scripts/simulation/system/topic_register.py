"""A topic as a register: absent, or an id with a number of partitions, a config and a label.

The model of the admin API. A refusal that claims a state ("exists already", "unknown") is a read of it: ``Found``,
``Missing``, ``NoSmaller``, ``Labelled``. Any other claims nothing but that it changed nothing, and is left out of a
history: that it had no effect is what the outcomes of others show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.scripts.simulation.system.linearizability import Impossible


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic that is there."""

    #: None: made by a call that was not answered, and not seen yet.
    topic_id: bytes | None
    partitions: int
    #: Of the one config that the workload changes; None: not set.
    value: str | None
    #: Of the one label that the workload changes; None: not set.
    label: str | None = None


#: None: there is no such topic.
State = TopicState | None


@dataclass(frozen=True, slots=True)
class Create:
    """``topic_id``: what was answered; None where nothing was."""

    partitions: int
    value: str | None
    topic_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Of the topic with this id; None: by name."""

    topic_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class Grow:
    """To so many partitions."""

    partitions: int


@dataclass(frozen=True, slots=True)
class Configure:
    """Set the config, or take it away."""

    value: str | None


@dataclass(frozen=True, slots=True)
class Swap:
    """Set the label if it is what is expected; a topic that is not there has none."""

    expected: str | None
    value: str | None


@dataclass(frozen=True, slots=True)
class ReadTopic:
    """``seen``: what was answered."""

    seen: State


@dataclass(frozen=True, slots=True)
class Found:
    """Of a creation that was refused: the topic is there."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Of a change that was refused: there is no topic of this name; with ``topic_id``, none of this id."""

    topic_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class NoSmaller:
    """Of a growth that was refused: the topic is there, and has at least so many partitions."""

    partitions: int


@dataclass(frozen=True, slots=True)
class Labelled:
    """Of a label that was read, or that a refused swap found: what it is."""

    label: str | None


Action = Create | Delete | Grow | Configure | Swap | ReadTopic | Found | Missing | NoSmaller | Labelled


def claim_of(action: Action, error: ApiError) -> Action | None:
    """The statement about the topic in a refusal of the action; None: nothing."""
    match action, error.code:
        case Create(), ErrorCode.TOPIC_ALREADY_EXISTS:
            return Found()
        case Delete(topic_id=None) | Grow() | Configure() | Swap(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return Missing()
        case Delete(topic_id=topic_id), ErrorCode.UNKNOWN_TOPIC_ID if topic_id is not None:
            return Missing(topic_id)
        case Grow(partitions=partitions), ErrorCode.INVALID_PARTITIONS:
            return NoSmaller(partitions)
        case Swap(), ErrorCode.INVALID_UPDATE_VERSION:
            return Labelled(error.details["present"])
        case ReadTopic(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return ReadTopic(None)
        case _:
            return None


def _label(state: State) -> str | None:
    return None if state is None else state.label


def _is_so(state: State, claim: Found | Missing | NoSmaller | Labelled) -> bool:
    match claim:
        case Found():
            return state is not None
        case Missing(topic_id):
            return state is None or (topic_id is not None and state.topic_id != topic_id)
        case NoSmaller(partitions):
            return state is not None and state.partitions >= partitions
        case Labelled(label):
            return _label(state) == label


def _swapped(state: State, action: Swap) -> State:
    if _label(state) != action.expected:
        raise Impossible
    if state is None:
        if action.value is not None:
            raise Impossible  # a label needs a topic
        return None
    return replace(state, label=action.value)


def register_of(known_ids: frozenset[bytes]) -> Callable[[State, Action], State]:
    """The model's step. ``known_ids``: those that answers to creations gave, which no unanswered one made."""

    def step(state: State, action: Action) -> State:
        match action:
            case Create():
                if state is not None:
                    raise Impossible
                return TopicState(action.topic_id, action.partitions, action.value)
            case ReadTopic():
                return _read(state, action.seen)
            case Delete():
                if state is None:
                    raise Impossible
                if action.topic_id is not None:
                    _identified(state, action.topic_id)
                return None
            case Grow():
                if state is None or action.partitions <= state.partitions:
                    raise Impossible
                return replace(state, partitions=action.partitions)
            case Configure():
                if state is None:
                    raise Impossible
                return replace(state, value=action.value)
            case Swap():
                return _swapped(state, action)
            case _:
                if not _is_so(state, action):
                    raise Impossible
                return state

    def _identified(state: TopicState, topic_id: bytes) -> TopicState:
        if state.topic_id == topic_id:
            return state
        if state.topic_id is not None or topic_id in known_ids:
            raise Impossible
        return replace(state, topic_id=topic_id)

    def _read(state: State, seen: State) -> State:
        if state is None or seen is None:
            if state is not seen:
                raise Impossible
            return state
        if (state.partitions, state.value) != (seen.partitions, seen.value):
            raise Impossible
        assert seen.topic_id is not None
        return _identified(state, seen.topic_id)

    return step
