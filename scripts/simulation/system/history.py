"""The history of clients' calls on topics and the answers, as the checker wants it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from quorate.scripts.simulation.system.linearizability import TimedCall, Undecided, check
from quorate.scripts.simulation.system.topic_register import Action, Create, ReadTopic, register_of


@dataclass(eq=False, slots=True)
class RecordedCall:
    """A call under way."""

    topic: str
    called: float
    action: Action
    #: None: under way, or of unknown outcome.
    answered: float | None = None
    is_refused: bool = False


@dataclass(slots=True)
class CallHistory:
    """All calls of a run."""

    asked: list[RecordedCall] = field(default_factory=list)

    def begin(self, topic: str, now: float, action: Action) -> RecordedCall:
        """A call is made."""
        asked = RecordedCall(topic, now, action)
        self.asked.append(asked)
        return asked

    def succeeded(self, asked: RecordedCall, now: float, action: Action) -> None:
        """It was carried out, or refused with a claim; ``action`` has what was answered."""
        asked.action = action
        asked.answered = now

    def refused(self, asked: RecordedCall) -> None:
        """It certainly changed nothing, and nothing was said of the topic."""
        asked.is_refused = True

    @property
    def known(self) -> int:
        """Calls whose outcome is known."""
        return sum(asked.answered is not None for asked in self.asked)

    @property
    def unknown(self) -> int:
        """Changes of which nobody knows what became."""
        return sum(self._is_open(asked) for asked in self.asked)

    def _is_open(self, asked: RecordedCall) -> bool:
        return asked.answered is None and not asked.is_refused and not isinstance(asked.action, ReadTopic)

    def calls_of(self, topic: str) -> list[TimedCall[Action]]:
        """The history of one topic. Reads without an answer say nothing, nor do refusals that claim nothing."""
        return [
            TimedCall(asked.called, math.inf if asked.answered is None else asked.answered, asked.action)
            for asked in self.asked
            if asked.topic == topic and (asked.answered is not None or self._is_open(asked))
        ]

    def check(self) -> tuple[str | None, int]:
        """The problem of the history, None if it is linearizable; and the number of topics whose histories were too
        long to decide.
        """
        undecided = 0
        actions = [asked.action for asked in self.asked]
        known_ids = frozenset(a.topic_id for a in actions if isinstance(a, Create) and a.topic_id is not None)
        step = register_of(known_ids)
        for topic in sorted({asked.topic for asked in self.asked}):
            calls = self.calls_of(topic)
            try:
                verdict = check(calls, None, step)
            except Undecided:
                undecided += 1
                continue
            if not verdict.is_linearizable:
                return f"the history of topic {topic} is not linearizable:\n{_told(calls, verdict.left)}", undecided
        return None, undecided


def _told(calls: list[TimedCall[Action]], left: tuple[TimedCall[Action], ...]) -> str:
    """The calls in the order of their beginning; those that no order explains are marked."""
    marked = set(map(id, left))
    lines = []
    for call in sorted(calls, key=lambda call: call.called):
        until = "unknown" if call.answered == math.inf else f"{call.answered:8.4f}"
        lines.append(f"  {'?' if id(call) in marked else ' '} {call.called:8.4f} - {until:>8}  {_short(call.action)}")
    return "\n".join(lines)


def _short(action: Action) -> str:
    if isinstance(action, ReadTopic) and action.seen is not None and action.seen.topic_id is not None:
        return str(replace(action, seen=replace(action.seen, topic_id=action.seen.topic_id[:4])))
    if isinstance(action, Create) and action.topic_id is not None:
        return str(replace(action, topic_id=action.topic_id[:4]))
    return str(action)
