"""A network's treatment of the frames of one direction of one link. Pure: time and chance are given."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any, Final, NamedTuple

#: A link under a rate holds back so much at most, as the buffer of a switch does.
_BACKLOG_S: Final = 0.5
_IPV4: Final = b"\x08\x00"
_TCP: Final = 6
_SYN: Final = 0x02
_ACK: Final = 0x10
_MAC_BYTES: Final = 14


@dataclass(frozen=True, slots=True)
class Rule:
    """Of one direction. Shares are from 0 to 1, times in milliseconds; the default is a wire."""

    is_up: bool = True
    loss: float = 0.0
    duplicate: float = 0.0
    delay_ms: float = 0.0
    #: Added to the delay, anything from 0 to this; frames overtake each other where it is more than what lies between.
    jitter_ms: float = 0.0
    #: Share of the frames that are held back by ``reorder_ms`` more, so that those behind them overtake them.
    reorder: float = 0.0
    reorder_ms: float = 0.0
    #: Kilobits a second; 0: no limit.
    rate_kbit: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """For ``Rule(**...)`` elsewhere."""
        return asdict(self)


WIRE: Final = Rule()
DOWN: Final = Rule(is_up=False)


@dataclass(slots=True)
class NetworkLink:
    """One direction under its rule. Its chance is its own: what other links carry does not change it."""

    rng: Random
    rule: Rule = WIRE
    #: When what was taken is through, under a rate.
    _free_at: float = 0.0

    def deliveries(self, now: float, size: int) -> tuple[float, ...]:
        """The times at which a frame of so many bytes arrives, in seconds of the clock of ``now``: none, one or two."""
        rule = self.rule
        if rule is WIRE:
            return (now,)
        if not rule.is_up or (rule.loss and self.rng.random() < rule.loss):
            return ()
        at = now
        if rule.rate_kbit:
            if self._free_at - now > _BACKLOG_S:
                return ()
            self._free_at = max(now, self._free_at) + size * 8 / (rule.rate_kbit * 1000)
            at = self._free_at
        copies = 2 if rule.duplicate and self.rng.random() < rule.duplicate else 1
        return tuple(at + self._delay_ms() / 1000 for _ in range(copies))

    def _delay_ms(self) -> float:
        rule = self.rule
        delay = rule.delay_ms
        if rule.jitter_ms:
            delay += self.rng.random() * rule.jitter_ms
        if rule.reorder and self.rng.random() < rule.reorder:
            delay += rule.reorder_ms
        return delay


class Flow(NamedTuple):
    """A TCP connection, the same from both sides."""

    low: bytes
    high: bytes


class Segment(NamedTuple):
    """The facts about a segment that a middle-box looks at."""

    flow: Flow
    #: The first of a connection.
    is_opening: bool


def tcp_segment(frame: bytes) -> Segment | None:
    """The TCP segment (or its first fragment) in an Ethernet frame; None: something else is."""
    if frame[12:14] != _IPV4 or len(frame) < _MAC_BYTES + 40 or frame[_MAC_BYTES + 9] != _TCP:
        return None
    at = _MAC_BYTES + 4 * (frame[_MAC_BYTES] & 0x0F)
    if len(frame) < at + 20:
        return None
    source = frame[26:30] + frame[at : at + 2]
    target = frame[30:34] + frame[at + 2 : at + 4]
    flags = frame[at + 13]
    flow = Flow(source, target) if source < target else Flow(target, source)
    return Segment(flow, bool(flags & _SYN) and not flags & _ACK)


@dataclass(slots=True)
class MiddleBox:
    """A stateful firewall or address translator between two machines: it passes the connections that it knows of.

    It learns them by their first segment. One that was silent for longer than ``idle_s`` is forgotten, and then its
    segments are swallowed without a word, as AWS's and Azure's do after 350 s and 4 minutes.
    """

    idle_s: float
    #: When each was last heard of.
    _known: dict[Flow, float] = field(default_factory=dict)

    def passes(self, frame: bytes, now: float) -> bool:
        """Whether a frame of either direction goes through."""
        segment = tcp_segment(frame)
        if segment is None:
            return True
        if not segment.is_opening:
            heard_at = self._known.get(segment.flow)
            if heard_at is None:
                return False
            if now - heard_at > self.idle_s:
                del self._known[segment.flow]
                return False
        self._known[segment.flow] = now
        return True

    def forget(self) -> int:
        """Lose the table, as one that is replaced by its stand-by; how many connections it knew."""
        known = len(self._known)
        self._known.clear()
        return known
