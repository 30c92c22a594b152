"""The messages of a hostile voter: every type with wild values, in senseless order, and damaged ones.

What it never says is a lie that is a promise: that it votes for somebody, that it has what it has not, that more is
committed than is; and it writes no sound entry. No node can tell these from the truth, and agreement rests on that no
voter does it. What may raise the epoch, as every voter may, it says only now and then: a cluster in which a voter
stands for election all the time elects all the time.
"""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any, Final, get_args

from quorate.metadata_log.batches.batch import build_batch
from quorate.metadata_log.batches.batch_run import split_run
from quorate.metadata_log.errors import MalformedData
from quorate.quorum.errors import ProtocolError
from quorate.quorum.messages import messages
from quorate.quorum.messages.messages import Message
from quorate.quorum.messages.wire import decode, encode
from quorate.scripts.fuzzing.mutating import mutated

_TYPES: Final[tuple[type[Any], ...]] = get_args(Message)
_KEPT_MAX: Final = 64
#: Seconds between two messages that may raise the epoch.
_RAISING_SECONDS: Final = 5.0
_EDGES: Final = (0, 1, 2**31 - 1, 2**31, 2**32, 2**53, 2**61, 2**63 - 1, 2**63, 2**64 - 1)


@dataclasses.dataclass(slots=True)
class OverheardState:
    """The state of the cluster by its own messages."""

    epoch: int = 0
    round: int = 0
    high_watermark: int = 0
    #: Of the log, as far as is known.
    end: int = 0
    #: Whole messages, to be mutated.
    kept: list[bytes] = dataclasses.field(default_factory=list)

    def note(self, payload: bytes, rng: Random) -> None:
        """A message of an honest node."""
        message = decode(payload)
        self.epoch = max(self.epoch, message.epoch)
        if isinstance(message, messages.Append):
            self.round = message.round
            self.high_watermark = max(self.high_watermark, message.high_watermark)
            self.end = max(self.end, message.prev_end)
        if len(self.kept) < _KEPT_MAX:
            self.kept.append(payload)
        elif rng.random() < 0.01:
            self.kept[rng.randrange(_KEPT_MAX)] = payload


class HostileMessages:
    """A source of payloads that ends with its generator only."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.heard = OverheardState()
        self._may_raise_at = 0.0

    def payload(self, now: float, damaged_share: float) -> bytes:
        """The next one. ``now`` in seconds. ``damaged_share`` of them end their connection, as a rule."""
        while True:
            payload = self._damaged() if self._rng.random() < damaged_share else self._sound()
            try:
                message = decode(payload)
            except ProtocolError:
                return payload
            if self._is_promise(message):
                continue
            if message.epoch > self.heard.epoch:
                if now < self._may_raise_at:
                    continue
                self._may_raise_at = now + _RAISING_SECONDS
            return payload

    def _damaged(self) -> bytes:
        rng = self._rng
        kind = rng.random()
        if kind < 0.1:
            return rng.randbytes(rng.choice((1, 2, 10, 100, 5_000)))
        if kind < 0.6 and self.heard.kept:
            return mutated(self.heard.kept, rng)
        return mutated([self._sound()], rng)

    def _sound(self) -> bytes:
        """A message as far as its types go; where it is of an honest node, it is none for its receiver."""
        if self.heard.kept and self._rng.random() < 0.2:
            return self._rng.choice(self.heard.kept)
        try:
            return encode(self._message())
        except OverflowError:
            return b"\xc1"  # a number that msgpack has not, as a byte that it has not

    def _is_promise(self, message: Message) -> bool:
        heard = self.heard
        if isinstance(message, messages.VoteReply):
            return message.is_granted
        if isinstance(message, messages.AppendReply):
            return message.acked_end > heard.high_watermark
        if isinstance(message, messages.Commit):
            return message.high_watermark > heard.high_watermark
        if isinstance(message, messages.Append):
            return message.high_watermark > heard.high_watermark or _has_sound_entries(message)
        return False

    # --- values --------------------------------------------------------------------------------------

    def _message(self) -> Message:
        cls = self._rng.choice(_TYPES)
        message: Message = cls(*(self._value(field) for field in dataclasses.fields(cls)))
        return message

    def _value(self, field: dataclasses.Field[Any]) -> Any:
        rng, heard = self._rng, self.heard
        if field.type == "bool":
            return rng.random() < 0.5
        if field.type == "bytes":
            batch = bytearray(build_batch(rng.randbytes(20), 1, 0))
            batch[rng.randrange(len(batch))] ^= 1 << rng.randrange(8)
            return rng.choice((b"", rng.randbytes(rng.randrange(200)), bytes(batch), bytes(rng.choice((10, 100_000)))))
        if field.type != "int":
            return tuple((self._number(3), self._number(heard.end)) for _ in range(rng.choice((0, 0, 2, 2_000))))
        if field.name.endswith("epoch"):
            return self._number(heard.epoch)
        if field.name == "round":
            return self._number(heard.round)
        return self._number(rng.choice((heard.end, heard.high_watermark)))

    def _number(self, near: int) -> int:
        rng = self._rng
        if rng.random() < 0.9:
            return max(0, near + rng.choice((0, 0, 0, 0, -1, 1, -10, 10)))
        return rng.choice((*_EDGES, near + 1_000, near + 900_000, near + 2_000_000))


def _has_sound_entries(message: messages.Append) -> bool:
    if not message.batches:
        return False
    try:
        split_run(message.batches, message.prev_end, message.prev_epoch, message.epoch)
    except MalformedData:
        return False
    return True
