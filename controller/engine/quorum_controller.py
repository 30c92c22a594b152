"""``QuorumController``: serialises every change of the cluster's metadata through ``append_write_event``.

Single-threaded. A write event is ``decide(head) -> records + reply``; the records are replayed onto the head and
appended to the quorum's log, and the reply waits in the purgatory until they commit. Where there are none, it and any
refusal wait among the findings until leadership is confirmed, but for a heartbeat's (``Decision.is_finding``). Standbys
replay what commits: errors in that are fatal. Losing leadership drops the head. Kafka's, without timelines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from quorate.controller.decisions.decision import Decision, Slice
from quorate.controller.decisions.record_slices import as_transaction, slices_of
from quorate.controller.engine.confirmed_reads import ConfirmedReads
from quorate.controller.engine.event_queue import Event, EventQueue, Scheduler
from quorate.controller.engine.faults import FaultHandler, classify
from quorate.controller.engine.findings import Findings
from quorate.controller.engine.head import Head
from quorate.controller.engine.head_counters import HeadWatch
from quorate.controller.engine.interfaces import (
    Applied,
    BatchReader,
    ControllerLimits,
    DecidedWrite,
    FutureReply,
    Quorum,
    Role,
    UnheardReply,
    WriteContext,
    WriteRequest,
    asked_for,
)
from quorate.controller.engine.marks import APPENDED, Marks
from quorate.controller.engine.mass_pass import MassPass
from quorate.controller.engine.purgatory import Purgatory
from quorate.controller.engine.room import require_room
from quorate.controller.engine.stable_readers import StableReaders
from quorate.metadata_log.batches.builder import counted
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.errors import (
    ApiError,
    ErrorCode,
    InvariantViolation,
    LimitExceeded,
    NotController,
    OutcomeUnknown,
)
from quorate.metadata_log.limits import BATCH_BYTES_MAX, RECORDS_PER_OPERATION_MAX
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState

T = TypeVar("T")

_ENDED: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)


class QuorumController:
    """One controller of the quorum, active or standby. All methods belong to the loop thread."""

    def __init__(
        self,
        node_id: int,
        quorum: Quorum,
        role: Role,
        scheduler: Scheduler,
        faults: FaultHandler,
        limits: ControllerLimits,
    ) -> None:
        self.node_id = node_id
        self.scheduler = scheduler
        self.events = EventQueue(scheduler, limits.queue_length_max, self._flush)
        self.head_watch = HeadWatch(scheduler.monotonic_ms, self.events)
        self._quorum = quorum
        self._role = role
        self._faults = faults
        self._limits = limits
        self._purgatory = Purgatory()
        self._findings = Findings()
        self._state = ReplayState()
        self._applied_offset = 0
        self._head: Head | None = None
        self._marked: list[Marks] = []  # of those of this turn's requests that are traced
        self._readers = StableReaders()
        self.confirmed_reads = ConfirmedReads(quorum, limits.queue_length_max)
        #: Called after the stable state has moved.
        self.on_stable: Callable[[], None] = lambda: None
        #: Called with every change that was decided, or refused when its turn came.
        self.on_decided: Callable[[DecidedWrite], None] | None = None

    # --- what others may look at ---------------------------------------------------------------------

    @property
    def stable(self) -> MetadataImage:
        """The newest committed image outside any open transaction."""
        return self._state.stable

    @property
    def applied_offset(self) -> int:
        """Exclusive end of what the stable state has seen."""
        return self._applied_offset

    @property
    def is_active(self) -> bool:
        """Whether this node holds a claim (its activation may still be on its way)."""
        return self._head is not None

    def settled(self, broker_id: int) -> MetadataImage | None:
        """See ``Head.settled``. None on a standby, too."""
        return None if self._head is None else self._head.settled(broker_id, self._state.stable)

    @property
    def epoch(self) -> int:
        """The claimed epoch; -1 on a standby."""
        return -1 if self._head is None else self._head.epoch

    @property
    def active_id(self) -> int | None:
        """The active controller, as far as this node knows."""
        return self._quorum.leader_id

    @property
    def pending_replies(self) -> int:
        """Replies that wait for their offset, or for leadership to be confirmed."""
        return len(self._purgatory) + len(self._findings)

    # --- events --------------------------------------------------------------------------------------

    async def append_write_event(
        self,
        name: str,
        operation: Callable[[WriteContext], Decision[T]],
        timeout_ms: float | None = None,
        applied: Applied[T] | None = None,
    ) -> T:
        """Decide on the head, write the records, and return the reply once they are committed.

        It is asked for by the running task's ``ORIGIN``, and refused where its ``PRECONDITION`` does not hold.

        Args:
            timeout_ms: bounds the wait in the queue (then nothing was changed) and the wait for the commit
                (then the outcome is unknown), or, where nothing was written, for that to be confirmed.
            applied: called with the decision and the end offset of its records once they are part of the head:
                the place for soft state.

        Raises:
            ApiError: the operation's own refusal; NotController; Overloaded; OutcomeUnknown.
        """
        reply: FutureReply[T] = FutureReply(asyncio.get_running_loop().create_future())
        deadline = None if timeout_ms is None else self.scheduler.monotonic_ms() + timeout_ms
        request = asked_for(name, operation, reply, applied)
        require_room(self._head, self._findings, self._limits)
        self.events.append(self._write_event(request, deadline))
        # Twice the time: one for the queue, which the event itself enforces, one for the commit.
        return await reply.outcome(name, None if timeout_ms is None else 2 * timeout_ms)

    async def append_read_event(self, operation: Callable[[MetadataImage], T], *, is_linearizable: bool = False) -> T:
        """Answer from the stable image; a linearizable read waits until it contains all that was acknowledged before.

        Raises:
            NotController: linearizable, and this node cannot confirm that it leads.
            Overloaded: linearizable, and too many wait for that.
        """
        if is_linearizable:
            offset = await self.confirmed_reads.offset()
            if self.applied_offset < offset:
                await self._readers.wait(offset)
        return operation(self.stable)

    def write_internally(
        self, name: str, operation: Callable[[WriteContext], Decision[T]], applied: Applied[T] | None = None
    ) -> Event:
        """An event of the controller's own: nobody waits for it; a refusal in it is a fault."""

        def fail(error: Exception) -> None:
            # Leadership or the process ended before it was done: its successor will see to it.
            if not (isinstance(error, ApiError) and error.code in _ENDED):
                self._faults.fault(name, error)

        request: WriteRequest[T] = WriteRequest(name, operation, UnheardReply(fail), applied)
        return self._write_event(request, None)

    def close(self) -> None:
        """Fail what waits. The quorum is closed by its owner."""
        self.events.close()
        closing = ApiError(ErrorCode.REQUEST_TIMED_OUT, "the controller is shutting down")
        self._purgatory.fail_all(OutcomeUnknown("the controller is shutting down: read before repeating the change"))
        self._findings.fail_all(closing)
        self._readers.fail_all(closing)

    def _write_event(self, request: WriteRequest[T], deadline_ms: float | None) -> Event:
        reply = request.reply

        def run() -> None:
            head = self._head
            if head is None:
                reply.fail(NotController(self.active_id))
                return
            base_offset, refusal = head.next_offset, None
            try:
                self._decide(head, request)
                if request.marks is not None:
                    self._marked.append(request.marks)
            except Exception as error:  # noqa: BLE001 - the one place where a failure of an event is classified
                refusal = self._handle(request.name, error, partial(self._refuse, head, request))
            if self.on_decided is not None:
                self.on_decided(DecidedWrite(request.name, request.origin, base_offset, head.next_offset, refusal))

        return Event(request.name, run, reply.fail, deadline_ms, request.is_external, request.is_urgent)

    def _decide(self, head: Head, request: WriteRequest[T]) -> None:
        context = WriteContext(head.image, head.next_offset, self.scheduler.monotonic_ms(), request.origin)
        decision = request.operation(context)
        items, count = counted(decision.records)
        slices = decision.slices
        if count <= RECORDS_PER_OPERATION_MAX and not slices:
            if count:
                self._stage(head, request.name, items, count)
            self._note(request, decision, head)
            self._answer(head, context.next_offset, decision, request)
        elif decision.is_atomic and not decision.is_internal:
            message = f"{request.name} would write {count} records; one operation may write {RECORDS_PER_OPERATION_MAX}"
            raise LimitExceeded(message, ErrorCode.POLICY_VIOLATION)
        else:
            slices = slices or slices_of(items)
            if decision.is_atomic:
                slices = as_transaction(request.name, slices, head.image)
            self._begin_pass(head, request, decision, slices)

    def _note(self, request: WriteRequest[T], decision: Decision[T], head: Head) -> None:
        """Let soft state follow the head. Where it cannot, the two fit no more, whatever the error."""
        try:
            if request.applied is not None:
                request.applied(decision, head.next_offset)
        except Exception as error:
            raise InvariantViolation(f"soft state did not follow a decision: {error!r}") from error

    def _stage(self, head: Head, name: str, items: Sequence[BatchItem], count: int) -> None:
        """All of it in one batch, or none of it."""
        piece = head.encode(items)
        if not head.fits(len(piece)):
            self._append(head)
            piece = head.encode(items)
            if not head.fits(len(piece)):
                message = f"{name} would write a batch of {len(piece)} bytes; {BATCH_BYTES_MAX} is the most"
                raise LimitExceeded(message, ErrorCode.POLICY_VIOLATION)
        head.stage(piece, count, self.scheduler.wall_ms())

    def _begin_pass(self, head: Head, request: WriteRequest[T], decision: Decision[T], slices: Sequence[Slice]) -> None:
        base_offset = head.next_offset

        def write(part: Slice) -> None:
            self._append(head)
            self._stage(head, request.name, *counted(part(head.image)))

        def finish() -> None:
            head.is_passing = False
            self._note(request, decision, head)
            self._answer(head, base_offset, decision, request)

        def give_up(error: Exception, fail: Callable[[Exception], None]) -> None:
            self._handle(request.name, error, fail, always_resign=True)

        head.is_passing, head.passing_broker = True, decision.changed_broker
        is_current, fail = (lambda: self._head is head), request.reply.fail
        MassPass(request.name, slices, self.events, is_current, write, finish, give_up, fail).run()

    def _answer(self, head: Head, base_offset: int, decision: Decision[T], request: WriteRequest[T]) -> None:
        """Give the reply once it is true for good: see ``Purgatory`` and ``Findings``."""
        reply, result = request.reply, decision.reply
        if request.is_external and decision.is_finding and head.next_offset == base_offset:
            reply.found()
            self._findings.add(head.next_offset, partial(reply.complete, result), reply.fail)
        elif head.has_uncommitted:
            self._purgatory.add(head.next_offset, reply, result)
        else:
            reply.complete(result)

    def _refuse(self, head: Head, request: WriteRequest[T], error: Exception) -> None:
        """Nothing was written. A refusal says how things are, too: that a topic exists, that an epoch is stale."""
        if request.is_external and self._head is head:
            request.reply.found()
            self._findings.add(head.next_offset, partial(request.reply.fail, error), request.reply.fail)
        else:
            request.reply.fail(error)

    def _flush(self) -> None:
        """End of a turn: what its events decided leaves as one batch."""
        head = self._head
        if head is None:
            return
        try:
            marked, self._marked = self._marked, []
            self._append(head)
            for marks in marked:
                marks.note(APPENDED)
            self._findings.ask(self._quorum.read_barrier)
        except Exception as error:  # noqa: BLE001 - whatever it is, the head may be ahead of the log now
            reaction = classify(error)
            if reaction.is_fault:
                self._faults.fault("append", error)
            self._renounce()

    def _append(self, head: Head) -> None:
        if (batch := head.close_batch()) is None:
            return
        try:
            last_offset = self._quorum.append(head.epoch, batch.data, batch.record_count)
            assert last_offset + 1 == head.next_offset, (last_offset, head.next_offset)
        except Exception:  # whatever it is, the head is ahead of the log now
            self._renounce()
            raise

    def _handle(
        self, name: str, error: Exception, fail: Callable[[Exception], None], *, always_resign: bool = False
    ) -> ApiError:
        """Deal with an exception, and return the error that the client is told."""
        reaction = classify(error)
        if reaction.is_fault:
            self._faults.fault(name, error)
        if reaction.resigns or always_resign:
            self._renounce()
        fail(reaction.public)
        return reaction.public

    # --- the quorum's listener -----------------------------------------------------------------------

    def on_commit(self, batches: BatchReader) -> None:
        """The next committed batches; each batch comes once."""
        if self._head is None:
            self._replay(batches)
        else:
            # What it appended itself it has replayed already; anything else in its epoch is a control batch.
            self._state = self._head.commit(batches.end_offset) or self._state
        self._applied_offset = batches.end_offset
        self._purgatory.complete_up_to(batches.end_offset)
        self._findings.complete_up_to(batches.end_offset)
        self._readers.release(self._applied_offset)
        self.on_stable()

    def on_snapshot(self, state: ReplayState, end_offset: int) -> None:
        """A checkpoint replaces the state of this standby."""
        if self._head is not None:
            self._faults.fatal("checkpoint load", ReplayError("the active controller was given a checkpoint"))
        self._state = state
        self._applied_offset = end_offset
        self._readers.release(self._applied_offset)
        self.on_stable()

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Another node leads now. For this node it comes after everything before its epoch has been committed here."""
        if self._head is not None and leader_id == self.node_id and self._head.epoch == epoch:
            return
        self._renounce()
        if leader_id == self.node_id:
            self._claim(epoch)

    def _claim(self, epoch: int) -> None:
        head = Head(self._state, epoch, self._quorum.log_end_offset, self.head_watch)
        self._head = head
        state = self._state

        def run() -> None:
            if self._head is not head:
                return
            try:
                self._decide(head, WriteRequest("activation", lambda _: self._role.activation(state), UnheardReply()))
                self._role.activated()
            except Exception as error:  # noqa: BLE001 - an epoch that cannot begin must not serve
                self._faults.fatal("activation", error)

        # Before everything that waits: nothing is served before the activation records are in the log.
        self.events.prepend(Event("activation", run, lambda _: None))

    def _replay(self, batches: BatchReader) -> None:
        try:
            for batch in batches:
                self._state = self._state.replay_batch(batch)
        except Exception as error:  # noqa: BLE001 - better to stop than to diverge
            self._faults.fatal(f"replay of batches up to offset {batches.end_offset}", error)

    def _renounce(self) -> None:
        head, self._head = self._head, None
        if head is None:
            return
        try:
            self._quorum.resign(head.epoch)
            self._role.renounced()
        except Exception as error:  # noqa: BLE001 - it would lead the quorum, and serve nobody
            self._faults.fatal("resignation", error)
        lost = OutcomeUnknown(
            "leadership was lost before the change committed: it may or may not be made; read before repeating it",
            ErrorCode.NOT_CONTROLLER,
        )
        self._purgatory.fail_all(lost)
        self._findings.fail_all(NotController(self.active_id, "leadership was lost and nothing was changed: try again"))
