"""What one worker keeps on disk: the logs of its shards, in one SQLite file. Calls block; each is one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_TABLES = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS entries (
        shard TEXT, at INTEGER, epoch INTEGER, key TEXT, value TEXT, PRIMARY KEY (shard, at)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS newest ON entries (shard, key, at);
    CREATE TABLE IF NOT EXISTS marks (shard TEXT PRIMARY KEY, high_watermark INTEGER);
"""


class Entry(NamedTuple):
    """One write: its place in the shard's log, the leader epoch it was made in, and what it sets."""

    at: int
    epoch: int
    key: str
    value: str


class Store:
    """Logs by shard name. The *end* of a log is where its next entry goes."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(_TABLES)

    def end(self, shard: str) -> int:
        """Where the next entry goes."""
        return int(self._one("SELECT coalesce(max(at) + 1, 0) FROM entries WHERE shard = ?", shard))

    def epoch_before(self, shard: str, end: int) -> int:
        """Epoch of the last entry before ``end``; -1 = there is none."""
        return int(self._one("SELECT coalesce(max(epoch), -1) FROM entries WHERE shard = ? AND at = ? - 1", shard, end))

    def end_of_epoch(self, shard: str, epoch: int) -> int:
        """End of the part of the log that was written up to and in an epoch."""
        return int(
            self._one("SELECT coalesce(max(at) + 1, 0) FROM entries WHERE shard = ? AND epoch <= ?", shard, epoch)
        )

    def append(self, shard: str, entries: Sequence[Entry]) -> None:
        """Durable when this returns."""
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", [(shard, *entry) for entry in entries])
        self._db.execute("COMMIT")

    def truncate(self, shard: str, end: int) -> None:
        """Forget what lies at ``end`` and behind it."""
        self._db.execute("DELETE FROM entries WHERE shard = ? AND at >= ?", (shard, end))

    def read(self, shard: str, start: int, most: int) -> list[Entry]:
        """Entries from ``start`` on."""
        rows = self._db.execute(
            "SELECT at, epoch, key, value FROM entries WHERE shard = ? AND at >= ? ORDER BY at LIMIT ?",
            (shard, start, most),
        )
        return [Entry(*row) for row in rows]

    def get(self, shard: str, key: str, end: int) -> str | None:
        """The newest value of a key before ``end``."""
        query = "SELECT value FROM entries WHERE shard = ? AND key = ? AND at < ? ORDER BY at DESC LIMIT 1"
        row = self._db.execute(query, (shard, key, end)).fetchone()
        return None if row is None else str(row[0])

    def high_watermark(self, shard: str) -> int:
        """As it was noted last: everything below it is on all replicas in sync."""
        return int(self._one("SELECT coalesce(max(high_watermark), 0) FROM marks WHERE shard = ?", shard))

    def note_high_watermark(self, shard: str, end: int) -> None:
        """Remember it over a restart."""
        self._db.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (shard, end))

    def drop(self, shard: str) -> None:
        """The shard has moved away."""
        self._db.execute("DELETE FROM entries WHERE shard = ?", (shard,))
        self._db.execute("DELETE FROM marks WHERE shard = ?", (shard,))

    def _one(self, query: str, *values: object) -> int:
        return int(self._db.execute(query, values).fetchone()[0])
