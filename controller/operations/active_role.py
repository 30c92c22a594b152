"""The duties of an active controller: it begins its epoch, watches sessions, moves leaderships back, and keeps
an idle log moving."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from quorate.controller.access.token_ends import decide_sweep_tokens
from quorate.controller.brokers.fencing import apply_fencing, decide_fence_stale_broker
from quorate.controller.brokers.heartbeats import BrokerHeartbeats
from quorate.controller.brokers.session_order import Session
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.random_source import RandomSource
from quorate.controller.engine.event_queue import Event
from quorate.controller.engine.interfaces import NO_OP, WriteContext
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.operations.bootstrap import decide_activation
from quorate.controller.partitions.elections import decide_balance_leaders, decide_elect_unclean_leaders
from quorate.controller.partitions.preferred_counts import PreferredCounts
from quorate.controller.partitions.replica_deletions import TopicDeletions
from quorate.controller.quotas.mutations import MutationQuota, MutationQuotas
from quorate.metadata_log.errors import NotController
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import NoOpRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState

_FENCING = "fence_stale_broker"
_WATCH = "stall_watch"
#: Well below any session timeout, so that a stall is noticed before it is taken for silence of the brokers.
_WATCH_INTERVAL_MS = 250.0
#: A timer that is later than this was held up by more than a long turn of the loop.
_STALL_MS = 100.0
_BALANCE = "balance_leaders"
_UNCLEAN = "elect_unclean_leaders"
_SWEEP = "sweep_expired_delegation_tokens"

#: A bounded pass, over partitions from one row on; its reply: where the next one is to begin, None if there is none.
_Pass = Callable[[MetadataImage, ControllerConfig, int], Decision[int | None]]


@dataclass(frozen=True, slots=True)
class RoleSettings:
    """Settings of the active role that decisions do not see."""

    #: An idle log gets a NoOp record this often; 0 = never.
    idle_noop_interval_ms: float
    #: False: a broker's session begins with its first heartbeat, not with this controller's activation.
    starts_sessions: bool
    #: Leadership is given back to preferred leaders this often; 0 = only on request.
    leader_balance_interval_ms: float
    #: Where topics allow it, partitions without a leader elect uncleanly this often; 0 = only on request.
    unclean_election_interval_ms: float
    #: Delegation tokens that have ended are removed this often, where there are tokens.
    token_sweep_interval_ms: float
    #: A quota of mutations lets so many seconds' worth of its rate through at once.
    quota_burst_seconds: float


class ActiveRole:
    """``controller.engine.interfaces.Role``. Soft state exists between ``activated`` and ``renounced`` only."""

    def __init__(
        self,
        config: ControllerConfig,
        settings: RoleSettings,
        bootstrap_records: tuple[VersionedRecord, ...],
        random: RandomSource,
        new_id: Callable[[], Uuid],
    ) -> None:
        """``bootstrap_records``: what the first leader of an empty log writes at its head."""
        self.config = config
        self.random = random
        self.new_id = new_id
        self._settings = settings
        self._bootstrap_records = bootstrap_records
        self._controller: QuorumController | None = None
        self._sessions: BrokerHeartbeats | None = None
        #: Empty on a standby, and so are its buckets.
        self.deletions = TopicDeletions()
        self.mutation_quotas = MutationQuotas(settings.quota_burst_seconds)
        self._noop_seen_offset = -1
        #: When the watch is to look again; much later than that is a stall.
        self._watch_due_ms = math.inf

    def bind(self, controller: QuorumController) -> None:
        """The controller whose role this is; once, before it starts."""
        self._controller = controller

    @property
    def controller(self) -> QuorumController:
        """The controller that this role belongs to."""
        assert self._controller is not None
        return self._controller

    @property
    def sessions(self) -> BrokerHeartbeats:
        """Sessions of the brokers.

        Raises:
            NotController: this controller is not active.
        """
        if self._sessions is None:
            raise NotController(self.controller.active_id)
        return self._sessions

    @property
    def sessions_or_none(self) -> BrokerHeartbeats | None:
        """As ``sessions``; None where this controller is not active."""
        return self._sessions

    def note_contact(self, session: Session) -> None:
        """A heartbeat has arrived, whatever becomes of it."""
        if self._sessions is not None:
            self._sessions.note_contact(session, self.controller.scheduler.monotonic_ms())

    def quota_of(self, context: WriteContext) -> MutationQuota | None:
        """The quota of mutations of whoever asks; None: nothing bounds it."""
        return self.mutation_quotas.of(context.image.client_quotas, context.origin, context.now_ms)

    def charge(self, decision: Decision[object], end_offset: int) -> None:
        """``Applied`` of what ``quota_of`` was asked for."""
        self.mutation_quotas.charge()

    # --- controller.engine.interfaces.Role -----------------------------------------------------------------------

    def activation(self, state: ReplayState) -> Decision[None]:
        """The records that an epoch begins with."""
        min_isr = int(self.config.static_configs.get("min.insync.replicas", "1"))
        return decide_activation(state, self._bootstrap_records, min_isr)

    def activated(self) -> None:
        """Give every broker a full session, and start the timers."""
        controller = self.controller
        self._sessions = BrokerHeartbeats.of_image(
            controller.stable,
            self.config.session_timeout_ms,
            controller.scheduler.monotonic_ms(),
            starts_sessions=self._settings.starts_sessions,
        )
        self.schedule_fencing()
        self._confirm_leadership()
        self._schedule_watch()
        self._schedule_noop()
        balance = partial(decide_balance_leaders, counts=PreferredCounts())
        self._schedule_pass(_BALANCE, self._settings.leader_balance_interval_ms, balance)
        self._schedule_pass(_UNCLEAN, self._settings.unclean_election_interval_ms, decide_elect_unclean_leaders)
        if self.config.tokens.secrets is not None:
            self._schedule_pass(_SWEEP, self._settings.token_sweep_interval_ms, self._sweep_tokens)

    def renounced(self) -> None:
        """Drop soft state and timers."""
        self._sessions = None
        self.deletions = TopicDeletions()
        self.mutation_quotas.clear()
        for tag in (_FENCING, _WATCH, NO_OP, _BALANCE, _UNCLEAN, _SWEEP):
            self.controller.events.cancel(tag)

    # --- by itself -----------------------------------------------------------------------------------

    def schedule_fencing(self) -> None:
        """Look at the sessions when the first of them may have ended."""
        # A session's end only ever moves further away, so a timer that is set is early enough.
        if self._sessions is None or self.controller.events.is_scheduled(_FENCING):
            return
        at_ms = self._sessions.next_check_ms()
        if at_ms is not None:
            # A session that ends exactly then still counts as valid.
            self.controller.events.schedule(_FENCING, at_ms + 1, self._fencing_event)

    def _fencing_event(self) -> Event:
        def decide(context: WriteContext) -> Decision[Session | None]:
            self._excuse_stall()
            return decide_fence_stale_broker(context.image, self.config, self.sessions, context.now_ms)

        def applied(decision: Decision[Session | None], _: int) -> None:
            apply_fencing(self.sessions, decision)
            if decision.reply is None:
                self.schedule_fencing()
            else:
                # One at a time; the next one at once, behind whatever waits already.
                self.controller.events.append(self._fencing_event())

        return self.controller.write_internally(_FENCING, decide, applied)

    def _schedule_watch(self) -> None:
        self._watch_due_ms = self.controller.scheduler.monotonic_ms() + _WATCH_INTERVAL_MS
        self.controller.events.schedule(_WATCH, self._watch_due_ms, self._watch_event)

    def _watch_event(self) -> Event:
        # All is done when the timer acts: an event that waits for its turn is no stall, contacts are noted meanwhile.
        self._excuse_stall()
        self._confirm_leadership()
        self._schedule_watch()
        return Event(_WATCH, lambda: None, lambda _: None)

    def _confirm_leadership(self) -> None:
        """Let a majority say that nobody else leads yet: what brokers are promised of their sessions rests on it."""
        sessions, asked_ms = self.sessions, self.controller.scheduler.monotonic_ms()
        with suppress(NotController):  # the controller is told next
            self.controller.confirmed_reads.confirm(partial(sessions.leadership_confirmed, asked_ms))

    def _excuse_stall(self) -> None:
        """Notice that this process was stopped or held up. What waits in its sockets is heard after its timers act.

        Whoever looks for sessions that have ended asks first: the timer that fences may be due before the watch's.
        """
        now_ms = self.controller.scheduler.monotonic_ms()
        late_ms = now_ms - self._watch_due_ms
        if late_ms > _STALL_MS and self._sessions is not None:
            # It may have begun right after the last look.
            self._sessions.excuse(late_ms + _WATCH_INTERVAL_MS, now_ms)
            self._watch_due_ms = now_ms

    def _schedule_noop(self) -> None:
        interval_ms = self._settings.idle_noop_interval_ms
        if interval_ms > 0:
            now_ms = self.controller.scheduler.monotonic_ms()
            self.controller.events.schedule(NO_OP, now_ms + interval_ms, self._noop_event)

    def _noop_event(self) -> Event:
        def decide(context: WriteContext) -> Decision[None]:
            is_idle = context.next_offset == self._noop_seen_offset
            return Decision([VersionedRecord(NoOpRecord(), 0)] if is_idle else (), None, is_internal=True)

        def applied(_: Decision[None], end_offset: int) -> None:
            self._noop_seen_offset = end_offset
            self._schedule_noop()

        return self.controller.write_internally(NO_OP, decide, applied)

    def _sweep_tokens(self, image: MetadataImage, config: ControllerConfig, first: int) -> Decision[int | None]:
        return decide_sweep_tokens(image, self.controller.scheduler.wall_ms())

    def _schedule_pass(self, tag: str, interval_ms: float, decide: _Pass) -> None:
        """Hold a pass after the interval, and again and again."""
        if interval_ms > 0:
            now_ms = self.controller.scheduler.monotonic_ms()
            make = partial(self._pass_event, tag, interval_ms, decide)
            self.controller.events.schedule(tag, now_ms + interval_ms, make)

    def _pass_event(self, tag: str, interval_ms: float, decide: _Pass, first_row: int = 0) -> Event:
        def applied(decision: Decision[int | None], _: int) -> None:
            if decision.reply is None:
                self._schedule_pass(tag, interval_ms, decide)
            else:
                # The next one at once, behind whatever waits already, and after the sockets have had their share.
                self.controller.events.append(self._pass_event(tag, interval_ms, decide, decision.reply))
                self.controller.events.end_turn()

        return self.controller.write_internally(tag, lambda c: decide(c.image, self.config, first_row), applied)
