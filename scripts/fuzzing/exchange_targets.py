"""The replica exchange between brokers: a process that says anything, as a follower and as a leader.

An input is a list of frames, in msgpack. They may end their own session, and nothing else: whoever is honest is where
it belongs soon after the last of them.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgpack

from quorate.broker.replicas.follower import Link
from quorate.broker.replicas.messages import FollowAnswer, FollowMessage, MalformedMessage, decode_answer
from quorate.metadata_log.errors import ErrorCode
from quorate.scripts.fuzzing.exchange_stage import HONEST, HOSTILE, LAG_MAX_MS, LEADER, STEP_MS, ExchangeStage
from quorate.scripts.fuzzing.mutating import EDGES, mutated, mutated_document
from quorate.scripts.fuzzing.target import Wrong

#: Exchanges of the honest conversation that inputs are changes of; steps in which all must be well again.
_EXCHANGES: Final = 6
_RECOVERY_STEPS: Final = int(4 * LAG_MAX_MS / STEP_MS)
#: A follower whose session ended waits 2 s at most before it begins another one.
_STEPS_PER_MESSAGE: Final = 10
#: A replica that lost no more than this has it again by then.
_CUT_BYTES: Final = 5_000
#: Bytes of the numbers that a column may be made of.
_WIDTHS: Final = (1, 2, 4, 8)
#: Numbers at which positions and times go wrong, too.
_NUMBERS: Final = (*EDGES, -1, 2**53 + 1, 2**62, 2**63 - 2)


class FollowMessageTarget:
    """The messages of a process that plays a follower, at one that plays its leader, which is followed by another,
    too.
    """

    def __init__(self) -> None:
        said = _conversation()
        self._corpus = said[::2]

    def make(self, rng: Random) -> bytes:
        return _changed(self._corpus, rng)

    def run(self, data: bytes) -> bool:
        stage = ExchangeStage()
        outcomes = [self._say(stage, frame) for frame in msgpack.unpackb(data)]
        _recover(stage, (HONEST,))
        if stage.leader.session_count > len(stage.followers):
            raise Wrong(f"{stage.leader.session_count} sessions are kept of {len(stage.followers)} brokers")
        if not stage.leader.heard_from.keys() <= {HONEST, HOSTILE}:
            raise Wrong(f"the leader has heard from {sorted(stage.leader.heard_from)}")
        return all(outcomes)

    def _say(self, stage: ExchangeStage, frame: bytes) -> bool:
        try:
            answer = decode_answer(stage.answer(frame))
        except MalformedMessage:
            return False
        finally:
            stage.exchange(HONEST)
            stage.step()
        return answer.error is ErrorCode.NONE and not len(answer.refused_rows) and not answer.refused_followers


class FollowAnswerTarget:
    """The answers of a process that plays a leader, at one that follows; then the leader is honest again."""

    def __init__(self) -> None:
        self._corpus = _conversation()[1::2]

    def make(self, rng: Random) -> bytes:
        return _changed(self._corpus, rng)

    def run(self, data: bytes) -> bool:
        stage, is_taken, may_lag = ExchangeStage(), True, frozenset[int]()
        for frame in msgpack.unpackb(data):
            answer = self._hear(stage, *self._said(stage), frame)
            is_taken &= answer is not None and answer.error is ErrorCode.NONE
            if answer is not None and answer.log_end < stage.log_end - _CUT_BYTES:
                # It was told that its leader has less, and has cut what it had: that takes its time to copy.
                may_lag = frozenset((HONEST,))
        _recover(stage, (HONEST, HOSTILE), may_lag)
        return is_taken

    def _said(self, stage: ExchangeStage) -> tuple[Link, FollowMessage]:
        """The next message of the follower, which it does not keep back for long whatever it was answered."""
        for _ in range(_STEPS_PER_MESSAGE):
            for link, message, _ in stage.messages(HONEST):
                return link, message
            stage.step()
        raise Wrong("the follower says nothing any more")

    def _hear(self, stage: ExchangeStage, link: Link, message: FollowMessage, frame: bytes) -> FollowAnswer | None:
        try:
            stage.answered(HONEST, link, message, frame)
        except MalformedMessage:
            # As its shell does.
            stage.followers[HONEST].core.failed(link, message, stage.now_ms)
            return None
        return decode_answer(frame)


def _conversation() -> list[bytes]:
    """The words of the second follower and the leader while all are honest: messages and answers in turn."""
    stage, said = ExchangeStage(), list[bytes]()
    for _ in range(_EXCHANGES):
        said += stage.exchange(HOSTILE)
        stage.exchange(HONEST)
        stage.step()
    return said


def _recover(stage: ExchangeStage, speaking: tuple[int, ...], may_lag: frozenset[int] = frozenset()) -> None:
    """Let time pass in which those are honest who speak: they are in all ISRs where they belong, the others in none."""
    errors: dict[int, ErrorCode] = {}
    for _ in range(_RECOVERY_STEPS):
        for broker in speaking:
            for link, message, frame in stage.messages(broker):
                answer = stage.answer(frame)
                errors[broker] = decode_answer(answer).error
                stage.answered(broker, link, message, answer)
        stage.step()
    if errors != dict.fromkeys(speaking, ErrorCode.NONE):
        raise Wrong(f"who is honest was answered {errors} last")
    wanted = [{LEADER, *speaking} & set(replicas) for replicas in stage.replicas()]
    if [set(isr) - may_lag for isr in stage.isrs()] != [isr - may_lag for isr in wanted]:
        raise Wrong(f"the ISRs are {stage.isrs()}, and should be {wanted}; any of {set(may_lag)} may lag")


def _changed(corpus: list[bytes], rng: Random) -> bytes:
    """The conversation with one or more of its frames changed, and some left out, repeated or in another order."""
    frames = list(corpus)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(frames))
        frames[at] = _changed_frame(frames[at], corpus, rng)
    if rng.random() < 0.3:
        at = rng.randrange(len(frames))
        frames[at:at] = rng.choice((frames[at : at + 1], [rng.randbytes(rng.randint(0, 60))], frames[::-1]))
    if rng.random() < 0.3:
        del frames[rng.randrange(len(frames))]
    packed: bytes = msgpack.packb(frames)
    return packed


def _changed_frame(frame: bytes, corpus: list[bytes], rng: Random) -> bytes:
    if rng.random() < 0.3:
        return mutated([frame, *corpus], rng)
    try:
        fields = msgpack.unpackb(frame)
        if not isinstance(fields, list) or not fields:
            return mutated(corpus, rng)
        at = rng.randrange(len(fields))
        fields[at] = _changed_field(fields[at], rng)
        packed: bytes = msgpack.packb(fields)
    except (ValueError, OverflowError, msgpack.UnpackException):
        return mutated(corpus, rng)  # changed before, and no message any more
    return packed


def _changed_field(field: Any, rng: Random) -> Any:
    """A column with one of its numbers at an edge, a number at an edge or near to what it was, or what it likes."""
    if isinstance(field, bytes) and field and rng.random() < 0.8:
        width = rng.choice([width for width in _WIDTHS if len(field) % width == 0])
        begin = width * rng.randrange(len(field) // width)
        number = rng.choice(EDGES) & ((1 << (8 * width)) - 1)
        return field[:begin] + number.to_bytes(width, "little") + field[begin + width :]
    if type(field) is int and rng.random() < 0.8:
        return rng.choice((rng.choice(_NUMBERS), field + 1, field - 1, field + rng.randint(1, 10_000)))
    return mutated_document(field, rng)
