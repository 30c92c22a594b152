"""``MetadataLog`` as the journal that the library asks for.

The library numbers entries; Quorate does not. An index is given out when the log is opened (the sentinel is 1),
stays in this process, and is never stored or sent. The *sentinel* stands for everything before the log's start: it
has the start offset and its epoch, is never on disk, and takes the place of the entry with which the library's
constructor begins.

An entry reads as ``(index, index, epoch)``: the library only ever looks at the last two, so no bytes are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, overload

from pysyncobj.journal import Journal

from quorate.metadata_log.batches.batch import parse_header, place_batch
from quorate.metadata_log.batches.batch_run import BatchRun
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum.errors import FatalFault, ProtocolError
from quorate.quorum.storage.leader_change import VoterHistory
from quorate.quorum.storage.votes import VoteState

Entry = tuple[int, int, int]

#: What the library appends when it becomes leader; a real batch is never this short.
_LIBRARY_NO_OP: Final = b"\x01"
_FIRST_INDEX: Final = 1


class LogJournal(Journal):  # type: ignore[misc]  # no type information
    """Index arithmetic over the log, conflict-only truncation, and the durable epoch and vote."""

    def __init__(
        self,
        log: MetadataLog,
        votes: VoteState,
        voters: VoterHistory,
        slice_entries_max: int,
        slice_bytes_max: int,
        make_first_batch: Callable[[], bytes],
    ) -> None:
        """``make_first_batch()``: the control batch, not yet placed, with which this node opens its epoch."""
        self._log = log
        self._votes = votes
        self._voters = voters
        self._slice_entries_max = slice_entries_max
        self._slice_bytes_max = slice_bytes_max
        self._make_first_batch = make_first_batch
        #: Index of the sentinel.
        self.first_index = _FIRST_INDEX
        #: While leading: the commit loop sees nothing beyond this index (durable on a counted majority, the own disk
        #: included). The library would count the leader's copy at once. None: no limit.
        self.visible_index: int | None = None
        self._commit_index = self.index_at_or_below(log.commit)
        #: Exclusive end offset of what is known to be committed.
        self.commit_end = self.end_of(self._commit_index)
        self._last: Entry = (0, 0, 0)
        #: No entry from here on has another epoch than the last one. May be too high, never too low.
        self._uniform_from = 0
        #: (first index, last index, bytes) gathered last; void after every change but an append.
        self._gathered: tuple[int, int, bytes] = (0, 0, b"")
        self._refresh_last()

    # --- offsets and indexes -------------------------------------------------------------------------

    @property
    def last_index(self) -> int:
        return self._last[1]

    @property
    def end_offset(self) -> int:
        """Exclusive end of the last entry, committed or not."""
        return self._log.end_offset

    def end_of(self, index: int) -> int:
        """Exclusive end offset of an entry; the log's start for the sentinel."""
        if index == self.first_index:
            return self._log.start_offset
        return self._log.end_of(index - self.first_index - 1)

    def epoch_of(self, index: int) -> int:
        """Epoch of an entry; that before the log's start for the sentinel."""
        if index == self.first_index:
            return self._log.start_epoch
        return self._log.epoch_of(index - self.first_index - 1)

    def last_time_ms(self) -> int:
        """Time of the last entry, in milliseconds since 1970; 0 where the log holds none."""
        return parse_header(self.read(self.last_index)).timestamp if self.last_index > self.first_index else 0

    def gather(self, index: int, size_max: int) -> tuple[bytes, int]:
        """The batches from ``index`` on, back to back, and the index of the last: at least one, then while they fit."""
        first = index - self.first_index - 1
        stop = self._log.end_of_run(first, self._log.entry_count, size_max)
        last = stop + self.first_index
        if self._gathered[:2] != (index, last):
            # Followers that are level are sent the same bytes one after the other.
            self._gathered = (index, last, self._log.read_run(first, stop))
        return self._gathered[2], last

    def read(self, index: int) -> bytes:
        """The batch of an entry."""
        return self._log.read(index - self.first_index - 1)

    def entries(self, start: int, stop: int) -> Iterator[Entry]:
        """The entries ``start <= index < stop`` as the library sees them."""
        epochs: list[int] = []
        if start == self.first_index < stop:
            epochs.append(self._log.start_epoch)
        first = start + len(epochs) - self.first_index - 1
        epochs.extend(self._log.epochs(first, stop - self.first_index - 1))
        return zip(range(start, stop), range(start, stop), epochs, strict=True)

    def index_of_end(self, offset: int) -> int | None:
        """The entry that ends exactly at ``offset``; the sentinel for the log's start; None where none does."""
        log = self._log
        if offset == log.end_offset:
            return self.first_index + log.entry_count
        if offset == log.start_offset:
            return self.first_index
        position = log.position_of_end(offset)
        return None if position is None else self.first_index + 1 + position

    def index_at_or_below(self, offset: int) -> int:
        """The last entry that ends at or below ``offset``; the sentinel when none does."""
        log = self._log
        if offset >= log.end_offset:
            return self.first_index + log.entry_count
        if offset <= log.start_offset:
            return self.first_index
        return self.first_index + log.position_containing(offset)

    def conflict_hint(self, prev_end: int) -> int:
        """The place that a leader whose log has no match at ``prev_end`` should try next: the end of what may still
        match.

        Raises:
            FatalFault: nothing may: the leader's log differs where this node's committed log begins.
        """
        log = self._log
        if prev_end < log.start_offset or not log.entry_count:
            return log.start_offset
        if prev_end > log.end_offset:
            return log.end_offset
        if prev_end == log.start_offset:
            raise FatalFault(f"the leader's log differs at {prev_end}, where this node's committed log begins")
        start = log.start_of_epoch_at(log.position_containing(prev_end - 1))
        return max(log.entry(start).base_offset, self.commit_end)

    def check_against(self, prev_index: int, prev_epoch: int, run: BatchRun | None) -> None:
        """Whether a leader's entries may follow the entry ``prev_index``, which it says is of ``prev_epoch``.

        Raises:
            ProtocolError: it would change what is committed, or has another batch for an offset and epoch.
        """
        own_epoch = self.epoch_of(prev_index)
        if own_epoch != prev_epoch:
            if prev_index <= self._commit_index:
                raise ProtocolError(
                    f"a leader contradicts what is committed: epoch {prev_epoch} before {self.end_of(prev_index)},"
                    f" here it is {own_epoch}"
                )
        elif run is not None and prev_index < self.last_index:
            first = prev_index + 1 + self._count_present(run, prev_index + 1)
            if first <= min(self._commit_index, prev_index + len(run)):
                raise ProtocolError(
                    f"a leader contradicts what is committed: another entry at {self.end_of(first - 1)}, committed to"
                    f" {self.commit_end}"
                )

    # --- what the library calls ----------------------------------------------------------------------

    def add(self, command: BatchRun | bytes, idx: int, term: int) -> None:
        """A leader's batches, the last of which is entry ``idx``; or the entry with which this node begins to lead.

        Raises:
            FatalFault: the library wants to append anything else.
        """
        if isinstance(command, BatchRun):
            self._add_run(command, idx)
        elif command == _LIBRARY_NO_OP and idx == self.last_index + 1:
            self.append(place_batch(self._make_first_batch(), self._log.end_offset, term), term)
        else:
            raise FatalFault(f"the library wants to append {len(command)} bytes as entry {idx}")

    def deleteEntriesFrom(self, entryFrom: int) -> None:
        """The library would drop everything behind a match, equal or not. ``add`` truncates at a conflict instead."""

    def deleteEntriesTo(self, entryTo: int) -> None:
        raise FatalFault("the library's compaction was reached")

    def clear(self) -> None:
        raise FatalFault("the library's snapshot path was reached")

    @overload
    def __getitem__(self, item: int) -> Entry: ...
    @overload
    def __getitem__(self, item: slice) -> Sequence[Entry]: ...
    def __getitem__(self, item: int | slice) -> Entry | Sequence[Entry]:
        # The library asks for the first, the last and a slice of one for every entry that it commits.
        if isinstance(item, slice):
            start, stop, visible = item.start or 0, item.stop, self.visible_index
            index, last = self.first_index + start, self._last
            is_single = stop == start + 1 or (stop is None and index == last[1])
            if is_single and self._uniform_from <= index <= (last[1] if visible is None else visible):
                return ((index, index, last[2]),)
            return self._view(start, stop)
        if item == -1:
            return self._last
        if item == 0:
            return (self.first_index, self.first_index, self._log.start_epoch)
        index = self.first_index + item
        return (index, index, self._log.epoch_of(item - 1))

    def __len__(self) -> int:
        return self.last_index - self.first_index + 1

    def setRaftCommitIndex(self, raftCommitIndex: int) -> None:
        if raftCommitIndex > self._commit_index:
            self._commit_index = raftCommitIndex
            self.commit_end = self.end_of(raftCommitIndex)
            self._log.note_commit(self.commit_end)

    def getRaftCommitIndex(self) -> int:
        return self._commit_index

    def setCurrentTerm(self, term: int, votedForNodeId: int | None) -> None:
        self._votes.stage(term, votedForNodeId)

    def getCurrentTerm(self) -> int:
        return self._votes.epoch

    def getVotedForNodeId(self) -> int | None:
        return self._votes.voted_id

    def _destroy(self) -> None:
        """The log belongs to the node."""

    # --- changes that do not come from the library ---------------------------------------------------

    def append(self, batch: bytes, epoch: int) -> None:
        """Append a placed batch of this node's own epoch."""
        self._log.append(batch)
        self._voters.note(batch)
        index = self._last[1] + 1
        if epoch != self._last[2]:
            self._uniform_from = index
        self._last = (index, index, epoch)

    def delete_prefix(self, offset: int) -> None:
        """Forget everything before ``offset``; the sentinel moves there."""
        self._gathered = (0, 0, b"")
        self.first_index += self._log.delete_prefix(offset)

    def install_checkpoint(self, end_offset: int, epoch: int) -> int:
        """Take notice of a durable checkpoint and return the index that stands for its end.

        A log that was dropped gets a sentinel with a number never used before, so no old index can mean anything.
        """
        fresh_index = self.last_index + 1
        if not self._log.install_checkpoint(end_offset, epoch):
            self.first_index = fresh_index
        self._refresh_last()
        index = self.index_of_end(end_offset)
        assert index is not None, "the log begins at the checkpoint or holds its end"
        self._commit_index = max(self._commit_index, index)
        self.commit_end = self.end_of(self._commit_index)
        return index

    # --- inside --------------------------------------------------------------------------------------

    def _add_run(self, run: BatchRun, last_index: int) -> None:
        """Append what is not there already. Only a real conflict truncates, and only the tail."""
        first = last_index - len(run) + 1
        present = 0
        if first <= self.last_index:
            present = self._count_present(run, first)
            if present == len(run):
                return
            if first + present <= self.last_index:
                self._truncate_from(first + present)
        if first + present != self.last_index + 1:
            raise FatalFault(f"entry {first + present} does not follow {self.last_index}")
        new = run.tail(present)
        self._log.append_run(new)
        if new.has_control:
            for batch in new.batches:
                self._voters.note(batch)
        epoch = new.epochs[-1]
        if new.epochs[0] != epoch or epoch != self._last[2]:
            self._uniform_from = last_index
        self._last = (last_index, last_index, epoch)

    def _count_present(self, run: BatchRun, first: int) -> int:
        """The number of batches of the run, which begins at entry ``first``, that are in the log already."""
        stop = min(len(run), self.last_index - first + 1)
        for position in range(stop):
            index, epoch = first + position, run.epochs[position]
            if self.epoch_of(index) != epoch:
                return position
            if self.read(index) != run.batches[position]:
                raise ProtocolError(f"two different batches at {self.end_of(index - 1)} in epoch {epoch}")
        return stop

    def _refresh_last(self) -> None:
        self._gathered = (0, 0, b"")
        index = self.first_index + self._log.entry_count
        self._uniform_from = index
        self._last = (index, index, self._log.last_epoch)

    def _truncate_from(self, index: int) -> None:
        if index <= self._commit_index:
            raise FatalFault(
                f"a leader contradicts what is committed: entry at {self.end_of(index - 1)}, "
                f"committed to {self.commit_end}"
            )
        self._log.truncate_to(self.end_of(index - 1))
        self._refresh_last()

    def _view(self, first: int, behind: int | None) -> Sequence[Entry]:
        start = self.first_index + first
        stop = self._last[1] + 1
        if behind is not None:
            stop = min(stop, self.first_index + behind)
        if self.visible_index is not None:
            stop = min(stop, max(self.visible_index, self._commit_index) + 1)
        return EntryView(self, start, self._bounded(start, min(stop, start + self._slice_entries_max)))

    def _bounded(self, start: int, stop: int) -> int:
        """The end that a slice to ``stop`` has for its bytes; it holds one entry at least."""
        offset = self.first_index + 1
        # The sentinel takes no bytes.
        first = max(start, offset)
        return (
            self._log.end_of_run(first - offset, stop - offset, self._slice_bytes_max) + offset
            if stop > first
            else stop
        )


class EntryView(Sequence[Entry]):
    """Entries ``start <= index < stop``, looked at one by one: never a copy of the log's tail."""

    __slots__ = ("_journal", "_start", "_stop")

    def __init__(self, journal: LogJournal, start: int, stop: int) -> None:
        self._journal = journal
        self._start = start
        self._stop = max(start, stop)

    def __len__(self) -> int:
        return self._stop - self._start

    @overload
    def __getitem__(self, position: int) -> Entry: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Entry]: ...
    def __getitem__(self, position: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(position, slice):
            raise TypeError("a view is not sliced again")
        if not 0 <= position < len(self):
            raise IndexError(position)
        index = self._start + position
        return (index, index, self._journal.epoch_of(index))

    def __iter__(self) -> Iterator[Entry]:
        return self._journal.entries(self._start, self._stop)
