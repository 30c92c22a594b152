"""How long committed records have been waiting to be applied, as readiness goes by it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from quorate.controller.process.served_cluster import ServedCluster


class Looked:
    """A node, and whoever looks at it at times in milliseconds."""

    def __init__(self) -> None:
        self.node = SimpleNamespace(applied_end=0, high_watermark=0)
        self.now_ms = 0.0
        scheduler = SimpleNamespace(monotonic_ms=lambda: self.now_ms)
        served = SimpleNamespace(_runtime=SimpleNamespace(node=self.node), _scheduler=scheduler, _waiting=None)
        self._served = cast("ServedCluster", served)

    def at(self, now_ms: float, applied: int, committed: int) -> float:
        self.now_ms, self.node.applied_end, self.node.high_watermark = now_ms, applied, committed
        return ServedCluster.stalled_ms(self._served)


def test_what_is_applied_waits_no_more() -> None:
    looked = Looked()
    assert [
        looked.at(0, 5, 5),
        looked.at(10, 5, 6),
        looked.at(30, 5, 9),
        looked.at(40, 9, 9),
        looked.at(50, 9, 10),
    ] == [*(0, 0, 20, 0, 0)]


def test_node_that_is_always_given_more_while_somebody_looks_keeps_nobody_waiting() -> None:
    """Between two parts of what came some of it waits, whenever that is."""
    looked = Looked()
    assert max(looked.at(100.0 * burst, 200 * burst + 64, 200 * burst + 200) for burst in range(100)) == 0.0


def test_node_that_falls_behind_keeps_them_waiting() -> None:
    looked = Looked()
    assert [looked.at(100.0 * look, 10 * look, 1_000 * (look + 1)) for look in range(50)][-1] == 4_900.0
