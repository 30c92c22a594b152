"""Names of backups: in the order of time, and known again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from quorate.scripts.cli.snapshot.rotation import look, name_at


def test_names_have_the_order_of_time_and_are_known_for_those_of_backups(tmp_path: Path) -> None:
    moments = ("2026-01-31T03", "2026-02-01T02", "2026-12-01T00", "2027-01-01T00")
    names = [name_at(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()) for moment in moments]
    assert names[0] == "quorate-20260131T030000Z.checkpoint"
    assert names == sorted(names)
    for name in names:
        (tmp_path / name).touch()
    assert len(look(tmp_path).damaged) == len(names), "backups by their names, and nothing in them"
