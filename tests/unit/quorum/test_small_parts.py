"""Settings, read barrier: the rules that need no cluster."""

from __future__ import annotations

import pytest

from quorate.quorum.config import InvalidQuorumConfig, VoterAddress
from quorate.quorum.errors import NotLeader
from quorate.quorum.replication.read_barrier import ReadBarrier
from tests.default_parts import quorum_config, quorum_timing

VOTERS = tuple(VoterAddress(node_id, "127.0.0.1", 9000 + node_id) for node_id in (1, 2, 3))


@pytest.mark.parametrize(
    ("heartbeat", "low", "high"), [(0.2, 0.5, 1.0), (0.1, 0.5, 0.5), (0.0, 0.5, 1.0)], ids=["slow", "equal", "zero"]
)
def test_timing_that_contradicts_itself_is_refused(heartbeat: float, low: float, high: float) -> None:
    with pytest.raises(InvalidQuorumConfig):
        quorum_timing(election_timeout_min=low, election_timeout_max=high, heartbeat_interval=heartbeat)


@pytest.mark.parametrize(
    ("node_id", "voters", "kraft_version"), [(9, VOTERS, 1), (1, (*VOTERS, VOTERS[0]), 1), (1, VOTERS, 2)]
)
def test_config_that_contradicts_itself_is_refused(
    node_id: int, voters: tuple[VoterAddress, ...], kraft_version: int
) -> None:
    with pytest.raises(InvalidQuorumConfig):
        quorum_config("c", node_id, bytes(16), voters, kraft_version=kraft_version)


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (5, 3)])
def test_config_majority_is_more_than_half(count: int, majority: int) -> None:
    voters = tuple(VoterAddress(node_id, "127.0.0.1", 9000) for node_id in range(count))

    assert quorum_config("c", 0, bytes(16), voters).majority == majority


def test_read_waits_for_its_round_and_for_what_it_must_see() -> None:
    confirmed: list[int | NotLeader] = []
    barrier = ReadBarrier()
    barrier.add(5, 100, confirmed.append)

    barrier.confirm(echoed_round=4, applied_end=200)
    barrier.confirm(echoed_round=5, applied_end=99)
    assert confirmed == []
    barrier.confirm(echoed_round=5, applied_end=100)
    assert confirmed == [100]


def test_read_on_a_leader_that_is_deposed_is_refused() -> None:
    answers: list[int | NotLeader] = []
    barrier = ReadBarrier()
    barrier.add(5, 100, answers.append)

    barrier.fail(NotLeader(2, 1, 2))

    assert [type(answer) for answer in answers] == [NotLeader]
    assert len(barrier) == 0
