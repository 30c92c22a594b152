"""Kafka's ``raft-metrics``, of the quorum's node in this process, and what else that node counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from quorate.controller.engine.counters import Counters
from quorate.controller.engine.head_counters import HeadCounts
from quorate.controller.http.families import counter, gauge, gauges, histogram
from quorate.controller.http.ports import QuorumView

STATES: Final = ("leader", "candidate", "voted", "follower", "unattached", "observer")

#: Field of ``quorum.metrics.QuorumMetrics`` -> what it means.
_COUNTED: Final = {
    "elections_started": "Elections in which this node asked for votes.",
    "elections_won": "Elections that this node won.",
    "leaderships_lost": "Times that this node stopped leading.",
    "appended_batches": "Batches that this node appended as leader.",
    "committed_batches": "Batches that this node has learnt to be committed.",
    "disk_groups": "Groups of writes that were synced to disk together.",
    "messages_received": "Messages of other voters.",
    "pauses_noticed": "Times that this node noticed that it had been stopped or held up.",
    "leaderships_given_up": "Times that this node stopped leading because its disk hung, was slow, or too far behind.",
    "checkpoints_installed": "Checkpoints of a leader that took the place of this node's log.",
}


def state_of(view: QuorumView, node_id: int) -> str:
    """``current-state`` of Kafka's: who asks for votes has voted for itself, and who recovers only observes."""
    if view.leader_id == node_id:
        return "leader"
    if not view.is_voting:
        return "observer"
    if view.leader_id is not None:
        return "follower"
    if view.voted_id is None:
        return "unattached"
    return "candidate" if view.voted_id == node_id else "voted"


def raft_metrics(view: QuorumView, node_id: int, counted: Counters, head: HeadCounts) -> Iterator[Metric]:
    """All of them."""
    leader = -1 if view.leader_id is None else view.leader_id
    state = state_of(view, node_id)
    yield gauge("current_controller_id", "CurrentControllerId: the active controller; -1 when none is known.", leader)
    yield gauges("raft_current_state", "current-state: 1 for the state that this node is in.", "state",
                 [(name, name == state) for name in STATES])  # fmt: skip
    yield gauge("raft_current_leader", "current-leader: -1 when none is known.", leader)
    yield gauge("raft_current_vote", "current-vote: whom this node voted for in this epoch; -1: nobody.",
                -1 if view.voted_id is None else view.voted_id)  # fmt: skip
    yield gauge("raft_current_epoch", "current-epoch.", view.epoch)
    yield gauge("raft_high_watermark", "high-watermark: exclusive end of what is committed.", view.high_watermark)
    yield gauge("raft_log_start_offset", "First record in the log.", view.log_start_offset)
    yield gauge("raft_log_end_offset", "log-end-offset: exclusive.", view.log_end_offset)
    yield gauge("raft_log_end_epoch", "log-end-epoch: epoch of the last batch.", view.log_end_epoch)
    yield gauge("raft_number_of_voters", "number-of-voters: controllers of the quorum.", len(view.voters) + 1)
    connected = sum(voter.is_connected for voter in view.voters.values())
    text = "number-unknown-voter-connections: other voters without a connection."
    yield gauge("raft_number_unknown_voter_connections", text, len(view.voters) - connected)
    yield gauge("raft_is_voting", "1 if this node votes.", view.is_voting)
    yield from _voters(view)
    yield histogram("raft_commit_latency_seconds",
                    "commit-latency-avg, -max: from the last event of a batch, on the leader, to its commit.",
                    head.commit_times)  # fmt: skip
    yield histogram("raft_election_latency_seconds",
                    "election-latency-avg, -max: from knowing of no leader to knowing of one.",
                    counted.election_latency)  # fmt: skip
    yield counter("raft_appended_records", "append-records-rate: records appended as leader.", counted.appended_records)
    yield counter("raft_fetched_records", "fetch-records-rate: records taken over from leaders.",
                  counted.fetched_records)  # fmt: skip
    for name, text in _COUNTED.items():
        yield counter(f"raft_{name}", text, counted.quorum.get(name, 0))


def _voters(view: QuorumView) -> Iterator[Metric]:
    voters = sorted(view.voters.values(), key=lambda voter: voter.node_id)
    lags = [(v.node_id, max(0, view.log_end_offset - v.durable_end)) for v in voters if v.durable_end is not None]
    contacts = [(v.node_id, v.last_contact_ms_ago / 1000) for v in voters if v.last_contact_ms_ago is not None]
    yield gauges("raft_voter_lag_records", "Records not durable at a voter; known to the leader.", "voter", lags)
    yield gauges("raft_voter_contact_seconds", "Time since a voter answered; known to the leader.", "voter", contacts)
    silences = [(v.node_id, v.silent_ms / 1000) for v in voters if v.silent_ms is not None]
    yield gauges("raft_voter_silent_seconds", "Time since anything came from a voter.", "voter", silences)
    spoken = [(v.node_id, v.message_version) for v in voters if v.message_version is not None]
    yield gauges("raft_voter_message_version", "Version of the messages to a voter and from it.", "voter", spoken)
