"""Dispatch of messages: each kind goes to the part of a node that handles it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.quorum.checkpoints.receiving import CheckpointReceiver
from quorate.quorum.checkpoints.sending import CheckpointSender
from quorate.quorum.elections.ballots import Ballots
from quorate.quorum.library.core import RaftCore
from quorate.quorum.messages import messages
from quorate.quorum.replication.following import Follower
from quorate.quorum.replication.replication import Replication

#: Called with the peer, its message and the time.
Handler = Callable[[int, Any, float], None]


def message_handlers(
    core: RaftCore,
    ballots: Ballots,
    replication: Replication,
    sender: CheckpointSender,
    receiver: CheckpointReceiver,
    follower: Follower,
) -> dict[type[Any], Handler]:
    """The messages that one part takes by itself, by their type."""
    return {
        messages.Commit: lambda peer, m, now: follower.on_commit(peer, m),
        messages.AppendConflict: replication.on_conflict,
        messages.StaleEpoch: lambda peer, m, now: ballots.on_stale_epoch(m),
        messages.PreVote: ballots.on_pre_vote,
        messages.PreVoteReply: ballots.on_pre_vote_reply,
        messages.Vote: ballots.on_vote,
        messages.VoteReply: ballots.on_vote_reply,
        messages.EndEpoch: ballots.on_end_epoch,
        messages.CheckpointProgress: replication.on_checkpoint_progress,
        messages.ChunkRequest: lambda peer, m, now: sender.on_request(
            peer, m, core.epoch if core.is_leader else None, now
        ),
        messages.ChunkMessage: receiver.on_chunk,
    }
