"""The rule by which a leader's commit point may restore the vote of a node that lost its memory: the nodes that must
have answered the leader since.

A leader *vouches* once every other node, voting or not, and a majority as voters, has answered a round that began after
the last node without memory joined. Each of them was then in the leader's epoch, after all that was forgotten:

- Whoever stood for election with a forgotten vote was in a higher epoch before. That it is not any more means that
  it lost its memory, too: its process, which alone could win, is gone.
- Whoever *was* elected above the leader's epoch has a majority of voters above it, and the majority that answered
  shares one with it, which would have had to be restored below what it had promised.

docs/architecture.md has the whole argument. *The last* node's joining counts for all of them: else an answer could be
older than the election that its sender's vote decides.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.quorum.replication.progress import Progress


class Vouching:
    """Of one leader, in one epoch."""

    def __init__(self) -> None:
        #: The first round begun after a node without memory joined last; the epoch's first while none has.
        self._since = 1

    def begin_epoch(self) -> None:
        """Begin an epoch: nodes that are connected already joined before its first round."""
        self._since = 1

    def joined(self, next_round: int) -> None:
        """A node without memory has connected, also anew; ``next_round`` is the first that begins from now on."""
        self._since = next_round

    def awaited(self, peer: int, progress: Mapping[int, Progress]) -> tuple[int, ...]:
        """The nodes other than ``peer`` whose answer is missing."""
        return tuple(other for other, of in progress.items() if other != peer and of.answered_round < self._since)

    def holds(self, peer: int, progress: Mapping[int, Progress], majority_echoed: int) -> bool:
        """Whether the leader vouches for ``peer``. A majority of voters has answered the round ``majority_echoed``."""
        return majority_echoed >= self._since and not self.awaited(peer, progress)
