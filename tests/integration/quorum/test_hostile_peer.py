"""A voter that says anything, at a cluster of real controllers: nothing but its own connections ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.scripts.fuzzing.hostile_run import attack

#: More by hand: scripts/fuzz-peer
SECONDS = 8.0


@pytest.mark.parametrize("seed", [1, 2])
async def test_hostile_voter_ends_nothing_but_its_own_connections(tmp_path: Path, seed: int) -> None:
    """Writes go on while it speaks; it is heard, refused and heard again."""
    counts, seen = await attack(tmp_path, SECONDS, seed)

    assert seen.findings == [], f"again with: scripts/fuzz-peer --seed {seed} --seconds {SECONDS:g}"
    assert seen.acknowledged > 0
    assert counts["messages"] > 100
    assert counts["proved connections"] > 10
