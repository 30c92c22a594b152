"""``MetadataLog`` as the journal that the library asks for.

The library numbers entries; Quorate does not. An index is given out when the log is opened (the sentinel is 1),
stays in this process, and is never stored or sent. The *sentinel* stands for everything before the log's start: it
has the start offset and its epoch, is never on disk, and takes the place of the entry with which the library's
constructor begins.

An entry reads as ``(index, index, epoch)``: the library only ever looks at the last two, so no bytes are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, overload

from pysyncobj.journal import Journal

from metadata_log.batch import place_batch
from metadata_log.segment_log import MetadataLog
from quorum.errors import FatalFault
from quorum.leader_change import VoterHistory
from quorum.votes import VoteState

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
        self._last: Entry = (0, 0, 0)
        #: (first index, last index, bytes) gathered last; void after every change but an append.
        self._gathered: tuple[int, int, bytes] = (0, 0, b"")
        self._refresh_last()

    # --- offsets and indexes -------------------------------------------------------------------------

    @property
    def last_index(self) -> int:
        return self._last[1]

    @property
    def commit_end(self) -> int:
        """Exclusive end offset of what is known to be committed."""
        return self.end_of(self._commit_index)

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

    def gather(self, index: int, size_max: int) -> tuple[bytes, int]:
        """The batches from ``index`` on, back to back, and the index of the last: at least one, then while they fit."""
        log = self._log
        first = position = index - self.first_index - 1
        count = log.entry_count
        size = log.size_of(position)
        position += 1
        while position < count and size + log.size_of(position) <= size_max:
            size += log.size_of(position)
            position += 1
        last = position + self.first_index
        if self._gathered[:2] != (index, last):
            # Followers that are level are sent the same bytes one after the other.
            self._gathered = (index, last, b"".join([log.read(each) for each in range(first, position)]))
        return self._gathered[2], last

    def read(self, index: int) -> bytes:
        """The batch of an entry."""
        return self._log.read(index - self.first_index - 1)

    def index_of_end(self, offset: int) -> int | None:
        """The entry that ends exactly at ``offset``; the sentinel for the log's start; None where none does."""
        if offset == self._log.start_offset:
            return self.first_index
        position = self._log.position_of_end(offset)
        return None if position is None else self.first_index + 1 + position

    def index_at_or_below(self, offset: int) -> int:
        """The last entry that ends at or below ``offset``; the sentinel when none does."""
        if offset <= self._log.start_offset:
            return self.first_index
        if offset >= self._log.end_offset:
            return self.first_index + self._log.entry_count
        return self.first_index + self._log.position_containing(offset)

    def conflict_hint(self, prev_end: int) -> int:
        """Where a leader whose log has no match at ``prev_end`` should try next: the end of what may still match."""
        log = self._log
        if prev_end < log.start_offset or not log.entry_count:
            return log.start_offset
        if prev_end > log.end_offset:
            return log.end_offset
        if prev_end == log.start_offset:
            raise FatalFault(f"the leader's log differs at {prev_end}, where this node's committed log begins")
        start = log.start_of_epoch_at(log.position_containing(prev_end - 1))
        return max(log.entry(start).base_offset, self.commit_end)

    # --- what the library calls ----------------------------------------------------------------------

    def add(self, command: bytes, idx: int, term: int) -> None:
        """Append, or find that the entry is there already. Only a real conflict truncates, and only the tail."""
        if idx <= self.last_index:
            if self.epoch_of(idx) == term:
                if self.read(idx) != command:
                    raise FatalFault(f"two different batches at {self.end_of(idx - 1)} in epoch {term}")
                return
            self._truncate_from(idx)
        if idx != self.last_index + 1:
            raise FatalFault(f"entry {idx} does not follow {self.last_index}")
        if command == _LIBRARY_NO_OP:
            command = place_batch(self._make_first_batch(), self._log.end_offset, term)
        self._log.append(command)
        self._voters.note(command)
        self._last = (idx, idx, term)

    def deleteEntriesFrom(self, entryFrom: int) -> None:
        """The library would drop everything behind a match, equal or not. ``add`` truncates at a conflict instead."""

    def deleteEntriesTo(self, entryTo: int) -> None:
        raise FatalFault("the library's compaction was reached")

    def clear(self) -> None:
        raise FatalFault("the library's snapshot path was reached")

    @overload
    def __getitem__(self, item: int) -> Entry: ...
    @overload
    def __getitem__(self, item: slice) -> EntryView: ...
    def __getitem__(self, item: int | slice) -> Entry | EntryView:
        if item == -1:
            return self._last
        if isinstance(item, slice):
            return self._view(item)
        index = self.first_index + item
        return (index, index, self._log.epoch_of(item - 1) if item else self._log.start_epoch)

    def __len__(self) -> int:
        return self.last_index - self.first_index + 1

    def setRaftCommitIndex(self, raftCommitIndex: int) -> None:
        if raftCommitIndex > self._commit_index:
            self._commit_index = raftCommitIndex
            self._log.note_commit(self.end_of(raftCommitIndex))

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
        return index

    # --- inside --------------------------------------------------------------------------------------

    def _refresh_last(self) -> None:
        self._gathered = (0, 0, b"")
        index = self.first_index + self._log.entry_count
        self._last = (index, index, self._log.last_epoch)

    def _truncate_from(self, index: int) -> None:
        if index <= self._commit_index:
            raise FatalFault(
                f"a leader contradicts what is committed: entry at {self.end_of(index - 1)}, "
                f"committed to {self.commit_end}"
            )
        self._log.truncate_to(self.end_of(index - 1))
        self._refresh_last()

    def _view(self, part: slice) -> EntryView:
        start = self.first_index + (part.start or 0)
        stop = self.last_index + 1
        if part.stop is not None:
            stop = min(stop, self.first_index + part.stop)
        if self.visible_index is not None:
            stop = min(stop, max(self.visible_index, self._commit_index) + 1)
        return EntryView(self, start, self._bounded(start, min(stop, start + self._slice_entries_max)))

    def _bounded(self, start: int, stop: int) -> int:
        """Where a slice that would end at ``stop`` ends for its bytes; it holds one entry at least."""
        log, offset = self._log, self.first_index + 1
        left, end = self._slice_bytes_max, start
        while end < stop:
            # The sentinel takes no bytes.
            left -= log.size_of(end - offset) if end >= offset else 0
            if left < 0 and end > start:
                break
            end += 1
        return end


class EntryView:
    """Entries ``start <= index < stop``, looked at one by one: never a copy of the log's tail."""

    __slots__ = ("_journal", "_start", "_stop")

    def __init__(self, journal: LogJournal, start: int, stop: int) -> None:
        self._journal = journal
        self._start = start
        self._stop = max(start, stop)

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, position: int) -> Entry:
        if not 0 <= position < len(self):
            raise IndexError(position)
        return self._journal[self._start + position - self._journal.first_index]

    def __iter__(self) -> Iterator[Entry]:
        journal = self._journal
        first = journal.first_index
        for index in range(self._start, self._stop):
            yield journal[index - first]
