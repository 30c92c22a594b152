"""Intruders at every port of a cluster: nothing is let in, and the state is what the honest client made."""

from __future__ import annotations

from pathlib import Path

from quorate.scripts.fuzzing.hostile_clients import besiege

#: More, and how slow honest writes become, by hand: scripts/hostile
SECONDS = 6.0


async def test_intruders_get_nothing_and_change_nothing(tmp_path: Path) -> None:
    siege = await besiege(tmp_path, SECONDS, seed=1, jobs=8)

    assert siege.findings == [], "again with: scripts/hostile --seed 1"
    assert (siege.acknowledged > 0, siege.refused) == (True, 0)
    assert len({tried for tried, _ in siege.outcomes}) == 24
    assert siege.outcomes["list for who may describe nothing", "200, empty"] > 0
