"""Every request with what became of it, held against the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from quorate.controller.decisions.decision import Decision
from quorate.controller.engine.interfaces import Applied, FutureReply, WriteContext
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.metadata_log.errors import ApiError, ErrorCode, OutcomeUnknown, Overloaded
from quorate.scripts.simulation.system.oracle import ReplayedLog
from tests.property.controller_machine.log_of_three import Member

T = TypeVar("T")


@dataclass(eq=False)
class Trace:
    """One write event of a client."""

    name: str
    node: Member
    #: Exclusive end of what had been acknowledged when it was sent.
    least: int = 0
    epoch: int = -1
    context: WriteContext | None = None
    decision: Decision[Any] | None = None
    #: Exclusive end of its records, once they are part of the head.
    end_offset: int | None = None
    #: Answers that the controller gave: one, in the end.
    answers: list[object] = field(default_factory=list)

    @property
    def rests_on(self) -> int:
        """Exclusive end of what its answer says is so."""
        assert self.context is not None
        return self.context.next_offset if self.end_offset is None else self.end_offset

    def check_acknowledged(self, log: ReplayedLog) -> None:
        """A success: everything it rests on is committed, as it was decided."""
        context, decision = self.context, self.decision
        assert context is not None, f"{self}: answered without a decision"
        assert decision is not None, f"{self}: answered without a decision"
        assert self.rests_on <= log.end_offset, f"{self}: acknowledged before its commit"
        assert self.rests_on <= self.node.delivered_end, f"{self}: acknowledged before this node has it"
        if decision.has_records:
            assert self.end_offset is not None
            assert self.wrote_into(log), f"{self}: acknowledged, and what it wrote is gone"
        self._check_decided_on(log, is_current=decision.is_finding)

    def check_refused(self, log: ReplayedLog, error: Exception) -> None:
        """A refusal is a read: all that it was decided on is committed, and nothing is missing."""
        is_decided = self.context is not None and self.decision is None
        if is_decided and _says_something(error):
            assert self.rests_on <= log.end_offset, f"{self}: refused before the commit of what that rests on"
            self._check_decided_on(log, is_current=True)

    def _check_decided_on(self, log: ReplayedLog, *, is_current: bool) -> None:
        context = self.context
        assert context is not None
        # What it was decided on is what the log says up to there: nothing below it was lost either.
        assert log.states[context.next_offset].head == context.image, f"{self}: decided on another state than the log's"
        if is_current:
            assert self.rests_on >= self.least, f"{self}: it misses what was acknowledged before it was sent"

    def wrote_into(self, log: ReplayedLog) -> bool:
        """Whether anything of it is in the committed log."""
        if self.context is None or self.decision is None:
            return False
        first = self.context.next_offset
        if self.end_offset is not None:
            return self.end_offset > first and self._is_own(log, first) and self._is_own(log, self.end_offset - 1)
        # A pass that was cut; nothing else can have taken its place in its epoch.
        return bool(self.decision.slices) and self._is_own(log, first)

    def _is_own(self, log: ReplayedLog, offset: int) -> bool:
        return offset < log.end_offset and log.epochs[offset] == self.epoch

    def check_ended(self, log: ReplayedLog) -> None:
        """At the end of all: it has its answer, and a refusal left no trace in the log."""
        assert len(self.answers) == 1, f"{self}: {len(self.answers)} answers"
        answer = self.answers[0]
        if isinstance(answer, Exception) and not isinstance(answer, OutcomeUnknown):
            assert not self.wrote_into(log), f"{self}: refused with {answer!r}, and yet it is in the log"


def _says_something(error: Exception) -> bool:
    """Of the cluster; and not that its time was up, leadership was lost, or something broke."""
    nothing = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR)
    return isinstance(error, ApiError) and error.code not in nothing


class Traces:
    """All requests of a run."""

    def __init__(self, log: ReplayedLog) -> None:
        self.log = log
        self.all: list[Trace] = []
        self.begun: Trace | None = None

    def acknowledged_end(self) -> int:
        """What a reader who begins now must see."""
        return max((t.rests_on for t in self.all if t.answers and not isinstance(t.answers[0], Exception)), default=0)

    def check_ended(self) -> None:
        for trace in self.all:
            trace.check_ended(self.log)


def counting_reply(traces: Traces) -> type[FutureReply[Any]]:
    """The reply of an event, which notes in the event's trace what it was told, whether or not somebody still waits."""

    class CountingReply(FutureReply[Any]):
        def __init__(self, future: Any) -> None:
            super().__init__(future)
            trace = traces.begun
            assert trace is not None
            self._trace = trace

        def complete(self, result: Any) -> None:
            self._trace.answers.append(result)
            self._trace.check_acknowledged(traces.log)
            super().complete(result)

        def fail(self, error: Exception) -> None:
            self._trace.answers.append(error)
            self._trace.check_refused(traces.log, error)
            super().fail(error)

    return CountingReply


class TracedController(QuorumController):
    """The controller of production; what goes in and comes out of its write events is noted."""

    def watch(self, traces: Traces, member: Member) -> None:
        self._traces = traces
        self._member = member

    async def append_write_event(
        self,
        name: str,
        operation: Callable[[WriteContext], Decision[T]],
        timeout_ms: float | None = None,
        applied: Applied[T] | None = None,
    ) -> T:
        traces = self._traces
        trace = Trace(name, self._member, traces.acknowledged_end())

        def decide(context: WriteContext) -> Decision[T]:
            trace.epoch, trace.context = self.epoch, context
            trace.decision = decision = operation(context)
            return decision

        def note(decision: Decision[T], end_offset: int) -> None:
            trace.end_offset = end_offset
            if applied is not None:
                applied(decision, end_offset)

        traces.begun = trace
        traces.all.append(trace)
        event = super().append_write_event(name, decide, timeout_ms, note)
        try:
            return await event
        except Overloaded:
            # Refused at the door: it never was an event.
            traces.all.remove(trace)
            raise
