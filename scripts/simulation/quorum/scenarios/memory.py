"""Five voters, one or two of which lose their memory: a vote that was forgotten must not be given again.

With three voters the majority that vouches for a wiped voter is everybody else. From five on it is not, and an election
may be open in which the forgotten vote still counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.quorum.messages.messages import ChunkMessage, Message
from quorate.scripts.simulation.quorum.stage import QUIET, QuorumStage

_LEADER, _LAGGARD, _CANDIDATE, _OTHER, _WIPED = range(5)
_REACHABLE: Final = (_LEADER, _LAGGARD, _OTHER)
#: Virtual seconds: a vote is given back within a few heartbeats, if it is.
_SOON: Final = 2.0


def forgotten_vote_of_an_open_election(seed: int) -> None:
    """A voter forgets a vote whose candidate has not won yet; another stands in the same epoch."""
    stage = _open_election(seed)
    _wipe(stage, _WIPED)
    _time_to_vote_again(stage, _SOON)
    stage.release(_CANDIDATE, _LAGGARD)
    stage.stand(_OTHER)
    stage.pass_time(1.0)
    stage.finish()


def forgotten_vote_and_a_laggard(seed: int) -> None:
    """A voter forgets a vote and helps to commit; the candidate wins with a voter that has none of it."""
    stage = QuorumStage(seed, 5, replace(QUIET, retention_bytes=0, chunk_bytes=64, segment_bytes=500))
    world = stage.world
    stage.lead(_LEADER)
    stage.crash(_LAGGARD)
    for _ in range(30):
        stage.write_acknowledged(_LEADER)
    for _ in range(2):
        stage.write_acknowledged(_LEADER)
        for index in (_LEADER, _CANDIDATE, _OTHER, _WIPED):
            world.take_checkpoint(stage.nodes[index])
        stage.pass_time(0.3)

    def lose_chunks(source: int, target: int, message: Message) -> bool:
        """The checkpoint takes its time: the laggard answers every heartbeat and has nothing."""
        return target == _LAGGARD and isinstance(message, ChunkMessage)

    stage.swallow = lose_chunks
    stage.restart(_LAGGARD)
    stage.wait("the laggard's answers", lambda: _contact(stage, _LAGGARD))
    stage.pass_time(0.12)
    _open_election(seed, stage)
    _wipe(stage, _WIPED)
    _time_to_vote_again(stage, _SOON)
    for _ in range(3):
        stage.write(_LEADER)
    stage.pass_time(0.2)
    stage.crash(_LEADER)
    stage.release(_CANDIDATE, _LAGGARD)
    stage.pass_time(0.3)
    stage.restart(_LEADER)
    stage.finish()


def forgotten_vote_of_a_forgotten_candidate(seed: int) -> None:
    """The candidate wins with the forgotten vote, loses its own memory, and now answers the leader that it deposed."""
    stage = _open_election(seed)
    _wipe(stage, _WIPED)
    # All but the candidate answer the leader once more; only then the vote arrives that decides.
    stage.pass_time(0.15)
    stage.suppose(_is_up(stage, _WIPED), "the wiped voter is back")
    for index in (_LEADER, _OTHER, _WIPED):
        stage.hold(_LAGGARD, index)
    stage.hold(_CANDIDATE, _WIPED)
    stage.release(_CANDIDATE, _LAGGARD)
    stage.wait("the candidate to win", lambda: stage.leads(_CANDIDATE), 1.0)
    stage.suppose(stage.leads(_LEADER), "the leader does not know that it was deposed")
    stage.world.wipe(stage.nodes[_CANDIDATE])
    for index in (_LEADER, _OTHER, _WIPED):
        stage.release(_CANDIDATE, index)
    stage.restart(_CANDIDATE)
    _time_to_vote_again(stage, 0.6)
    stage.stand(_OTHER)
    stage.pass_time(1.0)
    stage.finish()


def wiped_voter_beside_a_dead_node(seed: int) -> None:
    """A wiped voter waits for a node that is down for good; begun anew, without memory, that one answers too."""
    stage = QuorumStage(seed, 5)
    stage.lead(_LEADER)
    stage.write_acknowledged(_LEADER)
    stage.crash(_LAGGARD)
    _wipe(stage, _WIPED)
    stage.pass_time(3.0)
    stage.claim(_waits_for(stage, _WIPED) == [_LAGGARD], "the leader does not say whose answer is missing")
    stage.claim(stage.nodes[_WIPED].node_id in stage.world.amnesiac, "a vote was restored that may have been given")
    _wipe(stage, _LAGGARD)
    stage.pass_time(_SOON)
    stage.claim(not stage.world.amnesiac, "a node without memory is no answer to another one: both stay without a vote")
    stage.finish()


def _open_election(seed: int, stage: QuorumStage | None = None) -> QuorumStage:
    """A candidate has the vote of one voter, and its requests to the others are on their way and stay there."""
    if stage is None:
        stage = QuorumStage(seed, 5)
        stage.lead(_LEADER)
        stage.write_acknowledged(_LEADER)
        stage.pass_time(0.3)
    stage.hold(_CANDIDATE, *_REACHABLE)
    # A heartbeat that is on its way would call the election off.
    stage.pass_time(0.01)
    candidate, voter = stage.nodes[_CANDIDATE].node, stage.nodes[_WIPED]
    assert candidate is not None
    stage.stand(_CANDIDATE)
    stage.wait(
        "the vote", lambda: candidate._core.is_candidate and voter.node_id in candidate._ballots.granters, seconds=1.0
    )
    return stage


def _wipe(stage: QuorumStage, index: int) -> None:
    """Its directory is lost and it starts anew at once, before it has told anybody of the new epoch."""
    stage.world.wipe(stage.nodes[index])
    stage.restart(index)


def _time_to_vote_again(stage: QuorumStage, seconds: float) -> None:
    """If a vote is given back to the wiped voter too early, then now: what follows must find it out."""
    stage.world.run_until(lambda: stage.nodes[_WIPED].node_id not in stage.world.amnesiac, seconds)


def _contact(stage: QuorumStage, index: int) -> bool:
    node = stage.nodes[_LEADER].node
    assert node is not None
    return any(p.node_id == stage.nodes[index].node_id and p.checkpoint is not None for p in node.status().peers)


def _waits_for(stage: QuorumStage, index: int) -> list[int]:
    """For whose answers a node without memory waits, as its leader says."""
    node, first = stage.nodes[_LEADER].node, stage.nodes[0].node_id
    assert node is not None
    peer = next(peer for peer in node.status().peers if peer.node_id == stage.nodes[index].node_id)
    return [waits_for - first for waits_for in peer.waits_for]


def _is_up(stage: QuorumStage, index: int) -> bool:
    return stage.nodes[index].node is not None


MEMORY_SCENARIOS: Final[dict[str, Callable[[int], None]]] = {
    "forgotten-vote-of-an-open-election": forgotten_vote_of_an_open_election,
    "forgotten-vote-and-a-laggard": forgotten_vote_and_a_laggard,
    "forgotten-vote-of-a-forgotten-candidate": forgotten_vote_of_a_forgotten_candidate,
    "wiped-voter-beside-a-dead-node": wiped_voter_beside_a_dead_node,
}
