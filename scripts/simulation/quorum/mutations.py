"""Each measure that keeps agreement safe, taken out: the simulation must notice.

Switches over the production classes, which know nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from quorate.metadata_log.batches import batch_run
from quorate.metadata_log.checkpoints import checkpoints
from quorate.metadata_log.checkpoints.checkpoint_transfer import CheckpointDownload
from quorate.metadata_log.disk import taken_back
from quorate.metadata_log.log import recovery_survey
from quorate.metadata_log.log.flush import CutTail, DropLog, FlushJob
from quorate.metadata_log.log.log_entries import EntryTable
from quorate.metadata_log.log.recovery import _Repair
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.metadata_log.segments.mark import MarkFile
from quorate.metadata_log.segments.segment_files import SegmentFiles
from quorate.quorum.checkpoints.receiving import CheckpointReceiver
from quorate.quorum.elections.candidacy import Candidacy
from quorate.quorum.elections.elections import Elections
from quorate.quorum.elections.membership import Membership
from quorate.quorum.errors import NotLeader, ProtocolError
from quorate.quorum.fail_stop import FailStop
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.messages import outbox
from quorate.quorum.messages.messages import Append, StaleEpoch
from quorate.quorum.messages.outbox import Outbox
from quorate.quorum.node import QuorumNode
from quorate.quorum.replication import payload
from quorate.quorum.replication.delivery import Delivery
from quorate.quorum.replication.following import Follower
from quorate.quorum.replication.progress import Progress
from quorate.quorum.replication.replication import Replication
from quorate.quorum.replication.vouching import Vouching
from quorate.quorum.storage.fitness import Fitness
from quorate.quorum.transport.silence import SilenceWatch
from quorate.quorum.versions import NEWEST_VERSION
from quorate.scripts.simulation.quorum.patches import Patches, notices_patches


def _leader_counts_itself_at_once() -> Patches:
    original = Replication.advance

    def advance(self: Replication, durable_end: int, *, counts_itself: bool) -> bool:
        return original(self, self._journal.end_of(self._journal.last_index), counts_itself=counts_itself)

    return [(Replication, "advance", advance)]


def _heartbeat_replies_are_not_clamped() -> Patches:
    original_append, original_end = Follower.on_append, Follower._durable_end
    heartbeats: set[int] = set()

    def on_append(self: Follower, peer: int, message: Append) -> None:
        (heartbeats.discard if message.batches else heartbeats.add)(id(self))
        original_append(self, peer, message)

    def durable_end(self: Follower) -> int:
        return self._log.end_offset if id(self) in heartbeats else original_end(self)

    return [(Follower, "on_append", on_append), (Follower, "_durable_end", durable_end)]


def _stale_epochs_are_not_answered() -> Patches:
    original = Outbox.put

    def put(self: Outbox, peer: int, message: Any, *channel: Any) -> None:
        if not isinstance(message, StaleEpoch):
            original(self, peer, message, *channel)

    return [(Outbox, "put", put)]


def _votes_leave_before_their_sync() -> Patches:
    def flush(self: Outbox) -> None:
        while self._waiting:
            _, peer, channel, message = self._waiting.popleft()
            encoded = self._encode(message, self.version(peer))
            if encoded is not None:
                self._send(peer, channel, encoded)

    return [(Outbox, "flush", flush)]


def _peers_are_spoken_to_in_the_newest_version() -> Patches:
    original = Outbox._encode

    def encode(self: Outbox, message: Any, version: int) -> bytes | None:
        return original(self, message, NEWEST_VERSION)

    return [(Outbox, "_encode", encode)]


def _followers_truncate_without_conflict() -> Patches:
    def delete_entries_from(self: LogJournal, entry_from: int) -> None:
        self._log.truncate_to(self.end_of(self.first_index + entry_from - 1))
        self._refresh_last()

    return [(LogJournal, "deleteEntriesFrom", delete_entries_from)]


def _commit_is_clamped_to_the_log_end_only() -> Patches:
    def commit_index(self: Follower, message: Append, prev_index: int, entries: Any) -> int:
        index = self._journal.index_at_or_below(message.high_watermark)
        if message.high_watermark <= self._journal.end_of(self._journal.last_index):
            return index
        return self._journal.last_index + (0 if entries is None else len(entries))

    return [(Follower, "_commit_index", commit_index)]


def _non_voters_vote() -> Patches:
    original = Membership.__init__

    def init(self: Membership, log: Any, votes: Any, abstain: Any) -> None:
        votes.has_file = True
        original(self, log, votes, abstain)

    return [(Membership, "__init__", init)]


def _any_leader_restores_the_vote() -> Patches:
    original = Membership.leader_reported

    def leader_reported(self: Membership, epoch: int, leader: int, high_watermark: int, *, is_vouched: bool) -> None:
        original(self, epoch, leader, high_watermark, is_vouched=True)

    return [(Membership, "leader_reported", leader_reported)]


def _a_majority_vouches() -> Patches:
    def holds(self: Vouching, peer: int, progress: Any, majority_echoed: int) -> bool:
        return majority_echoed >= self._since

    return [(Vouching, "holds", holds)]


def _answers_from_before_the_last_loss_vouch() -> Patches:
    original = Vouching.joined

    def joined(self: Vouching, next_round: int) -> None:
        if self._since == 1:
            original(self, next_round)

    return [(Vouching, "joined", joined)]


def _only_voters_answer_for_a_vote() -> Patches:
    def awaited(self: Vouching, peer: int, progress: Mapping[int, Progress]) -> tuple[int, ...]:
        return tuple(
            other
            for other, of in progress.items()
            if other != peer and (of.answered_round < self._since or not of.is_voter)
        )

    return [(Vouching, "awaited", awaited)]


def _what_found_no_room_stays() -> Patches:
    return [(checkpoints, "taken_back", lambda disk, work, parts: taken_back(disk, work, ()))]


def _epochs_begin_at_the_wall_clock() -> Patches:
    return [(Delivery, "next_time_ms", lambda self: self._host.wall_ms())]


def _epochs_begin_behind_the_log_only() -> Patches:
    def next_time_ms(self: Delivery) -> int:
        return max(self._host.wall_ms(), self._journal.last_time_ms())

    return [(Delivery, "next_time_ms", next_time_ms)]


def _check_quorum_counts_everybody() -> Patches:
    def has_quorum(self: Replication, now: float) -> bool:
        oldest = now - self._config.timing.check_quorum_timeout
        return 1 + sum(progress.contact_at > oldest for progress in self.progress.values()) >= self._majority

    return [(Replication, "has_quorum", has_quorum)]


def _reads_do_not_wait_for_the_first_own_entry() -> Patches:
    def read_barrier(self: QuorumNode, done: Callable[[int | NotLeader], None]) -> None:
        if not self._core.is_leader:
            raise NotLeader(self.leader_id, self.epoch, self.epoch)
        self._barrier.add(self._replication.want_round(), self._journal.commit_end, done)
        self._host.request_pump()

    return [(QuorumNode, "read_barrier", read_barrier)]


def _replies_need_no_epoch_and_round() -> Patches:
    def heard(self: Replication, peer: int, epoch: int, round_: int, is_voter: bool, now: float) -> Progress | None:
        progress = self.progress.get(peer)
        if progress is not None:
            progress.contact_at = now
            progress.is_voter = is_voter
            progress.echoed_round = self.round
        return progress

    return [(Replication, "_heard", heard)]


def _silent_connections_stay() -> Patches:
    original = SilenceWatch.look

    def look(self: SilenceWatch, now: float, connections: Any) -> Any:
        return original(self, now, connections)._replace(dead=[])

    return [(SilenceWatch, "look", look)]


def _stuck_connections_stay() -> Patches:
    original = SilenceWatch.look

    def look(self: SilenceWatch, now: float, connections: Any) -> Any:
        return original(self, now, connections)._replace(stuck=[])

    return [(SilenceWatch, "look", look)]


def _missing_pages_are_damage() -> Patches:
    return [(recovery_survey, "lacks_pages", lambda file, bad: False)]


def _the_mark_is_not_lowered_before_a_cut() -> Patches:
    def apply(self: CutTail, files: SegmentFiles) -> Iterator[None]:
        yield from files.unlink(self.unlinked)
        if self.cut is not None:
            yield from files.cut(*self.cut)

    return [(CutTail, "apply", apply)]


def _the_mark_is_not_moved_before_a_log_goes() -> Patches:
    def apply(self: DropLog, files: SegmentFiles) -> Iterator[None]:
        yield from files.unlink(self.unlinked)

    return [(DropLog, "apply", apply)]


def _the_mark_is_not_synced_before_a_cut() -> Patches:
    return [(MarkFile, "write_durably", MarkFile.write)]


def _what_lies_above_the_mark_is_synced_only() -> Patches:
    def rewrite(self: _Repair, base: int, position: int, size: int) -> Iterator[None]:
        self._sync(base)
        yield

    return [(_Repair, "_rewrite", rewrite)]


def _flushes_speak_of(field: str, nothing: object) -> Patches:
    original = MetadataLog.job_done

    def job_done(self: MetadataLog, job: FlushJob) -> None:
        setattr(job, field, nothing)
        original(self, job)

    return [(MetadataLog, "job_done", job_done)]


def _downloads_are_kept_whatever_is_offered() -> Patches:
    return [
        (CheckpointDownload, "can_continue", lambda self, offer: True),
        (CheckpointReceiver, "_drop_download", lambda self: None),
    ]


def _hung_leaders_lead_on() -> Patches:
    return [(Fitness, "must_resign", lambda self, now: False)]


def _nobody_is_asked_before_an_election() -> Patches:
    def open_round(self: Elections, now: float, *, is_fast: bool) -> None:
        self._deadline = now + self._random_timeout()
        self._is_round_fast = is_fast
        self._candidacy = Candidacy.ALLOWED

    return [(Elections, "_open_round", open_round)]


def _a_living_leader_is_no_reason_to_refuse() -> Patches:
    return [(Elections, "has_living_leader", lambda self, now: False)]


def _nothing_counts_as_waiting_for_the_disk() -> Patches:
    return [(MetadataLog, "unwritten_bytes", property(lambda self: 0))]


def _all_batches_stay_in_memory() -> Patches:
    return [(EntryTable, "evict", lambda self, budget, written_end: None)]


def _nothing_counts_as_unmatched() -> Patches:
    def sent(self: Progress, last_index: int, size: int) -> None:
        self.next_index = last_index + 1

    return [(Progress, "sent", sent)]


def _probes_are_repeated_with_their_entries() -> Patches:
    original = Replication._send_to

    def send_to(self: Replication, peer: int, progress: Progress, is_due: bool, *rest: Any, may_hold: bool) -> bool:
        if is_due:
            progress._is_probe_out = False
        return original(self, peer, progress, is_due, *rest, may_hold=may_hold)

    return [(Replication, "_send_to", send_to)]


def _messages_wait_without_bound() -> Patches:
    return [(outbox, "_WAITING_MAX", 1 << 60)]


class _AnyNumber(int):
    """Equal to every other."""

    __hash__ = int.__hash__

    def __ne__(self, other: object) -> bool:
        return False


def _batches_of_peers_are_not_checked() -> Patches:
    return [(batch_run, "crc32c", lambda data: _AnyNumber())]


def _nonsense_is_passed_over() -> Patches:
    original = QuorumNode.receive

    def receive(self: QuorumNode, peer: int, frame: bytes) -> None:
        with suppress(ProtocolError):
            original(self, peer, frame)

    return [(QuorumNode, "receive", receive)]


def _wrong_messages_end_the_process() -> Patches:
    return [(FailStop, "take", FailStop.run)]


def _batches_of_any_size_are_taken() -> Patches:
    return [(payload, "BATCH_BYTES_MAX", 1 << 60)]


MUTATIONS: Final[dict[str, Callable[[], Patches]]] = {
    "leader-durable-clamp": _leader_counts_itself_at_once,
    "heartbeat-reply-clamp": _heartbeat_replies_are_not_clamped,
    "stale-epoch-answer": _stale_epochs_are_not_answered,
    "vote-sync": _votes_leave_before_their_sync,
    "conflict-only-truncation": _followers_truncate_without_conflict,
    "commit-clamp": _commit_is_clamped_to_the_log_end_only,
    "non-voter-rule": _non_voters_vote,
    "vouched-report": _any_leader_restores_the_vote,
    "vouched-by-all": _a_majority_vouches,
    "vouched-since-the-last-loss": _answers_from_before_the_last_loss_vouch,
    "answers-without-a-vote": _only_voters_answer_for_a_vote,
    "part-without-room": _what_found_no_room_stays,
    "time-of-the-last-batch": _epochs_begin_at_the_wall_clock,
    "time-of-the-checkpoint": _epochs_begin_behind_the_log_only,
    "check-quorum": _check_quorum_counts_everybody,
    "first-own-entry": _reads_do_not_wait_for_the_first_own_entry,
    "epoch-and-round-echo": _replies_need_no_epoch_and_round,
    "silence": _silent_connections_stay,
    "stuck-frame": _stuck_connections_stay,
    "missing-pages": _missing_pages_are_damage,
    "mark-lowered-before-a-cut": _the_mark_is_not_lowered_before_a_cut,
    "mark-moved-before-a-log-goes": _the_mark_is_not_moved_before_a_log_goes,
    "mark-synced-before-a-cut": _the_mark_is_not_synced_before_a_cut,
    "rewrite-above-the-mark": _what_lies_above_the_mark_is_synced_only,
    "flush-behind-a-truncation": lambda: _flushes_speak_of("truncated_to", None),
    "flush-behind-a-checkpoint": lambda: _flushes_speak_of("is_superseded", nothing=False),
    "disk-timeout": _hung_leaders_lead_on,
    "pre-vote": _nobody_is_asked_before_an_election,
    "living-leader": _a_living_leader_is_no_reason_to_refuse,
    "unwritten-bytes": _nothing_counts_as_waiting_for_the_disk,
    "resident-bytes": _all_batches_stay_in_memory,
    "inflight-bytes": _nothing_counts_as_unmatched,
    "probe-without-entries": _probes_are_repeated_with_their_entries,
    "waiting-messages": _messages_wait_without_bound,
    "batch-checksum": _batches_of_peers_are_not_checked,
    "nonsense-ends-a-connection": _nonsense_is_passed_over,
    "nothing-else-ends": _wrong_messages_end_the_process,
    "largest-batch": _batches_of_any_size_are_taken,
    "download-dropped": _downloads_are_kept_whatever_is_offered,
    "agreed-version": _peers_are_spoken_to_in_the_newest_version,
}


def notices(name: str, run: Callable[[], object]) -> str | None:
    """``notices_patches`` for a measure of the table here."""
    return notices_patches(MUTATIONS[name](), run)
