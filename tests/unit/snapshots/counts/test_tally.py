"""What of a topic's own ``min.insync.replicas`` is counted by."""

from __future__ import annotations

import pytest

from quorate.snapshots.counts.tally import own_min_isr_code


@pytest.mark.parametrize(
    ("text", "code"),
    [(None, 0), ("", 0), ("two", 0), ("2", 3), (" +2 ", 3), ("0", 1), ("-5", 1), ("64", 65), ("9999", 65)],
)
def test_own_value_is_one_more_than_it_says_within_what_a_partition_can_have(text: str | None, code: int) -> None:
    assert own_min_isr_code(text) == code
