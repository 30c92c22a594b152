"""Admission of messages: bounds how far a peer's epoch may be ahead, and checks any claim to lead an epoch.

What is refused here ends the connection that it came on, and has changed nothing.

**Leaps.** An epoch can only rise and there are 2^31 of them, so one wrong number that is believed, spread and stored
could use all of them up. What an epoch rises by beyond the next one is its leap. A process takes leaps of a million in
all, and of ten more each second: far more than a node misses that was away, or that a rebuilt quorum leaves out
(a thousand), and no peer uses the epochs up by saying ever higher ones. A node without a vote takes any epoch: it has
nothing to compare it with, and stores none.

**One leader.** Whoever was heard of first as the leader of an epoch is it, for as long as the process lives; and who
follows it has no vote left in that epoch (as with Kafka's ``QuorumState``), so that nobody else comes to lead it.
"""

from __future__ import annotations

from typing import Final

from quorate.quorum.elections.membership import Membership
from quorate.quorum.errors import ProtocolError, SecondLeader
from quorate.quorum.library.core import RaftCore

LEAP_MAX: Final = 1_000_000
#: More leap for each second that passes, up to the most.
_LEAP_PER_SECOND: Final = 10.0


class Admission:
    """Watches epochs and claims. ``now`` is the host's; it says only how soon another leap is believed."""

    def __init__(self, core: RaftCore, membership: Membership, now: float) -> None:
        self._core = core
        self._membership = membership
        self._leap_left = float(LEAP_MAX)
        self._counted_at = now
        #: The first leader heard of, and of which epoch.
        self._leader: tuple[int, int] | None = None

    def check_epoch(self, peer: int, epoch: int, now: float) -> None:
        """A peer speaks of ``epoch``.

        Raises:
            ProtocolError: it is too far above the own one.
        """
        leap = epoch - self._core.epoch - 1
        if leap <= 0 or not self._membership.is_voter:
            return
        self._leap_left = min(self._leap_left + (now - self._counted_at) * _LEAP_PER_SECOND, float(LEAP_MAX))
        self._counted_at = now
        if leap > self._leap_left:
            raise ProtocolError(
                f"node {peer} speaks of epoch {epoch}, this node is in {self._core.epoch}: a leap of more than"
                f" {int(self._leap_left)} epochs is not believed"
            )

    def took(self, former_epoch: int) -> None:
        """A message that was let in may have moved the epoch: count the leap."""
        if self._membership.is_voter:
            self._leap_left -= max(self._core.epoch - former_epoch - 1, 0)

    def check_leader(self, peer: int, epoch: int) -> None:
        """A peer says that it leads ``epoch``, which is not below the own.

        Raises:
            SecondLeader: another node does, this one perhaps.
        """
        known = self._leader
        if known is not None and known[0] == epoch and known[1] != peer:
            raise SecondLeader(known[1], peer, epoch)

    def note_leader(self, leader: int, epoch: int) -> None:
        """A node leads ``epoch``, the current one: a message of it was taken in, or it is this one."""
        if self._leader is None or self._leader[0] < epoch:
            self._leader = (epoch, leader)
            if self._core.voted_id is None:
                self._core.abstain_in(epoch, leader)
