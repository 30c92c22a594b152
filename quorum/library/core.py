"""PySyncObj's consensus core with the few methods replaced that make it safe for this job, and nothing else.

Epochs, vote bookkeeping, log matching, commit advance and state changes run in the library. Here: the hooks it is
given, and the conditions under which it may act. Its own clock, random generator, sockets, files, command queue and
snapshots decide nothing:

- every deadline it computes lies at minus infinity, so an election depends on ``may_campaign`` alone; it never starves
  (``leaderFallbackTimeout`` is infinite), check-quorum is the owner's;
- it sends only when the owner does; its queue stays empty; compaction and snapshots are out of reach.
"""

from __future__ import annotations

import logging
import math
from typing import Any, Final, Protocol

from pysyncobj import SyncObj, SyncObjConf
from pysyncobj.node import Node
from pysyncobj.transport import Transport

from quorate.quorum.errors import FatalFault
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.library.self_check import check_library

_FOLLOWER: Final = 0
_CANDIDATE: Final = 1
_LEADER: Final = 2
_NEVER: Final = 10**15

# The library reports harmless duplicates as "truncating already-applied log entries": its journal would, ours does not.
logging.getLogger("pysyncobj").setLevel(logging.CRITICAL + 1)


class CoreOwner(Protocol):
    """The node that the core belongs to, as far as the core asks anything of it."""

    def core_send(self, peer: int, message: dict[str, Any]) -> None:
        """The library wants to say something to a voter, in its own terms."""

    def core_may_campaign(self) -> bool:
        """The library asks whether it may stand for election now."""

    def core_elected(self) -> None:
        """The library has just become leader and wants its first entry sent."""


class VoterNumber(int, Node):  # type: ignore[misc]  # the library's Node has no type information
    """A node is its number: hashed and compared as an int, so nothing depends on hash seeds."""


class _CoreTransport(Transport):  # type: ignore[misc]  # no type information
    """Hands the library's messages to the owner. Real connections are not the library's business."""

    def __init__(self, owner: CoreOwner) -> None:
        super().__init__(None, None, None)
        self._owner = owner

    @property
    def ready(self) -> bool:
        return True

    def send(self, node: VoterNumber, message: dict[str, Any]) -> bool:
        self._owner.core_send(int(node), message)
        return True


class _NoPoller:
    """Takes the place of the library's own socket poller."""

    def poll(self, timeout: float) -> None:
        """Nothing is polled here."""


def _library_config() -> SyncObjConf:
    return SyncObjConf(
        autoTick=False,
        fullDumpFile=None,
        journalFile=None,
        appendEntriesUseBatch=True,
        logCompactionMinEntries=_NEVER,
        logCompactionMinTime=math.inf,
        leaderFallbackTimeout=math.inf,
        dynamicMembershipChange=False,
        commandsWaitLeader=False,
    )


class RaftCore(SyncObj):  # type: ignore[misc]  # no type information
    """The library's consensus state of one voter. Every call comes from the loop thread."""

    #: The library's, of the current epoch.
    _SyncObj__raftLeader: VoterNumber | None

    def __init__(self, node_id: int, peers: tuple[int, ...], journal: LogJournal, owner: CoreOwner) -> None:
        check_library()
        self._owner = owner
        self._voters = {peer: VoterNumber(peer) for peer in peers}
        super().__init__(
            VoterNumber(node_id), list(self._voters.values()), _library_config(), transport=_CoreTransport(owner)
        )
        self._poller = _NoPoller()
        # The constructor worked on a throw-away journal; this is where the durable one takes over. What is committed
        # and applied starts at the journal's sentinel: the end of the checkpoint that was loaded, or nothing.
        self._SyncObj__raftLog = journal
        self._SyncObj__raftCurrentTerm = journal.getCurrentTerm()
        self._SyncObj__votedForNodeId = journal.getVotedForNodeId()
        self._SyncObj__raftCommitIndex = journal.getRaftCommitIndex()
        self._SyncObj__raftLastApplied = journal.first_index
        self._SyncObj__raftElectionDeadline = -math.inf

    # --- replaced ------------------------------------------------------------------------------------

    def _SyncObj__generateRaftTimeout(self) -> float:
        """Always overdue: ``may_campaign`` is the only gate."""
        return -math.inf

    def _SyncObj__connectedToAnyone(self) -> bool:
        """The last part of the library's election condition."""
        return self._owner.core_may_campaign()

    def _SyncObj__sendAppendEntries(self) -> None:
        """Only ever reached from the library's becoming leader; every other pass over the followers is the owner's."""
        self._SyncObj__newAppendEntriesTime = math.inf
        self._owner.core_elected()

    def _SyncObj__doApplyCommand(self, command: int) -> None:
        """Nothing to do: the owner hands over what lies between two values of ``applied_index``."""

    def _checkCommandsToApply(self) -> None:
        """The library's command queue is not used: it forwards to other nodes and appends unchecked."""

    # --- asked by the owner --------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The current term."""
        term: int = self._SyncObj__raftCurrentTerm
        return term

    @property
    def voted_id(self) -> int | None:
        """The node that this one has voted for in the current term."""
        voted: int | None = self._SyncObj__votedForNodeId
        return voted

    @property
    def is_leader(self) -> bool:
        return bool(self._SyncObj__raftState == _LEADER)

    @property
    def is_candidate(self) -> bool:
        return bool(self._SyncObj__raftState == _CANDIDATE)

    @property
    def leader_id(self) -> int | None:
        """The leader of the current epoch, as far as this node knows."""
        leader = self._SyncObj__raftLeader
        return None if leader is None else int(leader)

    @property
    def commit_index(self) -> int:
        index: int = self._SyncObj__raftCommitIndex
        return index

    @property
    def applied_index(self) -> int:
        index: int = self._SyncObj__raftLastApplied
        return index

    @property
    def first_own_index(self) -> int:
        """Index of the first entry of the epoch that this node leads. Meaningful while it leads."""
        index: int = self._SyncObj__noopIDx
        return index

    def receive(self, peer: int, message: dict[str, Any]) -> None:
        """Give the library a message in its own terms.

        Raises:
            FatalFault: it is of the library's own transfer of state, which is not used.
        """
        if "transmission" in message or "serialized" in message:
            raise FatalFault("the library's pickled transfer was reached")
        self._SyncObj__onMessageReceived(self._voters[peer], message)

    def feed_match(self, peer: int, index: int) -> None:
        """Tell the library that a follower's log is durable and equal up to ``index``."""
        self.receive(peer, {"type": "next_node_idx", "next_node_idx": index + 1, "reset": False, "success": True})

    def adopt_epoch(self, epoch: int) -> None:
        """Take over a higher epoch without voting in it; whoever led or stood in the old one stops."""
        if epoch > self.epoch:
            self._SyncObj__setCurrentTerm(epoch, None)
            self.step_down()

    def abstain_in(self, epoch: int, leader: int) -> None:
        """Take the vote of ``epoch`` for given, to its known leader, so that it cannot be given again."""
        self._SyncObj__setCurrentTerm(epoch, leader)

    def step_down(self) -> None:
        """Stop leading or standing. The epoch stays, so this node will not lead in it again."""
        self._SyncObj__setState(_FOLLOWER)
        self._SyncObj__raftLeader = None

    def checkpoint_installed(self, index: int) -> None:
        """Everything up to ``index`` is committed and part of the listener's state."""
        self._SyncObj__raftCommitIndex = max(self.commit_index, index)
        self._SyncObj__raftLastApplied = max(self.applied_index, index)
