"""Rows that were touched, put in order for counting: each once, and by merging what is in order already."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.snapshots.table import kept_counts


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_several_writes_come_once_and_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(seed)
    touched = [np.flatnonzero(chance.random(200) < 0.3) + int(chance.integers(0, 300)) for _ in range(6)]
    expected = sorted({row for rows in touched for row in rows.tolist()})
    monkeypatch.setattr(np, "unique", lambda *_: pytest.fail("every row is hashed"))

    assert kept_counts._ascending(touched).tolist() == expected
    assert kept_counts._ascending(touched[:1]).tolist() == touched[0].tolist()
