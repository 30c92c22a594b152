"""Slices of the log that the library is shown."""

from __future__ import annotations

import pytest

from quorate.metadata_log.directory.quorum_state import QuorumStateStore
from quorate.quorum.config import VoterAddress
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.storage.leader_change import VoterHistory
from quorate.quorum.storage.votes import VoteState
from tests.default_parts import quorum_config
from tests.log_support import DIRECTORY, ModelledLog


def journal_of(batches: int, entries_max: int, bytes_max: int) -> LogJournal:
    modelled = ModelledLog()
    for _ in range(batches):
        modelled.append(epoch=1)
    config = quorum_config("c", 1, bytes(16), (VoterAddress(1, "127.0.0.1", 9001),))
    votes = VoteState(QuorumStateStore(modelled.disk, DIRECTORY), None, 1, config)
    return LogJournal(modelled.log, votes, VoterHistory(modelled.log), entries_max, bytes_max, lambda: b"")


def taken(journal: LogJournal, first: int, count: int) -> list[int]:
    """Indexes of a slice, as the library asks for it."""
    start = first - journal.first_index
    return [entry[1] for entry in journal[start : start + count]]


@pytest.mark.parametrize(
    ("entries_max", "bytes_max", "indexes"),
    [(100, 10**6, [2, 3, 4, 5, 6]), (3, 10**6, [2, 3, 4]), (100, 150, [2, 3]), (100, 1, [2])],
    ids=["all", "entries", "bytes", "one at least"],
)
def test_slice_is_bounded_in_entries_and_bytes(entries_max: int, bytes_max: int, indexes: list[int]) -> None:
    journal = journal_of(5, entries_max, bytes_max)  # of some 70 bytes each

    assert taken(journal, 2, 5) == indexes


def test_slice_may_begin_at_the_sentinel_which_has_no_bytes() -> None:
    journal = journal_of(5, 100, 150)

    assert taken(journal, 1, 9) == [1, 2, 3]
