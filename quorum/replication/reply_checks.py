"""Checks on a follower's answers: a leader believes what could be so in its own log. The rest is the peer's error."""

from __future__ import annotations

from quorate.quorum.errors import ProtocolError
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.messages.messages import AppendConflict, AppendReply


def check_round(peer: int, epoch: int, answered: int, last: int) -> None:
    """A follower answers a round of the epoch that this node leads, of which there were ``last``.

    Raises:
        ProtocolError: there has been no such round.
    """
    if not 0 < answered <= last:
        raise ProtocolError(f"node {peer} answers round {answered} of epoch {epoch}, {last} were sent")


def matched_entries(peer: int, reply: AppendReply, journal: LogJournal) -> tuple[int, int] | None:
    """The entries up to which a follower matches, and has all durably (0: before the log's start).

    None where it matches only what this log no longer holds: that says nothing new.

    Raises:
        ProtocolError: no entry of this log ends there.
    """
    start = journal.end_of(journal.first_index)
    if reply.matched_end < start:
        return None
    matched = journal.index_of_end(reply.matched_end)
    acked = 0 if reply.acked_end < start else journal.index_of_end(reply.acked_end)
    if matched is None or acked is None:
        raise ProtocolError(
            f"node {peer} matches {reply.matched_end} and acknowledges {reply.acked_end} in epoch {reply.epoch}: "
            "no boundary of the leader's log"
        )
    return matched, acked


def next_to_try(peer: int, reply: AppendConflict, journal: LogJournal) -> int:
    """The entry to send next to a follower whose log does not match.

    Raises:
        ProtocolError: the follower points beyond this log.
    """
    if reply.hint_end > journal.end_offset:
        raise ProtocolError(f"node {peer} points to {reply.hint_end}, the leader's log ends at {journal.end_offset}")
    if reply.hint_end < journal.end_of(journal.first_index):
        return journal.first_index
    return journal.index_at_or_below(reply.hint_end) + 1
