"""One voter of the quorum: the small interface that the rest of the project sees, and how the parts work together.

Single-threaded: everything here runs on the loop thread of its ``Host``. Events (messages, connections, finished disk
work, appends) change state at once and ask for a *pump*; one pump a loop turn lets timers and the library act, hands
over what was committed, sends, and starts the next disk group. So one pass covers all that a turn brought.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any, Final

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.checkpoints.checkpoints import CheckpointContent
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum.checkpoints.bulk_queue import BulkQueue
from quorate.quorum.checkpoints.own_checkpoints import OwnCheckpoints
from quorate.quorum.checkpoints.receiving import CheckpointReceiver
from quorate.quorum.checkpoints.sending import CheckpointSender
from quorate.quorum.config import QuorumConfig
from quorate.quorum.elections.admission import Admission
from quorate.quorum.elections.ballots import Ballots
from quorate.quorum.elections.elections import Elections
from quorate.quorum.elections.membership import Membership
from quorate.quorum.errors import FatalFault, NotLeader, SecondLeader
from quorate.quorum.fail_stop import FailStop
from quorate.quorum.host import Host, QuorumListener, QuorumStatus
from quorate.quorum.library.core import RaftCore
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.message_handlers import message_handlers
from quorate.quorum.messages import messages
from quorate.quorum.messages.messages import Message
from quorate.quorum.messages.outbox import Outbox
from quorate.quorum.messages.wire import decode
from quorate.quorum.metrics import QuorumMetrics
from quorate.quorum.replication.commit_notice import CommitNotice
from quorate.quorum.replication.delivery import Delivery
from quorate.quorum.replication.following import Follower
from quorate.quorum.replication.payload import placed_payload
from quorate.quorum.replication.read_barrier import ReadBarrier
from quorate.quorum.replication.replication import Replication
from quorate.quorum.storage.disk_queue import DiskGroup, DiskQueue
from quorate.quorum.storage.fitness import Fitness
from quorate.quorum.storage.leader_change import VoterHistory, first_batch
from quorate.quorum.storage.storage import NodeStorage

_OF_A_LEADER: Final = (messages.Append, messages.Commit, messages.CheckpointOffer)


class QuorumNode:
    """See the module. Made over an opened directory; ``start`` hands over what is there already."""

    def __init__(
        self, config: QuorumConfig, storage: NodeStorage, host: Host, listener: QuorumListener, rng: Random
    ) -> None:
        """``rng`` is for election timeouts only. ``storage`` belongs to the node from now on."""
        self._make_state(config, storage, host, listener)
        self._make_parts(config, storage, host, rng)
        self._handlers = message_handlers(
            self._core, self._ballots, self._replication, self._sender, self._receiver, self._follower
        ) | {messages.Append: self._on_append, messages.CheckpointOffer: self._on_offer}

    def _make_state(self, config: QuorumConfig, storage: NodeStorage, host: Host, listener: QuorumListener) -> None:
        self._config = config
        self._host = host
        self._listener = listener
        self._storage = storage
        self._log: MetadataLog = storage.log
        self._votes = storage.votes
        self._metrics = QuorumMetrics()
        #: Directories that peers showed in this process's lifetime, to notice one that lost its memory.
        self._peer_directories: dict[int, bytes] = {}
        #: (epoch, leader, whether this node leads) after the last event.
        self._seen: tuple[int, int | None, bool] = (storage.votes.epoch, None, False)
        #: (leader, epoch) told to the listener last.
        self._announced: tuple[int | None, int] = (None, -1)
        self._due = math.inf
        self._quiet_until = -math.inf
        self._fuse = FailStop(host.fatal)

    def _make_parts(self, config: QuorumConfig, storage: NodeStorage, host: Host, rng: Random) -> None:
        self._voter_history = VoterHistory(self._log)
        limits = config.limits
        self._journal = LogJournal(
            self._log, self._votes, self._voter_history, limits.apply_batches, limits.apply_bytes, self._first_batch
        )
        self._outbox = Outbox(self._votes, host.send)
        self._disk = DiskQueue(self._log, self._votes, host.run_group, host.now, self._metrics)
        self._fitness = Fitness(config, self._log, self._disk, lambda: storage.disk.free_bytes(storage.directory))
        self._bulk = BulkQueue(host.run_bulk_job)
        self._core = RaftCore(config.node_id, config.peer_ids, self._journal, self)
        now = host.now()
        self._elections = Elections(config.node_id, config.peer_ids, config.timing, rng, now)
        self._membership = Membership(self._log, self._votes, self._core.abstain_in)
        self._admission = Admission(self._core, self._membership, now)
        self._follower = Follower(self._core, self._journal, self._log, self._outbox, self._membership, self._fitness)
        disk, store, bulk, outbox = storage.disk, storage.checkpoints, self._bulk, self._outbox
        self._sender = CheckpointSender(store, bulk, outbox, config.limits.chunk_bytes)
        self._receiver = CheckpointReceiver(disk, storage.directory, store, bulk, outbox)
        own = OwnCheckpoints(disk, store, bulk, self._sender.kept)
        core, journal, log, voters = self._core, self._journal, self._log, self._voter_history
        self._replication = Replication(config, core, journal, outbox, self._sender, CommitNotice(host))
        ids, elections = (config.node_id, config.peer_ids), self._elections
        self._ballots = Ballots(*ids, core, log, journal, elections, self._membership, outbox, self._fitness)
        self._delivery = Delivery(config, core, journal, log, own, voters, self._listener, host, self._metrics)
        self._barrier = ReadBarrier()

    # --- the interface -------------------------------------------------------------------------------

    def start(self) -> None:
        """Hand the newest checkpoint, if there is one, to the listener, and begin."""
        self._delivery.begin()
        self._host.request_pump()

    def append(self, epoch: int, payload: bytes, record_count: int) -> int:
        """Append a batch as the leader of ``epoch`` and return the offset of its last record. Not yet durable.

        ``payload`` is a whole batch with base offset 0 and epoch 0; it is placed at the end of the log.

        Raises:
            NotLeader: this node does not lead in ``epoch``. LimitExceeded: the batch is over the limit.
            MalformedData: it is no batch.
        """
        if not self._core.is_leader or epoch != self._core.epoch or self._fuse.is_stopped:
            raise NotLeader(self.leader_id, epoch, self._core.epoch)
        self._fuse.run(self._journal.append, placed_payload(payload, record_count, self._log.end_offset, epoch), epoch)
        self._metrics.appended_batches += 1
        self._host.request_pump()
        return self._log.end_offset - 1

    def resign(self, epoch: int) -> None:
        """Stop leading ``epoch``; an older epoch is ignored. The epoch itself does not move."""
        if self._core.is_leader and epoch == self._core.epoch:
            self._fuse.run(self._stop_leading)
            self._host.request_pump()

    def read_barrier(self, done: Callable[[int | NotLeader], None]) -> None:
        """Call ``done`` with an offset such that state up to it (exclusive) has everything acknowledged before now.

        It gets ``NotLeader`` instead if leadership is lost meanwhile.

        Raises:
            NotLeader: this node does not lead, or its leadership was not announced yet.
        """
        epoch = self._core.epoch
        if not self._core.is_leader or self._announced != (self._config.node_id, epoch):
            raise NotLeader(None if self._core.is_leader else self.leader_id, epoch, epoch)
        self._barrier.add(self._replication.want_round(), self._journal.commit_end, done)
        self._host.request_pump()

    def write_checkpoint(
        self,
        end_offset: int,
        content: CheckpointContent,
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Write a checkpoint of the state at ``end_offset``, which the listener has been given, off the loop thread.

        Once it is durable the node offers it to followers that need it, older ones are removed and the log is cut as
        the retention settings say, and ``done(None)`` is called; ``done`` gets the error if the content was no
        checkpoint.

        Raises:
            InvalidCheckpointOffset: no batch ends there, or the listener was not given it.
        """
        self._delivery.write_checkpoint(end_offset, content, done)

    def on_damaged_checkpoint(self, told: Callable[[CheckpointId], None]) -> None:
        """``told`` of a checkpoint that rotted and was set aside: a new one should take its place."""
        self._sender.on_damaged = told

    @property
    def node_id(self) -> int:
        return self._config.node_id

    @property
    def leader_id(self) -> int | None:
        """The leader of the current epoch, as far as this node knows."""
        return self._core.leader_id

    @property
    def is_leader(self) -> bool:
        """Whether this node leads, announced or not. There may be a leader of a higher epoch elsewhere."""
        return self._core.is_leader

    @property
    def is_voter(self) -> bool:
        """False while this node recovers from a loss of its memory."""
        return self._membership.is_voter

    @property
    def epoch(self) -> int:
        return self._core.epoch

    @property
    def high_watermark(self) -> int:
        """Exclusive end of what this node knows to be committed."""
        return self._journal.commit_end

    @property
    def applied_end(self) -> int:
        """Exclusive end of what the listener was given."""
        return self._delivery.end_offset

    @property
    def log_end_offset(self) -> int:
        return self._log.end_offset

    @property
    def expects_more(self) -> bool:
        """Whether this node leads and has sent entries that nobody has acknowledged yet."""
        return self._core.is_leader and self._replication.expects_more

    @property
    def metrics(self) -> QuorumMetrics:
        return self._metrics

    def status(self) -> QuorumStatus:
        """This node's view, for status screens."""
        log, now, spoken = self._log, self._host.now(), self._outbox.version
        peers = tuple(self._replication.peer_status(peer, now, spoken(peer)) for peer in self._config.peer_ids)
        ends = (self.high_watermark, log.start_offset, log.end_offset, log.durable_end, self.applied_end)
        why = self._fitness.why_not_lead(now) or self._fitness.hindrance
        return QuorumStatus(self.node_id, self.epoch, self.leader_id, self.is_voter, *ends, peers, why)

    # --- events, from the host -----------------------------------------------------------------------

    def connected(self, peer: int, directory_id: bytes, *, is_voter: bool, version: int) -> None:
        """The consensus connection to a peer stands; it showed this, and messages are of that version from now on."""
        self._fuse.run(self._connected, peer, directory_id, is_voter, version)
        self._host.request_pump()

    def disconnected(self, peer: int) -> None:
        """The consensus connection to a peer broke."""
        self._fuse.run(self._disconnected, peer)
        self._host.request_pump()

    def receive(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        """A message of a peer.

        Raises:
            ProtocolError: the peer does not keep to the protocol; its connection must be closed.
        """
        self._metrics.messages_received += 1
        self._fuse.take(self._dispatch, peer, decode(payload, self._outbox.version(peer)))

    def disk_done(self, group: DiskGroup) -> None:
        """A disk group ran to its end."""
        self._fuse.run(self._disk.done, group)
        self._host.request_pump()

    def fail(self, error: FatalFault) -> None:
        """The disk failed, or the quorum was rebuilt without this node: nothing is retried, it ends here."""
        self._fuse.fail(error)

    def bulk_done(self, error: StorageError | None) -> None:
        """The bulk job that was out ran to its end, or found that its bytes are no checkpoint."""
        self._fuse.run(self._bulk.finished, error)
        self._host.request_pump()

    def pump(self) -> float:
        """Let everything act that can. Returns when to call again at the latest, in the host's seconds."""
        self._fuse.run(self._pump)
        return math.inf if self._fuse.is_stopped else self._due

    def stop(self) -> None:
        """Do nothing any more. Leadership is given up first, so that the others need no timeout."""
        if self._core.is_leader:
            self._fuse.run(self._stop_leading)
            self._fuse.run(self._outbox.flush)
        self._fuse.is_stopped = True

    # --- what the library asks -----------------------------------------------------------------------

    def core_send(self, peer: int, message: dict[str, Any]) -> None:
        """See ``CoreOwner``. Only three of the library's messages are ever wanted."""
        kind = message["type"]
        if kind == "next_node_idx":
            self._follower.library_answered(message)
        elif kind == "request_vote":
            self._ballots.ask_for_vote(peer)
        elif kind == "response_vote":
            self._ballots.library_granted()
        else:
            raise FatalFault(f"the library wants to send {kind}")

    def core_may_campaign(self) -> bool:
        """See ``CoreOwner``."""
        may = self._ballots.may_campaign(self._host.now())
        self._metrics.elections_started += may
        return may

    def core_elected(self) -> None:
        """See ``CoreOwner``."""
        self._metrics.elections_won += 1
        self._admission.note_leader(self.node_id, self._core.epoch)
        self._replication.begin_epoch(self._host.now())
        self._elections.elected()

    # --- connections and messages ------------------------------------------------------------------------------------

    def _connected(self, peer: int, directory_id: bytes, is_voter: bool, version: int) -> None:
        self._outbox.set_version(peer, version)
        has_new_directory = self._peer_directories.get(peer, directory_id) != directory_id
        self._peer_directories[peer] = directory_id
        self._replication.connected(peer, is_voter=is_voter, has_new_directory=has_new_directory)
        self._elections.connected(peer, self._host.now())

    def _disconnected(self, peer: int) -> None:
        self._outbox.drop_peer(peer)
        self._replication.disconnected(peer)
        self._elections.disconnected(peer, self._host.now())

    def _dispatch(self, peer: int, message: Message) -> None:
        now = self._host.now()
        if type(message) is messages.AppendReply:
            self._on_reply(peer, message, now)
            return
        self._host.request_pump()
        epoch = self._core.epoch
        self._admission.check_epoch(peer, message.epoch, now)
        if isinstance(message, _OF_A_LEADER):
            if message.epoch < epoch:
                self._outbox.put(peer, messages.StaleEpoch(epoch))
                return
            self._check_leader(peer, message.epoch)
        self._handlers[type(message)](peer, message, now)
        self._admission.took(epoch)
        self._observe(now)

    def _check_leader(self, peer: int, epoch: int) -> None:
        try:
            self._admission.check_leader(peer, epoch)
        except SecondLeader:
            if self._core.is_leader:
                # If a vote was forgotten there are two leaders indeed: this one at least stops, and opens no way back.
                self._stop_leading()
            raise

    def _on_reply(self, peer: int, message: messages.AppendReply, now: float) -> None:
        """Many a reply says what a majority has said before: nothing follows from it, then."""
        if self._replication.on_reply(peer, message, now) or self._barrier:
            self._host.request_pump()

    def _on_append(self, peer: int, message: messages.Append, now: float) -> None:
        self._follower.on_append(peer, message)
        self._admission.note_leader(peer, message.epoch)
        self._elections.heard_leader(peer, now)
        self._elections.note_log_ends(message.acknowledged)

    def _on_offer(self, peer: int, message: messages.CheckpointOffer, now: float) -> None:
        self._follower.on_offer_heard(peer, message.epoch, message.round)
        self._admission.note_leader(peer, message.epoch)
        self._elections.heard_leader(peer, now)
        if self._follower.needs_offered(message):
            self._receiver.on_offer(peer, message, now, is_voter=self.is_voter)

    # --- one turn ------------------------------------------------------------------------------------

    def _pump(self) -> None:
        now, was_due = self._host.now(), self._due
        if now - was_due > self._config.timing.pause_threshold:
            self._metrics.pauses_noticed += 1
            self._quiet_until = now + self._config.timing.wake_grace
            self._elections.woke(now)
        self._membership.check(self._core.epoch)
        if self._core.is_leader:
            self._lead(now)
        else:
            self._answer_leader()
            self._ballots.tick(now)
        if not self._core.is_leader or self._advance() or self._core.commit_index > self._core.applied_index:
            # A leader's tick does nothing but commit and apply.
            self._core.doTick(0.0)
        self._observe(now)
        installed = self._delivery.install(self._receiver.take_received())
        if installed is not None:
            self._follower.matched_checkpoint(installed.end_offset, installed.epoch)
            self._host.request_pump()
        self._delivery.deliver()
        self._announce()
        if self._core.is_leader and (now >= was_due or self._has_to_send(now)):
            self._send_as_leader(now)
        self._send_and_sync()
        self._due = self._next_deadline(now)

    def _answer_leader(self) -> None:
        """Answer the leader, which waits for it, before all else."""
        self._sync()
        self._follower.send_reply()
        self._outbox.flush()

    def _sync(self) -> None:
        """Start the next disk group. If it is done at once, whoever waits for it acts in the next turn."""
        if self._disk.kick() and (self._advance() if self._core.is_leader else not self.is_voter):
            self._host.request_pump()

    def _send_and_sync(self) -> None:
        """In this order: the disks of the others work while this one's does."""
        self._outbox.flush()
        self._sync()

    def _lead(self, now: float) -> None:
        if now >= self._quiet_until and not self._replication.has_quorum(now):
            self._stop_leading()
        elif self._fitness.must_resign(now):
            self._metrics.leaderships_given_up += 1
            self._stop_leading()
        elif self._replication.has_news:
            # What waits to be committed goes before what is.
            self._send_as_leader(now)

    def _advance(self) -> bool:
        return self._replication.advance(self._log.durable_end, counts_itself=self.is_voter)

    def _has_to_send(self, now: float) -> bool:
        return bool(self._barrier) or self._replication.wants_pass(now, self._journal.commit_end)

    def _send_as_leader(self, now: float) -> None:
        self._replication.send_pass(now, self._journal.commit_end, self._send_and_sync)
        if self._barrier:
            self._barrier.confirm(self._replication.majority_echoed(), self.applied_end)

    def _next_deadline(self, now: float) -> float:
        due = (self._replication if self._core.is_leader else self._ballots).next_deadline()
        return max(due, self._quiet_until, now)

    # --- changes of leadership -----------------------------------------------------------------------

    def _observe(self, now: float) -> None:
        """Compare who leads with what it was, and let everybody know."""
        core = self._core
        seen = (core.epoch, core.leader_id, core.is_leader)
        if seen == self._seen:
            return
        was_epoch, was_leader, was_leading = self._seen
        self._seen = seen
        if was_leading and (not core.is_leader or core.epoch != was_epoch):
            self._lost_leadership(now)
        if core.leader_id is None and (core.epoch != was_epoch or was_leader is not None) and not core.is_candidate:
            self._elections.epoch_changed()
        self._announce()

    def _announce(self) -> None:
        core = self._core
        is_early = core.is_leader and self._delivery.index < core.first_own_index
        current = (None if is_early else core.leader_id, core.epoch)
        if current != self._announced:
            self._announced = current
            self._listener.on_leader_change(*current)

    def _stop_leading(self) -> None:
        """Stop, and tell the followers, so that they need no timeout."""
        for peer in self._config.peer_ids:
            self._outbox.put(peer, messages.EndEpoch(self._core.epoch))
        self._core.step_down()
        self._observe(self._host.now())

    def _lost_leadership(self, now: float) -> None:
        self._metrics.leaderships_lost += 1
        self._replication.end_epoch()
        self._elections.stepped_down(now)
        self._barrier.fail(NotLeader(self.leader_id, self._seen[0], self._core.epoch))

    def _first_batch(self) -> bytes:
        voters, heard = self._voter_history.current(), self._peer_directories
        return first_batch(self._config, self._ballots.granters, heard, voters, self._delivery.next_time_ms())
