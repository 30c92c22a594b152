"""What a node has missed is handed to its listener in parts: whoever is served by its loop has turns between them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from quorate.quorum.checkpoints.own_checkpoints import Checkpoint
from quorate.quorum.host import CommittedBatches
from quorate.quorum.replication import delivery
from quorate.scripts.simulation.quorum.stage import QuorumStage

WRITES = 200
#: Of a simulated loop, until it does what it is asked for.
TURN_MAX_S = 0.0002


class Behind:
    """A stage in which node 2 has missed some writes, and all that its listener is handed from then on."""

    def __init__(self) -> None:
        self.stage = QuorumStage(1)
        self.stage.lead(0)
        self.stage.cut((0, 1), (2,))
        for _ in range(WRITES):
            self.end = self.stage.write_acknowledged(0)
        machine = self.stage.nodes[2].machine
        assert machine is not None
        on_commit = machine.on_commit
        #: Batches and records, each time.
        self.handed: list[tuple[int, int]] = []
        #: Virtual times of these.
        self.times: list[float] = []

        def note(batches: CommittedBatches) -> None:
            self.times.append(self.stage.world.scheduler.now)
            self.handed.append((len(batches), batches.end_offset - batches.base_offset))
            on_commit(batches)

        machine.on_commit = note  # type: ignore[method-assign]

    def catch_up(self) -> None:
        """Let node 2 have it all."""
        self.stage.mend()
        node = self.stage.nodes[2]
        self.stage.wait("node 2", lambda: node.node is not None and node.node.applied_end >= self.end)
        self.stage.finish()


def test_missed_batches_come_so_many_at_a_time() -> None:
    behind = Behind()
    behind.catch_up()
    sizes = [batches for batches, _ in behind.handed]
    assert sum(sizes) >= WRITES
    assert max(sizes) == delivery.BATCHES_DELIVERED_MAX


def test_next_part_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BATCHES_DELIVERED_MAX", 1)
    behind = Behind()
    behind.catch_up()
    assert len(behind.handed) >= WRITES
    assert behind.times[WRITES - 1] - behind.times[0] < WRITES * TURN_MAX_S, "for no message, and no timer"


@pytest.mark.parametrize("records", [1, 7])
def test_missed_records_come_so_many_at_a_time_or_one_batch(records: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "RECORDS_DELIVERED_MAX", records)
    behind = Behind()
    behind.catch_up()
    assert sum(batches for batches, _ in behind.handed) >= WRITES
    assert all(count <= records or batches == 1 for batches, count in behind.handed)
    assert max(count for _, count in behind.handed) >= records


def test_checkpoint_of_what_is_applied_and_not_handed_over_yet_is_not_taken() -> None:
    """It would take the place of what lies behind it, too."""
    behind = Behind()
    node = behind.stage.nodes[2]
    assert node.node is not None
    assert node.machine is not None
    handing, on_commit = node.node._delivery, node.machine.on_commit
    offered: list[int] = []

    def note(batches: CommittedBatches) -> None:
        on_commit(batches)
        end = handing.end_offset
        if end < handing._journal.end_of(handing._core.applied_index):
            offered.append(end + 1)
            arrived = SimpleNamespace(end_offset=end + 1, epoch=handing._log.epoch_at(end + 1))
            assert handing.install(cast("Checkpoint", arrived)) is None

    node.machine.on_commit = note  # type: ignore[method-assign]
    behind.catch_up()
    assert offered
