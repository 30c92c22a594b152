"""The first thing that goes wrong ends the node; a peer's mistake does not."""

from __future__ import annotations

import pytest

from quorate.quorum.errors import ProtocolError
from quorate.quorum.fail_stop import FailStop


def fail_with(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("error", [KeyError("x"), MemoryError(), ProtocolError("of nobody's")], ids=repr)
def test_whatever_is_raised_ends_the_node_and_nothing_runs_afterwards(error: Exception) -> None:
    ends: list[BaseException] = []
    fuse = FailStop(ends.append)
    ran: list[int] = []

    fuse.run(fail_with, error)
    fuse.run(ran.append, 1)
    fuse.take(ran.append, 2)
    fuse.fail(ValueError("later"))

    assert ends == [error]
    assert fuse.is_stopped
    assert ran == []


def test_peers_mistake_is_the_callers_to_deal_with() -> None:
    ends: list[BaseException] = []
    fuse = FailStop(ends.append)

    with pytest.raises(ProtocolError):
        fuse.take(fail_with, ProtocolError("nonsense"))
    assert ends == []

    fuse.take(fail_with, ValueError("ours"))
    assert [type(error) for error in ends] == [ValueError]
